//! The routes of an `axum::Router`, read from its `Debug` text.
//!
//! axum has no method that lists routes, but its router's `Debug` shows all of them, with the
//! methods that each declares. That text is not a stable interface. So it is read strictly: if any
//! part of the text is not known here, the result is `None`.
//!
//! ```text
//! Router { path_router: PathRouter {
//!     routes: {RouteId(1): MethodRouter(MethodRouter { get: BoxedHandler, head: None, … ,
//!         fallback: Default(Route), allow_header: Bytes(b"GET,HEAD") }), RouteId(2): Route(Route)},
//!     node: Node { paths: {RouteId(1): "/items/{id}", RouteId(2): "/files/{*path}"} } }, … }
//! ```

use ::axum::Router;
use talea::HttpMethod;

use super::routes::RouteSpec;

/// The end of the path at which axum nests a service.
const NESTED: &str = "/{*__private__axum_nest_tail_param}";

/// The routes of a router, in no order. `None` if any part of its text is not known.
pub(super) fn routes_of<S>(router: &Router<S>) -> Option<Vec<RouteSpec>> {
    routes_in(&format!("{router:?}"))
}

fn routes_in(text: &str) -> Option<Vec<RouteSpec>> {
    let mut reader = Reader { rest: text };
    let router = reader.value()?;
    if !reader.rest.is_empty() {
        return None;
    }
    let path_router = router.field("Router", "path_router")?;
    let Value::Map(endpoints) = path_router.field("PathRouter", "routes")? else { return None };
    let paths = path_router.field("PathRouter", "node")?.field("Node", "paths")?;
    let Value::Map(paths) = paths else { return None };
    if endpoints.len() != paths.len() {
        return None;
    }
    let mut routes = paths
        .iter()
        .map(|(id, path): &(Value<'_>, Value<'_>)| {
            let (_, endpoint) = endpoints.iter().find(|(other, _)| other == id)?;
            let Value::Text(path) = path else { return None };
            let (methods, handles_each) = methods_of(endpoint)?;
            Some(RouteSpec { methods, handles_each, ..RouteSpec::new(path) })
        })
        .collect::<Option<Vec<_>>>()?;
    name_nested(&mut routes);
    Some(routes)
}

/// Gives all paths of a nested service one template, as Talea's own router does. axum adds the
/// prefix itself too, with and without a slash.
fn name_nested(routes: &mut [RouteSpec]) {
    let prefixes = routes.iter().filter_map(|route| route.path.strip_suffix(NESTED));
    let prefixes: Vec<String> = prefixes.map(str::to_owned).collect();
    for route in routes.iter_mut().filter(|route| route.handles_each) {
        let path = route.path.strip_suffix(NESTED).unwrap_or(&route.path);
        let path = path.strip_suffix('/').unwrap_or(path);
        if prefixes.iter().any(|prefix| prefix == path) {
            route.template = format!("{path}/{{*rest}}");
        }
    }
}

const METHODS: [(&str, HttpMethod); 9] = [
    ("get", HttpMethod::Get),
    ("head", HttpMethod::Head),
    ("delete", HttpMethod::Delete),
    ("options", HttpMethod::Options),
    ("patch", HttpMethod::Patch),
    ("post", HttpMethod::Post),
    ("put", HttpMethod::Put),
    ("trace", HttpMethod::Trace),
    ("connect", HttpMethod::Connect),
];

/// The methods that an endpoint declares, and whether it handles all others too.
fn methods_of(endpoint: &Value<'_>) -> Option<(Vec<HttpMethod>, bool)> {
    let Value::Tuple(kind, inner) = endpoint else { return None };
    match (*kind, inner.as_slice()) {
        // A service.
        ("Route", [Value::Name("Route")]) => Some((Vec::new(), true)),
        ("MethodRouter", [router @ Value::Struct(_, fields)]) => {
            // A method that is not known here would be counted as one that is not declared.
            if fields.len() != METHODS.len() + 2 {
                return None;
            }
            let field = |name| router.field("MethodRouter", name);
            field("fallback")?;
            let mut declared = Vec::new();
            for (name, method) in METHODS {
                match field(name)? {
                    Value::Name("None") => {}
                    Value::Name("Route" | "BoxedHandler") => declared.push(method),
                    _ => return None,
                }
            }
            // `any` skips the header that lists allowed methods, as all are.
            let handles_each = match field("allow_header")? {
                Value::Name("Skip") => true,
                Value::Name("None") | Value::Tuple("Bytes", _) => false,
                _ => return None,
            };
            Some((declared, handles_each))
        }
        _ => None,
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Value<'a> {
    /// A name or a number.
    Name(&'a str),
    Text(String),
    Tuple(&'a str, Vec<Self>),
    Struct(&'a str, Vec<(&'a str, Self)>),
    Map(Vec<(Self, Self)>),
}

impl<'a> Value<'a> {
    /// A field of a struct of this name.
    fn field(&self, structure: &str, name: &str) -> Option<&Value<'a>> {
        let Self::Struct(found, fields) = self else { return None };
        let mut fields = fields.iter().filter(|_| *found == structure);
        fields.find(|(field, _)| *field == name).map(|(_, value)| value)
    }
}

/// Reads what `{:?}` wrote, without line breaks.
struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn value(&mut self) -> Option<Value<'a>> {
        if self.takes("{") {
            return self.list("}", |reader| reader.pair(Self::value)).map(Value::Map);
        }
        // Bytes are read as text, since their value is not used.
        if self.takes("\"") || self.takes("b\"") {
            return self.text().map(Value::Text);
        }
        let name = self.name()?;
        if self.takes("(") {
            return self.list(")", Self::value).map(|values| Value::Tuple(name, values));
        }
        if self.takes(" { ") {
            let fields = self.list(" }", |reader| reader.pair(Self::name))?;
            return Some(Value::Struct(name, fields));
        }
        Some(Value::Name(name))
    }

    fn pair<K>(&mut self, key: fn(&mut Self) -> Option<K>) -> Option<(K, Value<'a>)> {
        let key = key(self)?;
        self.takes(": ").then_some(())?;
        Some((key, self.value()?))
    }

    fn list<T>(
        &mut self,
        end: &str,
        mut item: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let mut items = Vec::new();
        if self.takes(end) {
            return Some(items);
        }
        loop {
            items.push(item(self)?);
            if self.takes(end) {
                return Some(items);
            }
            self.takes(", ").then_some(())?;
        }
    }

    fn name(&mut self) -> Option<&'a str> {
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let len = end.unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(len);
        self.rest = rest;
        (len > 0).then_some(name)
    }

    /// The text behind an opening quote, to the closing one.
    fn text(&mut self) -> Option<String> {
        let mut text = String::new();
        let mut chars = self.rest.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return Some(text);
                }
                '\\' => match chars.next()?.1 {
                    c @ ('\\' | '"' | '\'') => text.push(c),
                    // Other escapes have not been seen in a path.
                    _ => return None,
                },
                c => text.push(c),
            }
        }
        None
    }

    fn takes(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }
}

#[cfg(test)]
mod tests {
    use ::axum::handler::HandlerWithoutStateExt;
    use ::axum::routing::{MethodFilter, any, get, on_service};

    use super::*;

    async fn nothing() {}

    fn route(path: &str, methods: &[HttpMethod], handles_each: bool) -> RouteSpec {
        RouteSpec { methods: methods.to_vec(), handles_each, ..RouteSpec::new(path) }
    }

    fn nested(path: &str) -> RouteSpec {
        RouteSpec { template: "/nested/{*rest}".to_owned(), ..route(path, &[], true) }
    }

    fn read(router: &Router) -> Vec<RouteSpec> {
        let mut routes = routes_of(router).expect("the text of this version");
        routes.sort_by(|a, b| a.path.cmp(&b.path));
        routes
    }

    /// If this fails after an update of axum, its `Debug` has changed: routers of the new version
    /// are metered by a layer, which costs more. Extend this module to read the new text.
    #[test]
    fn the_routes_of_this_version_of_axum_are_read() {
        let service = nothing.into_service();
        let inner = Router::new()
            .route("/", get(nothing))
            .route("/{id}", get(nothing).post(nothing).delete(nothing))
            .fallback(nothing);
        let router = Router::new()
            .route("/any", any(nothing).head(nothing))
            .route("/own-rest", get(nothing).fallback(nothing))
            .route("/put", on_service(MethodFilter::PUT, service.clone()))
            .route("/quote\"\\{{é}}", get(nothing))
            .route_service("/service/{*path}", service.clone())
            .nest("/items", inner)
            .nest_service("/nested", service)
            .layer(tower_layer::layer_fn(|inner| inner))
            .route("/late", get(nothing))
            .fallback(nothing)
            .with_state(());
        use HttpMethod::{Delete, Get, Head, Post, Put};
        let expected = [
            route("/any", &[Head], true),
            route("/items", &[Get], false),
            route("/items/{id}", &[Get, Delete, Post], false),
            route("/late", &[Get], false),
            nested("/nested"),
            nested("/nested/"),
            nested("/nested/{*__private__axum_nest_tail_param}"),
            route("/own-rest", &[Get], false),
            route("/put", &[Put], false),
            route("/quote\"\\{{é}}", &[Get], false),
            route("/service/{*path}", &[], true),
        ];
        assert_eq!(read(&router), expected);
        assert_eq!(read(&Router::new()), []);
    }

    #[test]
    fn a_text_with_any_unknown_part_is_refused() {
        let text = format!("{:?}", Router::<()>::new().route("/a", get(nothing)));
        assert!(routes_in(&text).is_some());
        for (part, other) in [
            ("path_router: ", "paths: "),
            ("PathRouter {", "Tree {"),
            ("routes: {", "routes: ["),
            ("get: BoxedHandler", "get: Handler"),
            ("head: None", "head: Nothing"),
            ("connect: None", "connect: None, query: None"),
            ("trace: None, ", ""),
            ("Bytes(b\"GET,HEAD\")", "List(b\"GET,HEAD\")"),
            ("RouteId(1): \"/a\"", "RouteId(2): \"/a\""),
            ("RouteId(1): \"/a\"", "RouteId(1): \"/a\", RouteId(2): \"/b\""),
            ("\"/a\"", "\"/a"),
            ("\"/a\"", "\"/\\u{7f}\""),
            ("MethodRouter(MethodRouter", "Hidden(MethodRouter"),
        ] {
            assert!(text.contains(part), "{part} is in {text}");
            assert_eq!(routes_in(&text.replacen(part, other, 1)), None, "{other}");
        }
        assert_eq!(routes_in(&format!("{text}.")), None);
        for len in (0..text.len()).filter(|&len| text.is_char_boundary(len)) {
            assert_eq!(routes_in(&text[..len]), None, "cut to {len}");
        }
    }
}
