//! The routes of the service under test.

#[derive(Clone, Copy)]
pub(crate) struct Route {
    pub(crate) method: &'static str,
    pub(crate) template: &'static str,
    pub(crate) behavior: Behavior,
    pub(crate) layer: RouteLayer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behavior {
    Memory,
    Empty,
    Long,
    /// Responds with the status in the path, and a body, which HTTP forbids for some.
    Status,
    StatusAlone,
    Streams,
    StreamsKnown,
    StreamsTrailers,
    StreamsForEver,
    StreamsForLong,
    /// Streams a body whose length only the head declares: the right length, one that is shorter,
    /// one that is longer.
    StreamsDeclared,
    StreamsTooMuch,
    StreamsTooLittle,
    /// Reads the request's body, and responds with 400 if that fails.
    Reads,
    /// Reads the request's body, and never responds if that fails.
    ReadsOn,
    Echoes,
    Ignores,
    /// Extracts the request's body whole, and responds with 413 if that is too long.
    Extracts,
    Never,
    PanicsAtOnce,
    /// A service that panics in its call.
    ServicePanics,
    Panics,
    BodyPanics,
    BodyFails,
    /// Streams a body that fails after as many bytes as its head declares.
    BodyFailsLate,
    /// Responds as the layer that catches panics, but for the body or the status.
    OtherFailure,
    PanicText,
    /// Returns the service's error, if services have one.
    Errs,
    Upgrades,
    UpgradesWithGuard,
}

/// The layer around a handler, inside of the meter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RouteLayer {
    Nothing,
    TimeLimit,
    Cors,
    /// Panics in its call.
    Panics,
    /// Turns panics into tower-http's response, into one with a mark and into one without, and
    /// changes the body of tower-http's.
    CatchesPanics,
    CatchesAndMarks,
    CatchesUnmarked,
    CatchesAndChanges,
}

const fn get(template: &'static str, behavior: Behavior) -> Route {
    Route { method: "GET", template, behavior, layer: RouteLayer::Nothing }
}

const fn post(template: &'static str, behavior: Behavior) -> Route {
    Route { method: "POST", ..get(template, behavior) }
}

impl Route {
    const fn layer(self, layer: RouteLayer) -> Self {
        Self { layer, ..self }
    }

    pub(crate) fn panics_in_its_call(&self) -> bool {
        self.layer == RouteLayer::Panics
            || matches!(self.behavior, Behavior::PanicsAtOnce | Behavior::ServicePanics)
    }

    /// Whether it handles a method.
    pub(crate) fn handles(&self, method: &str) -> bool {
        method == self.method || (method == "HEAD" && self.method == "GET")
    }
}

/// The route of a path, by a search that is enough for these templates.
pub(crate) fn of_path(path: &str) -> Option<&'static Route> {
    ROUTES.iter().find(|route: &&Route| match route.template.split_once('{') {
        Some((prefix, _)) => path.len() > prefix.len() && path.starts_with(prefix),
        None => route.template == path,
    })
}

pub(crate) const ROUTES: &[Route] = &[
    get("/memory", Behavior::Memory),
    get("/files/{*path}", Behavior::Memory),
    get("/empty", Behavior::Empty),
    get("/long", Behavior::Long),
    get("/status/{code}", Behavior::Status),
    get("/alone/{code}", Behavior::StatusAlone),
    get("/streams", Behavior::Streams),
    get("/streams-known", Behavior::StreamsKnown),
    get("/streams-trailers", Behavior::StreamsTrailers),
    get("/streams-for-ever", Behavior::StreamsForEver),
    get("/streams-for-long", Behavior::StreamsForLong),
    get("/streams-declared", Behavior::StreamsDeclared),
    get("/streams-too-much", Behavior::StreamsTooMuch),
    get("/streams-too-little", Behavior::StreamsTooLittle),
    post("/reads", Behavior::Reads),
    post("/reads-on", Behavior::ReadsOn),
    post("/echoes", Behavior::Echoes),
    post("/ignores", Behavior::Ignores),
    post("/extracts", Behavior::Extracts),
    get("/never", Behavior::Never),
    get("/panics-at-once", Behavior::PanicsAtOnce),
    get("/service-panics", Behavior::ServicePanics),
    get("/panics", Behavior::Panics),
    get("/body-panics", Behavior::BodyPanics),
    get("/body-fails", Behavior::BodyFails),
    get("/body-fails-late", Behavior::BodyFailsLate),
    get("/other-failure", Behavior::OtherFailure),
    get("/panic-text", Behavior::PanicText),
    get("/errs", Behavior::Errs),
    get("/upgrades", Behavior::Upgrades),
    get("/upgrades-with-guard", Behavior::UpgradesWithGuard),
    get("/limited", Behavior::Never).layer(RouteLayer::TimeLimit),
    get("/layer-panics", Behavior::Memory).layer(RouteLayer::Panics),
    get("/caught", Behavior::Panics).layer(RouteLayer::CatchesPanics),
    get("/caught-marked", Behavior::Panics).layer(RouteLayer::CatchesAndMarks),
    get("/caught-unmarked", Behavior::Panics).layer(RouteLayer::CatchesUnmarked),
    get("/caught-changed", Behavior::Panics).layer(RouteLayer::CatchesAndChanges),
    get("/layered", Behavior::Never).layer(RouteLayer::Cors),
    get("/cors", Behavior::Memory).layer(RouteLayer::Cors),
];
