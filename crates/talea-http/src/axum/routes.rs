//! Finds the meters of a request by its matched route, or by its path.

use std::collections::hash_map::RandomState;
use std::error::Error;
use std::fmt;
use std::hash::BuildHasher;
use std::ptr;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering::Relaxed};
use std::sync::{LazyLock, OnceLock};

use http::Method;
use talea::HttpMethod;
use talea_region::AtomicRef;

use crate::endpoints::Endpoints;
use crate::labels::status::OTHER;
use crate::request::attributes::known_method;
use crate::request::meters::{Endpoint, EndpointMeters};

/// The endpoints of the routes that were listed or matched. Two pointers, since services are cloned
/// for each request; they point to data that lives as long as the program, as endpoints do.
#[derive(Clone, Copy)]
pub(crate) struct Routes {
    table: &'static TemplateTable,
    /// The listed routes, by the paths that they match.
    paths: &'static PathRouter,
}

type PathRouter = matchit::Router<&'static Route>;

/// Routes by their template: a hash table with open addressing and linear probing.
struct TemplateTable {
    endpoints: Endpoints,
    slots: Box<[AtomicRef<Route>]>,
    used: AtomicUsize,
    /// By the address of a template: the slot where it was found last. The text in the slot is
    /// compared, so reuse of an address costs a search and is no error.
    last_slots: Box<[AtomicU16]>,
    hashes: RandomState,
    unmatched: Endpoint,
    /// The endpoints of all routes for which there is no room.
    overflow: OnceLock<Route>,
}

struct Route {
    template: Box<str>,
    /// In the order of [`HttpMethod::ALL`].
    by_method: [Endpoint; HttpMethod::ALL.len()],
}

/// A route to list, as read from a router.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RouteSpec {
    /// The template that a request's path matches, and the one in its label.
    pub(crate) path: String,
    pub(crate) template: String,
    pub(crate) methods: Vec<HttpMethod>,
    /// Whether it handles all other methods too.
    pub(crate) handles_each: bool,
}

impl RouteSpec {
    pub(crate) fn new(template: &str) -> Self {
        let (path, template) = (template.to_owned(), template.to_owned());
        Self { path, template, methods: Vec::new(), handles_each: false }
    }
}

/// Routes cannot be listed; the text names the route and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteError {
    message: String,
}

impl RouteError {
    fn new(method: &str, template: &str, reason: &str) -> Self {
        Self { message: format!("cannot list the route {method} {template}: {reason}") }
    }

    pub(crate) fn unreadable() -> Self {
        let message = "cannot read the routes of the router: the `Debug` text of this version of \
                       axum is not known; list the routes by `Layer::routes`";
        Self { message: message.to_owned() }
    }
}

impl fmt::Display for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for RouteError {}

/// At most half of them are used, so that searches stay short.
const SLOTS: usize = 4096;
const ADDRESSES: usize = 1024;

impl Routes {
    pub(crate) fn new(endpoints: Endpoints) -> Self {
        let table = TemplateTable {
            endpoints,
            slots: (0..SLOTS).map(|_| AtomicRef::new()).collect(),
            used: AtomicUsize::new(0),
            last_slots: (0..ADDRESSES).map(|_| AtomicU16::new(0)).collect(),
            hashes: RandomState::new(),
            unmatched: endpoints.unmatched(),
            overflow: OnceLock::new(),
        };
        Self { table: Box::leak(Box::new(table)), paths: Box::leak(Box::default()) }
    }

    pub(crate) fn list(&mut self, routes: &[(&str, &str)]) -> Result<(), RouteError> {
        let mut specs: Vec<RouteSpec> = Vec::new();
        for &(name, template) in routes {
            let (method, is_any) = (HttpMethod::of(name), name == ANY);
            let fail = |reason: &str| RouteError::new(name, template, reason);
            if !is_any && method == HttpMethod::Other {
                return Err(fail(&format!(
                    "{name:?} is not a known method; write a method in capitals, such as GET, or {ANY}"
                )));
            }
            fault_in_template(template).map_or(Ok(()), |fault| Err(fail(fault)))?;
            let known = specs.iter().position(|spec| spec.template == template);
            let known = known.unwrap_or_else(|| {
                specs.push(RouteSpec::new(template));
                specs.len() - 1
            });
            specs[known].methods.extend((!is_any).then_some(method));
            specs[known].handles_each |= is_any;
        }
        self.list_specs(&specs)
    }

    /// Lists routes. After an error no route is listed, but some series have been created.
    pub(crate) fn list_specs(&mut self, routes: &[RouteSpec]) -> Result<(), RouteError> {
        let mut paths = self.paths.clone();
        for RouteSpec { path, template, methods, handles_each } in routes {
            let endpoints = &self.table.endpoints;
            paths
                .insert(
                    path,
                    self.table.listed(template, || {
                        Route::new(endpoints, template, methods.iter().copied(), *handles_each)
                    }),
                )
                .map_err(|error| {
                    let method = methods.first().map_or(ANY, |method| method.as_str());
                    RouteError::new(
                        method,
                        template,
                        &format!("{error}; write it as in the router"),
                    )
                })?;
        }
        self.paths = Box::leak(Box::new(paths));
        Ok(())
    }

    /// Finds the same routes by the matched template only, and not by the path.
    pub(crate) fn by_matched_path(self) -> Self {
        static NONE: LazyLock<PathRouter> = LazyLock::new(PathRouter::default);
        Self { paths: &NONE, ..self }
    }

    /// The meters of a request, by the matched template or else by its path.
    #[inline]
    pub(crate) fn meters(
        &self,
        matched: Option<&str>,
        method: &Method,
        path: &str,
    ) -> &'static EndpointMeters {
        let route = match matched {
            Some(template) => Some(self.table.matched(template)),
            None => self.paths.at(path).ok().map(|found| *found.value),
        };
        route.map_or(self.table.unmatched, |route| route.endpoint(method)).meters
    }
}

/// The reason for which axum refuses a template that `matchit` takes.
fn fault_in_template(template: &str) -> Option<&'static str> {
    let begins = |sign: char| template.split('/').any(|segment| segment.starts_with(sign));
    let faults = [
        (!template.starts_with('/'), "it must begin with \"/\""),
        (begins(':'), "a segment begins with \":\"; axum writes a parameter as {name}"),
        (begins('*'), "a segment begins with \"*\"; axum writes a wildcard as {*name}"),
    ];
    faults.into_iter().find_map(|(is_there, fault)| is_there.then_some(fault))
}

/// The name of every method, in a list of routes.
const ANY: &str = "ANY";

impl Route {
    fn matched(endpoints: &Endpoints, template: &str) -> Self {
        Self::new(endpoints, template, [], true)
    }

    /// A route that declares some methods, and handles all others too or not. A `GET` handles
    /// `HEAD` if that is not declared.
    fn new(
        endpoints: &Endpoints,
        template: &str,
        methods: impl IntoIterator<Item = HttpMethod>,
        handles_each: bool,
    ) -> Self {
        let rest = match handles_each {
            true => endpoints.declare_any(template),
            false => endpoints.declare_rest(template),
        };
        let mut declared = [None; HttpMethod::ALL.len()];
        for method in methods {
            declared[method as usize] = Some(endpoints.declare_known(method, template));
        }
        let [get, head] = [HttpMethod::Get, HttpMethod::Head].map(|method| method as usize);
        declared[head] = declared[head].or(declared[get]);
        let by_method = declared.map(|endpoint| endpoint.unwrap_or(rest));
        Self { template: template.into(), by_method }
    }

    #[inline]
    fn endpoint(&self, method: &Method) -> Endpoint {
        self.by_method[known_method(method) as usize]
    }
}

impl TemplateTable {
    /// The route of a template. Found faster if the template is at the same address each time.
    #[inline]
    fn matched(&'static self, template: &str) -> &'static Route {
        // Allocations are 16 bytes apart.
        let last = &self.last_slots[(template.as_ptr() as usize >> 4) % ADDRESSES];
        let found = self.slots.get(usize::from(last.load(Relaxed))).and_then(AtomicRef::get);
        match found {
            Some(route) if *route.template == *template => route,
            _ => self.search(template, last),
        }
    }

    #[cold]
    fn search(&'static self, template: &str, last: &AtomicU16) -> &'static Route {
        let (slot, route) =
            self.get_or_insert(template, || Route::matched(&self.endpoints, template));
        if let Some(slot) = slot {
            last.store(slot, Relaxed);
        }
        route
    }

    /// The route of a template that is listed, inserted if it is new. If there is no room, it is
    /// found by its path only.
    fn listed(&'static self, template: &str, make: impl Fn() -> Route) -> &'static Route {
        match self.get_or_insert(template, &make) {
            (Some(_), route) => route,
            (None, _) => Box::leak(Box::new(make())),
        }
    }

    /// The route of a template, inserted if it is new, and its slot.
    fn get_or_insert(
        &'static self,
        template: &str,
        make: impl Fn() -> Route,
    ) -> (Option<u16>, &'static Route) {
        let first = self.hashes.hash_one(template) as usize;
        let mut made: Option<&'static Route> = None;
        for n in 0..SLOTS {
            let slot = (first + n) % SLOTS;
            let route = match self.slots[slot].get() {
                Some(route) => route,
                None if self.used.load(Relaxed) >= SLOTS / 2 => break,
                None => {
                    let new = *made.get_or_insert_with(|| Box::leak(Box::new(make())));
                    // A thread that loses a race gets the winner's route, which may be another one.
                    let route = self.slots[slot].get_or_set(new);
                    self.used.fetch_add(usize::from(ptr::eq(route, new)), Relaxed);
                    route
                }
            };
            if *route.template == *template {
                return (Some(slot as u16), route);
            }
        }
        (None, self.overflow.get_or_init(|| Route::matched(&self.endpoints, OTHER)))
    }
}

impl fmt::Debug for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let routes = self.table.slots.iter().filter_map(AtomicRef::get);
        f.debug_list().entries(routes.map(|route| &route.template)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes() -> Routes {
        let registry = talea::Registry::for_test().unwrap();
        Routes::new(Endpoints::new(&registry).unwrap())
    }

    #[test]
    fn a_template_is_one_route_at_any_address() {
        let routes = routes();
        let meters = |template: &str| routes.meters(Some(template), &Method::GET, "");
        let (one, other) = ("/items/{id}".to_owned(), "/items/{id}".to_owned());
        let found = meters(&one);
        for template in [&other, &one, &other] {
            assert!(std::ptr::eq(meters(template), found));
        }
        assert!(!std::ptr::eq(meters("/items"), found));
        let mut reused = one;
        reused.replace_range(1.., "b");
        assert!(!std::ptr::eq(meters(&reused), found));
        reused.replace_range(1.., "items/{id}");
        assert!(std::ptr::eq(meters(&reused), found));
    }

    #[test]
    fn the_error_of_a_route_that_cannot_be_listed_names_the_reason() {
        for (route, message) in [
            (("get", "/x"), "cannot list the route get /x: \"get\" is not a known method"),
            (("GET", "/{"), "cannot list the route GET /{: "),
            (("GET", ""), "cannot list the route GET : it must begin with \"/\""),
            (("GET", "x"), "cannot list the route GET x: it must begin with \"/\""),
            (("GET", "/x/:id"), "cannot list the route GET /x/:id: a segment begins with \":\""),
            (("GET", "/*rest"), "cannot list the route GET /*rest: a segment begins with \"*\""),
        ] {
            let error = routes().list(&[route]).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
        let error = routes().list(&[("GET", "/{a}"), ("GET", "/{b}")]).unwrap_err().to_string();
        assert!(error.contains("/{b}"), "{error}");
    }

    #[test]
    fn routes_beyond_the_table_share_their_meters() {
        let config = talea::Config::with_len(256 << 20);
        let registry = talea::Registry::with_config(config).unwrap();
        let mut opts = crate::Opts::new().convention(crate::Convention::Servant);
        opts = opts.bucketing(talea::Bucketing::Classic);
        let routes = Routes::new(opts.register(&registry).unwrap());
        let at = |n: usize| {
            routes.meters(Some(&format!("/{n}")), &Method::GET, "") as *const EndpointMeters
        };
        let first: Vec<_> = (0..SLOTS / 2).map(at).collect();
        assert_eq!(at(SLOTS), at(SLOTS + 1), "beyond the table");
        assert!(first.iter().enumerate().all(|(n, &found)| at(n) == found));
    }
}
