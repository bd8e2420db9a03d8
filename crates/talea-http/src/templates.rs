//! Routes that are listed as methods and templates, and found by the paths of requests.

use std::fmt;

use http::{Method, Request};
use talea::HttpMethod;

use crate::endpoints::Endpoints;
use crate::labels::endpoint::Methods;
use crate::request::attributes::known_method;
use crate::request::meters::Endpoint;

/// Routes that cannot be listed.
#[derive(Clone, Debug)]
pub struct TemplateError(pub(crate) String);

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TemplateError {}

impl Endpoints {
    /// Declares routes by methods and templates, and returns the function for [`layer`](Self::layer) that finds a
    /// request's endpoint by its method and path. `ANY` stands for every method; templates have the placeholders
    /// `{id}`, for a segment, and `{*path}`, for the rest of the path. Other methods of a listed route are `_OTHER`,
    /// and a `HEAD` that is not listed is a `GET`. A request that matches no template is `_unmatched`.
    ///
    /// ```
    /// use http::{Request, Response};
    /// use talea_http::{Endpoints, RequestBody};
    /// use tower::{ServiceBuilder, service_fn};
    ///
    /// # type Body = http_body_util::Empty<&'static [u8]>;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let registry = talea::Registry::for_test()?;
    /// let endpoints = Endpoints::new(&registry)?;
    /// let find = endpoints.finder::<Body>(&[("GET", "/items/{id}"), ("POST", "/items")])?;
    /// let service = ServiceBuilder::new().layer(endpoints.layer(find)).service(service_fn(
    ///     async |_: Request<RequestBody<Body>>| Ok::<_, std::io::Error>(Response::new("an item".to_owned())),
    /// ));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// A template is not valid, or clashes with another; a method is not a known one.
    pub fn finder<B>(
        &self,
        routes: &[(&str, &str)],
    ) -> Result<impl Fn(&Request<B>) -> Endpoint + Copy + use<B>, TemplateError> {
        let templates = Templates::new(self, routes.iter().copied()).map_err(TemplateError)?;
        let templates: &'static Templates = Box::leak(Box::new(templates));
        let unmatched = self.unmatched();
        Ok(move |request: &Request<B>| {
            templates.find(request.method(), request.uri().path()).unwrap_or(unmatched)
        })
    }
}

/// Listed routes with their endpoints.
#[derive(Debug)]
pub(crate) struct Templates {
    by_path: matchit::Router<usize>,
    routes: Vec<ListedRoute>,
}

#[derive(Debug)]
struct ListedRoute {
    template: String,
    methods: Vec<(Methods, Endpoint)>,
    /// Of the methods that are not listed.
    rest: Endpoint,
}

impl Templates {
    /// The routes of a list of methods and templates, such as `("GET", "/items/{id}")`. `ANY` stands for each
    /// method. The error says what cannot be used.
    pub(crate) fn new<'a>(
        endpoints: &Endpoints,
        list: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, String> {
        let mut templates = Self { by_path: matchit::Router::new(), routes: Vec::new() };
        for (method, template) in list {
            templates.add(endpoints, method, template)?;
        }
        Ok(templates)
    }

    fn add(&mut self, endpoints: &Endpoints, method: &str, template: &str) -> Result<(), String> {
        let methods = match HttpMethod::of(method) {
            _ if method == "ANY" => Methods::Each,
            HttpMethod::Other => {
                return Err(format!(
                    "{method:?}, the method of {template:?}, is not known; expected a method of HTTP \
                     such as \"GET\", or \"ANY\""
                ));
            }
            known => Methods::One(known),
        };
        let known = self.routes.iter().position(|route| route.template == template);
        let index = match known {
            Some(index) => index,
            None => {
                let index = self.routes.len();
                self.by_path.insert(template, index).map_err(|error| {
                    format!("the template {template:?} cannot be used: {error}")
                })?;
                let rest = endpoints.declare_rest(template);
                self.routes.push(ListedRoute {
                    template: template.to_owned(),
                    methods: Vec::new(),
                    rest,
                });
                index
            }
        };
        let endpoint = match methods {
            Methods::One(method) => endpoints.declare_known(method, template),
            _ => endpoints.declare_any(template),
        };
        self.routes[index].methods.push((methods, endpoint));
        Ok(())
    }

    /// The endpoint of a request, if its path matches a template.
    pub(crate) fn find(&self, method: &Method, path: &str) -> Option<Endpoint> {
        let route = &self.routes[*self.by_path.at(path).ok()?.value];
        let of = |methods: Methods| {
            route.methods.iter().find(|(listed, _)| *listed == methods).map(|(_, found)| *found)
        };
        let method = known_method(method);
        let answers_head = of(Methods::One(HttpMethod::Get)).filter(|_| method == HttpMethod::Head);
        let found = of(Methods::One(method)).or(answers_head).or_else(|| of(Methods::Each));
        Some(found.unwrap_or(route.rest))
    }
}

#[cfg(test)]
mod tests {
    use talea::Registry;

    use super::*;

    #[test]
    fn a_request_has_the_endpoint_of_its_template_and_its_method() {
        let endpoints = Endpoints::new(&Registry::for_test().unwrap()).unwrap();
        let list = [
            ("GET", "/items/{id}"),
            ("DELETE", "/items/{id}"),
            ("HEAD", "/heads"),
            ("GET", "/heads"),
            ("ANY", "/files/{*path}"),
        ];
        let templates = Templates::new(&endpoints, list).unwrap();
        for (method, path, expected) in [
            ("GET", "/items/7", Some((Methods::One(HttpMethod::Get), "/items/{id}"))),
            ("HEAD", "/items/7", Some((Methods::One(HttpMethod::Get), "/items/{id}"))),
            ("DELETE", "/items/7", Some((Methods::One(HttpMethod::Delete), "/items/{id}"))),
            ("PUT", "/items/7", Some((Methods::Rest, "/items/{id}"))),
            ("BREW", "/items/7", Some((Methods::Rest, "/items/{id}"))),
            ("HEAD", "/heads", Some((Methods::One(HttpMethod::Head), "/heads"))),
            ("PUT", "/files/a/b", Some((Methods::Each, "/files/{*path}"))),
            ("GET", "/items", None),
            ("GET", "/items/7/x", None),
            ("GET", "", None),
        ] {
            let method: Method = method.parse().unwrap();
            let found = templates.find(&method, path).map(|found| found.meters.labels());
            assert_eq!(found, expected, "{method} {path}");
        }
    }

    #[test]
    fn a_route_that_cannot_be_listed_is_refused() {
        let endpoints = Endpoints::new(&Registry::for_test().unwrap()).unwrap();
        for (list, expected) in [
            ([("BREW", "/a"), ("GET", "/b")], "\"BREW\", the method of \"/a\", is not known"),
            ([("GET", "/{a}"), ("GET", "/{b}")], "the template \"/{b}\" cannot be used"),
            ([("GET", "/{a}{b}"), ("GET", "/b")], "the template \"/{a}{b}\" cannot be used"),
        ] {
            let refused = Templates::new(&endpoints, list).unwrap_err();
            assert!(refused.contains(expected), "{refused}");
        }
    }
}
