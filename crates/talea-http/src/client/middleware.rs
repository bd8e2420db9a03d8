//! The middleware for reqwest.

use http::{Extensions, Uri, Version};
use reqwest::{Body, Request, Response, ResponseBuilderExt};
use reqwest_middleware::{Error, Next, Result};

use super::ErrorKind;
use super::error_kinds::kind_of;
use super::layer::Layer;
use crate::request::arrival::Exchange;
use crate::request::attributes::RequestHead;
use crate::request::bodies::ResponseBody;
use crate::request::meters::Endpoint;

/// A middleware that meters the requests of a reqwest client.
///
/// ```
/// use reqwest_middleware::ClientBuilder;
/// use talea_http::client::{Layer, Middleware, Servers};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let registry = talea::Registry::for_test()?;
/// let servers = Servers::new().server("stock.example", &["/items", "/items/{id}"]);
/// let client = ClientBuilder::new(reqwest::Client::new())
///     .with(Middleware::from(Layer::new(&servers, &registry)?))
///     .build();
/// // client.get("http://stock.example/items/7").send().await?;
/// # let _ = client;
/// # Ok(())
/// # }
/// ```
///
/// A body of a request counts with the length that it has when the request is sent: a stream without a length
/// counts 0 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Middleware {
    layer: Layer,
}

impl From<Layer> for Middleware {
    fn from(layer: Layer) -> Self {
        Self { layer }
    }
}

#[async_trait::async_trait]
impl reqwest_middleware::Middleware for Middleware {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        let mut exchange = Exchange::closed();
        self.open(&mut exchange, &request, extensions);
        match next.run(request, extensions).await {
            Ok(response) => Ok(watched(response, &mut exchange)),
            Err(error) => {
                exchange.fail(error_kind(&error));
                Err(error)
            }
        }
    }
}

impl Middleware {
    fn open(&self, exchange: &mut Exchange, request: &Request, extensions: &Extensions) {
        let url = request.url();
        let (host, port) = (url.host_str().unwrap_or_default(), url.port_or_known_default());
        let Endpoint { meters } = self.layer.servers.find(host, port, url.path());
        let head = RequestHead {
            method: request.method(),
            uri: &Uri::default(),
            version: Version::HTTP_11,
            headers: request.headers(),
            extensions,
        };
        let bytes = request.body().and_then(Body::as_bytes).map_or(0, <[u8]>::len);
        exchange.open_sized(meters, head, bytes as u64);
    }
}

/// The response with its body watched, if that follows.
fn watched(response: Response, exchange: &mut Exchange) -> Response {
    let url = response.url().clone();
    let response = http::Response::<Body>::from(response);
    let transfer = exchange.receive(&response);
    let (head, inner) = response.into_parts();
    let body = match transfer {
        Some(transfer) => Body::wrap(ResponseBody { inner, transfer: Some(transfer) }),
        None => inner,
    };
    let mut whole = http::Response::from_parts(head, body);
    // reqwest keeps the URL there.
    if let Ok(with_url) = http::Response::builder().url(url).body(()) {
        whole.extensions_mut().extend(with_url.into_parts().0.extensions);
    }
    Response::from(whole)
}

fn error_kind(error: &Error) -> ErrorKind {
    let Error::Reqwest(of_reqwest) = error else { return ErrorKind::Other };
    match kind_of(of_reqwest) {
        ErrorKind::Other if of_reqwest.is_redirect() => ErrorKind::Redirect,
        ErrorKind::Other if of_reqwest.is_timeout() => ErrorKind::Timeout,
        ErrorKind::Other if of_reqwest.is_connect() => ErrorKind::Connect,
        ErrorKind::Other if of_reqwest.is_body() => ErrorKind::Body,
        kind => kind,
    }
}
