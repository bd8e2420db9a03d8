//! The door for Rocket: a fairing.

use std::io;
use std::pin::Pin;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};

use ::http::{Method, Request as HttpRequest, Version};
use ::rocket::fairing::{Fairing, Info, Kind, Result};
use ::rocket::response::Body;
use ::rocket::tokio::io::{AsyncRead, ReadBuf};
use ::rocket::{Build, Data, Request, Response, Rocket, Route};
use talea_http::{Endpoint, Endpoints, ManualExchange};

/// A fairing that meters all routes that are mounted when it is attached to a Rocket that ignites.
///
/// ```no_run
/// use rocket::{get, routes};
/// use talea_frameworks::rocket::Meter;
/// use talea_http::Endpoints;
///
/// #[get("/items/<id>")]
/// fn item(id: u32) -> String {
///     format!("item {id}")
/// }
///
/// # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
/// let registry = talea::Registry::new()?;
/// let endpoints = Endpoints::new(&registry)?;
/// rocket::build().mount("/", routes![item]).attach(Meter::new(&endpoints)).launch().await?;
/// # Ok(())
/// # }
/// ```
///
/// All routes have their series from the start, by their templates: `/items/{id}` for `/items/<id>`.
///
/// What Rocket does not show is not recorded: the bytes of a request's body, and a client that goes away before
/// the response. The handler of such a request runs on to its end, and the request is in flight as long. A body of known
/// size counts as sent; a stream is watched to its end.
pub struct Meter {
    endpoints: Endpoints,
    unmatched: Endpoint,
    find: OnceLock<Find>,
}

type Find = Box<dyn Fn(&HttpRequest<()>) -> Endpoint + Send + Sync>;

/// The exchange of a request, in the request's own cache.
#[derive(Default)]
struct Cached(Mutex<Option<ManualExchange>>);

impl Meter {
    /// A fairing that records under these endpoints.
    pub fn new(endpoints: &Endpoints) -> Self {
        Self { endpoints: *endpoints, unmatched: endpoints.unmatched(), find: OnceLock::new() }
    }

    /// The endpoint of a request by its path, before Rocket has chosen a route.
    fn find(&self, method: &Method, path: &str) -> Option<Endpoint> {
        let request = HttpRequest::builder().method(method).uri(path).body(()).ok()?;
        self.find.get().map(|find| find(&request))
    }
}

#[::rocket::async_trait]
impl Fairing for Meter {
    fn info(&self) -> Info {
        Info { name: "Talea", kind: Kind::Ignite | Kind::Request | Kind::Response }
    }

    async fn on_ignite(&self, rocket: Rocket<Build>) -> Result {
        let routes: Vec<_> = rocket.routes().map(listed).collect();
        let routes: Vec<_> = routes.iter().map(|(method, path)| (*method, path.as_str())).collect();
        for (method, template) in &routes {
            self.endpoints.declare(&method.parse().unwrap_or_default(), template);
        }
        // Routes of several ranks may match one path, and only Rocket knows which does.
        if let Ok(find) = self.endpoints.finder(&routes) {
            let _ = self.find.set(Box::new(find));
        }
        Ok(rocket)
    }

    async fn on_request(&self, request: &mut Request<'_>, _: &mut Data<'_>) {
        let method = method(request);
        let mut exchange = ManualExchange::arrived();
        match self.find(&method, request.uri().path().as_str()) {
            Some(endpoint) => exchange.enter(endpoint, &method, Version::HTTP_11, false),
            None => exchange.wait_at(self.unmatched, &method, Version::HTTP_11, false),
        }
        request.local_cache(Cached::default).set(exchange);
    }

    async fn on_response<'r>(&self, request: &'r Request<'_>, response: &mut Response<'r>) {
        let Some(mut exchange) = request.local_cache(Cached::default).take() else { return };
        let endpoint = match request.route().map(listed) {
            Some((method, template)) => {
                self.endpoints.declare(&method.parse().unwrap_or_default(), &template)
            }
            None => self.unmatched,
        };
        exchange.enter(endpoint, &method(request), Version::HTTP_11, false);
        let status = response.status().code;
        match response.body_mut().size().await {
            Some(size) => exchange.respond(status, size as u64),
            None if response.body().is_none() => exchange.respond(status, 0),
            None => {
                exchange.begin_response(status);
                let inner = response.body_mut().take();
                response.set_streamed_body(MeteredBody { inner, exchange });
            }
        }
    }
}

impl Cached {
    fn set(&self, exchange: ManualExchange) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(exchange);
    }

    fn take(&self) -> Option<ManualExchange> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

fn method(request: &Request<'_>) -> Method {
    request.method().as_str().parse().unwrap_or_default()
}

/// A route's method, and its template: `/files/{*path}` for `/files/<path..>`.
fn listed(route: &Route) -> (&'static str, String) {
    let path = route.uri.path();
    let template = path.split('/').map(|segment| {
        let placeholder = segment.strip_prefix('<').and_then(|segment| segment.strip_suffix('>'));
        match placeholder {
            Some(name) => match name.strip_suffix("..") {
                Some(rest) => format!("{{*{rest}}}"),
                None => format!("{{{name}}}"),
            },
            None => segment.to_owned(),
        }
    });
    (route.method.as_str(), template.collect::<Vec<_>>().join("/"))
}

/// A stream, which ends its request when it has passed. If it is dropped earlier, the request counts as aborted.
struct MeteredBody<'r> {
    inner: Body<'r>,
    exchange: ManualExchange,
}

impl AsyncRead for MeteredBody<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = std::task::ready!(Pin::new(&mut self.inner).poll_read(cx, buf));
        match (&read, buf.filled().len() - before) {
            (Err(_), _) => self.exchange.close(),
            (Ok(()), 0) => self.exchange.end(),
            (Ok(()), bytes) => self.exchange.sent(bytes as u64),
        }
        Poll::Ready(read)
    }
}
