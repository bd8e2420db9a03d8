//! The routes of the service under test.

/// A route, what answers there, and what stands around that.
#[derive(Clone, Copy)]
pub(crate) struct Route {
    pub(crate) method: &'static str,
    pub(crate) template: &'static str,
    pub(crate) does: Does,
    pub(crate) inside: Inside,
}

/// What a handler does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Does {
    /// Answers with a body in memory, or without.
    Memory,
    Empty,
    Long,
    /// Answers with the status that the path says, and a body, which some may not have.
    Status,
    /// The same without a body.
    StatusAlone,
    /// Answers with a body that is streamed.
    Streams,
    StreamsKnown,
    StreamsForEver,
    StreamsForLong,
    /// The same with a length that the head alone declares: the right one, less or more.
    StreamsDeclared,
    StreamsTooMuch,
    StreamsTooLittle,
    /// Reads the request's body, and answers 400 where that breaks off.
    Reads,
    /// Reads it, and waits for ever where it breaks off.
    ReadsOn,
    /// Sends it back while it comes.
    Echoes,
    /// Leaves it unread.
    Ignores,
    Never,
    PanicsAtOnce,
    Panics,
    BodyPanics,
    BodyFails,
    /// Answers by the service's error, where services have one.
    Errs,
    Upgrades,
}

/// The layer around a handler, inside of the meter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inside {
    Nothing,
    TimeLimit,
    CatchesPanics,
    Cors,
}

const fn get(template: &'static str, does: Does) -> Route {
    Route { method: "GET", template, does, inside: Inside::Nothing }
}

const fn post(template: &'static str, does: Does) -> Route {
    Route { method: "POST", ..get(template, does) }
}

impl Route {
    const fn inside(self, inside: Inside) -> Self {
        Self { inside, ..self }
    }

    /// Whether it answers a method.
    pub(crate) fn answers(&self, method: &str) -> bool {
        method == self.method || (method == "HEAD" && self.method == "GET")
    }
}

/// The route of a path, found as simply as these templates allow.
pub(crate) fn of_path(path: &str) -> Option<&'static Route> {
    let matches = |route: &&Route| match route.template.split_once('{') {
        Some((prefix, _)) => path.len() > prefix.len() && path.starts_with(prefix),
        None => route.template == path,
    };
    ROUTES.iter().find(matches)
}

pub(crate) const ROUTES: &[Route] = &[
    get("/memory", Does::Memory),
    get("/files/{*path}", Does::Memory),
    get("/empty", Does::Empty),
    get("/long", Does::Long),
    get("/status/{code}", Does::Status),
    get("/alone/{code}", Does::StatusAlone),
    get("/streams", Does::Streams),
    get("/streams-known", Does::StreamsKnown),
    get("/streams-for-ever", Does::StreamsForEver),
    get("/streams-for-long", Does::StreamsForLong),
    get("/streams-declared", Does::StreamsDeclared),
    get("/streams-too-much", Does::StreamsTooMuch),
    get("/streams-too-little", Does::StreamsTooLittle),
    post("/reads", Does::Reads),
    post("/reads-on", Does::ReadsOn),
    post("/echoes", Does::Echoes),
    post("/ignores", Does::Ignores),
    get("/never", Does::Never),
    get("/panics-at-once", Does::PanicsAtOnce),
    get("/panics", Does::Panics),
    get("/body-panics", Does::BodyPanics),
    get("/body-fails", Does::BodyFails),
    get("/errs", Does::Errs),
    get("/upgrades", Does::Upgrades),
    get("/limited", Does::Never).inside(Inside::TimeLimit),
    get("/caught", Does::Panics).inside(Inside::CatchesPanics),
    get("/layered", Does::Never).inside(Inside::Cors),
    get("/cors", Does::Memory).inside(Inside::Cors),
];
