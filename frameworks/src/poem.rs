//! The door for poem: a middleware around an application.

use std::convert::Infallible;

use ::http::{Request as HttpRequest, Response as HttpResponse};
use ::poem::{Body, IntoResponse, Middleware, Request, RequestParts, Response, ResponseParts};
use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use talea_http::{Endpoint, EndpointLayer, RequestBody};
use tower::{Layer, ServiceExt, service_fn};

/// The body of a request before it is metered.
pub type InnerBody = BoxBody<Bytes, std::io::Error>;

/// A middleware that meters an application of poem by a layer of talea-http. Add it last, so that it is around all
/// others.
///
/// ```no_run
/// use poem::listener::TcpListener;
/// use poem::{EndpointExt, Route, Server, get, handler};
/// use talea_frameworks::poem::Meter;
/// use talea_http::Endpoints;
///
/// #[handler]
/// fn item() -> &'static str {
///     "an item"
/// }
///
/// # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
/// let registry = talea::Registry::new()?;
/// let endpoints = Endpoints::new(&registry)?;
/// let find = endpoints.finder(&[("GET", "/items/{id}"), ("GET", "/files/{*path}")])?;
/// let app = Route::new().at("/items/:id", get(item)).with(Meter(endpoints.layer(find)));
/// Server::new(TcpListener::bind("127.0.0.1:3000")).run(app).await?;
/// # Ok(())
/// # }
/// ```
///
/// With poem-openapi the routes are in the document that it makes: read `OpenApiService::spec()` as a
/// [`talea_http::OpenApi`], and take its `finder`.
///
/// An error of the application becomes its response here, so that it is recorded as the client gets it.
#[derive(Clone, Copy, Debug)]
pub struct Meter<F>(pub EndpointLayer<F>);

impl<E, F> Middleware<E> for Meter<F>
where
    E: ::poem::Endpoint,
    F: Fn(&HttpRequest<InnerBody>) -> Endpoint + Clone + Send + Sync,
{
    type Output = MeteredEndpoint<E, F>;

    fn transform(&self, inner: E) -> MeteredEndpoint<E, F> {
        MeteredEndpoint { inner, layer: self.0.clone() }
    }
}

/// An application that is metered by a [`Meter`].
#[derive(Debug)]
pub struct MeteredEndpoint<E, F> {
    inner: E,
    layer: EndpointLayer<F>,
}

impl<E, F> ::poem::Endpoint for MeteredEndpoint<E, F>
where
    E: ::poem::Endpoint,
    F: Fn(&HttpRequest<InnerBody>) -> Endpoint + Clone + Send + Sync,
{
    type Output = Response;

    async fn call(&self, request: Request) -> ::poem::Result<Response> {
        let (mut rest, body) = request.into_parts();
        let mut request = HttpRequest::new(InnerBody::from(body));
        exchange_heads(&mut request, &mut rest);
        let mut rest = Some(rest);
        let inner = service_fn(|mut request: HttpRequest<RequestBody<InnerBody>>| {
            let rest = rest.take().map(|mut rest| {
                exchange_heads(&mut request, &mut rest);
                rest
            });
            let body = Body::from(BoxBody::new(request.into_body()));
            async {
                // It is called once.
                let request = rest.map(|rest| Request::from_parts(rest, body)).unwrap_or_default();
                let response = self.inner.call(request).await;
                let response = response.map(IntoResponse::into_response);
                let response = response.unwrap_or_else(|error| error.into_response());
                Ok::<HttpResponse<InnerBody>, Infallible>(response.into())
            }
        });
        let Ok(response) = self.layer.layer(inner).oneshot(request).await;
        let (parts, body) = response.into_parts();
        let parts = ResponseParts {
            status: parts.status,
            version: parts.version,
            headers: parts.headers,
            extensions: parts.extensions,
        };
        Ok(Response::from_parts(parts, Body::from(BoxBody::new(body))))
    }
}

/// Swaps all that both types of a request have.
fn exchange_heads<B>(request: &mut HttpRequest<B>, parts: &mut RequestParts) {
    std::mem::swap(request.method_mut(), &mut parts.method);
    std::mem::swap(request.uri_mut(), &mut parts.uri);
    std::mem::swap(request.version_mut(), &mut parts.version);
    std::mem::swap(request.headers_mut(), &mut parts.headers);
    std::mem::swap(request.extensions_mut(), &mut parts.extensions);
}
