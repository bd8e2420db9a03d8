//! The metrics of requests.

use ::http::{Method, Version};
use napi::bindgen_prelude::{Error, Result};
use napi_derive::napi;
use talea_http::{Convention, Endpoint, Endpoints, ManualExchange, Opts, StatusLabel};

use crate::page::DefaultLabel;
use crate::region::{Region, failed};

/// The options of a middleware.
#[napi(object)]
pub struct HttpOptions {
    pub convention: String,
    pub prefix: String,
    pub detailed: bool,
    pub status_codes: bool,
    pub buckets: Option<Vec<f64>>,
    pub constant_labels: Vec<DefaultLabel>,
}

/// The HTTP metrics of a region, and this environment's requests in flight.
#[napi]
pub struct HttpMeter {
    endpoints: Endpoints,
    /// What `route` returned the numbers of.
    routes: Vec<Endpoint>,
    /// What `kind` returned the numbers of.
    kinds: Vec<Kind>,
    requests: Vec<Option<Request>>,
    free: Vec<u32>,
}

/// What requests have in common, so that each of them names it by a number.
struct Kind {
    method: Method,
    version: Version,
    is_https: bool,
}

struct Request {
    exchange: ManualExchange,
    kind: usize,
}

#[napi]
impl HttpMeter {
    #[napi(constructor)]
    pub fn new(region: &Region, options: HttpOptions) -> Result<Self> {
        let mut opts = Opts::new().prefix(&options.prefix).convention(match &*options.convention {
            "prometheus" => Convention::Prometheus,
            "opentelemetry" => Convention::OpenTelemetry,
            other => {
                return Err(Error::from_reason(format!(
                    "convention is {other:?}; expected prometheus, opentelemetry, express-prom-bundle or fastify-metrics"
                )));
            }
        });
        if options.detailed {
            opts = opts.detailed();
        }
        if options.status_codes {
            opts = opts.status_label(StatusLabel::Code);
        }
        if let Some(buckets) = &options.buckets {
            opts = opts.durations(buckets);
        }
        for label in &options.constant_labels {
            opts = opts.constant_label(&label.name, &label.value);
        }
        let endpoints = opts.register(&region.registry).map_err(failed)?;
        let routes = vec![endpoints.unmatched()];
        let (kinds, requests, free) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { endpoints, routes, kinds, requests, free })
    }

    /// Declares a route for a method, or for all that it does not declare; returns its number.
    #[napi]
    pub fn route(&mut self, method: String, template: String) -> u32 {
        self.routes.push(match method.parse() {
            Ok(method) if !method_is_any(&method) => self.endpoints.declare(&method, &template),
            _ => self.endpoints.declare_rest(&template),
        });
        (self.routes.len() - 1) as u32
    }

    /// The number of requests of this method, version and scheme.
    #[napi]
    pub fn kind(&mut self, method: String, http_version: String, is_https: bool) -> u32 {
        let method = Method::from_bytes(method.as_bytes()).unwrap_or_default();
        let version = match &*http_version {
            "2.0" => Version::HTTP_2,
            "1.0" => Version::HTTP_10,
            _ => Version::HTTP_11,
        };
        self.kinds.push(Kind { method, version, is_https });
        (self.kinds.len() - 1) as u32
    }

    /// A request arrives, with a body of this number of bytes; returns its number. Until its route is known it is in
    /// flight as unmatched.
    #[napi]
    pub fn arrived(&mut self, kind: u32, length: f64) -> u32 {
        let mut exchange = ManualExchange::arrived();
        if length > 0.0 {
            exchange.received(length as u64);
        }
        let kind = kind as usize;
        if let Some(Kind { method, version, is_https }) = self.kinds.get(kind) {
            exchange.wait_at(self.routes[0], method, *version, *is_https);
        }
        let request = Some(Request { exchange, kind });
        match self.free.pop() {
            Some(n) => {
                self.requests[n as usize] = request;
                n
            }
            None => {
                self.requests.push(request);
                (self.requests.len() - 1) as u32
            }
        }
    }

    /// A request is at this route. The first one counts.
    #[napi]
    pub fn enter(&mut self, request: u32, route: u32) {
        let Some(endpoint) = self.routes.get(route as usize).copied() else { return };
        let Some(Some(request)) = self.requests.get_mut(request as usize) else { return };
        if let Some(Kind { method, version, is_https }) = self.kinds.get(request.kind) {
            request.exchange.enter(endpoint, method, *version, *is_https);
        }
    }

    /// The head of its response is sent at this route, or at the one that it is at already.
    #[napi]
    pub fn head(&mut self, request: u32, route: u32, status: u32) {
        self.enter(request, route);
        if let Some(request) = self.request(request) {
            request.exchange.begin_response(u16::try_from(status).unwrap_or(500));
        }
    }

    /// The service's code failed.
    #[napi]
    pub fn failed(&mut self, request: u32) {
        self.enter(request, 0);
        if let Some(request) = self.request(request) {
            request.exchange.failed();
        }
    }

    /// The request ends: complete after this number of bytes of the response's body, or else aborted.
    #[napi]
    pub fn end(&mut self, request: u32, is_complete: bool, bytes: f64) {
        self.enter(request, 0);
        let Some(slot) = self.requests.get_mut(request as usize) else { return };
        let Some(mut ended) = slot.take() else { return };
        self.free.push(request);
        if bytes > 0.0 {
            ended.exchange.sent(bytes as u64);
        }
        if is_complete {
            ended.exchange.end();
        }
        ended.exchange.close();
    }

    fn request(&mut self, n: u32) -> Option<&mut Request> {
        self.requests.get_mut(n as usize)?.as_mut()
    }
}

/// Frameworks that answer all methods at a route say so by an empty method.
fn method_is_any(method: &Method) -> bool {
    method.as_str() == "*" || method.as_str() == "ALL"
}
