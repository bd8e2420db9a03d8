//! A layer for a router that exists already.

use std::any::TypeId;
use std::task::{Context, Poll};

use ::axum::extract::{MatchedPath, Request};
use ::axum::response::{IntoResponse, Response};
use talea::{Error, Registry};
use tower_service::Service;

use super::future::OfService;
use super::site::start;
use crate::endpoints::Endpoints;
use crate::exchange::Exchange;
use crate::routes::{RouteError, Routes};

/// Meters an `axum::Router` that exists already, told by the routes that it matches.
///
/// ```
/// use axum::{Router, routing::get};
/// use talea_http::axum::Layer;
///
/// # fn main() -> Result<(), talea::Error> {
/// let registry = talea::Registry::for_test()?;
/// let app: Router = Router::new()
///     .route("/items/{id}", get(async || "an item"))
///     .layer(Layer::new(&registry)?);
/// # Ok(())
/// # }
/// ```
///
/// Put it on last, so that it stands outside of all other layers. The series of a route are
/// born when it is first matched: those of every known method and of `_OTHER`, since the router
/// does not say which it answers. [`routes`](Self::routes) makes them beforehand, and only those
/// that there are. What no route matched is `_unmatched`.
///
/// # Cost
///
/// `Router::layer` boxes each route again, which takes axum two or three allocations and
/// about 120 ns a request, whatever the layer does. [`Router`](super::Router) has no such cost;
/// nor has this layer around the router from outside, where only listed routes are known:
///
/// ```no_run
/// use axum::{Router, ServiceExt, extract::Request, routing::get};
/// use talea_http::axum::Layer;
/// use tower_layer::Layer as _;
///
/// # async fn serve(listener: tokio::net::TcpListener) -> Result<(), Box<dyn std::error::Error>> {
/// # let registry = talea::Registry::for_test()?;
/// let app: Router = Router::new().route("/items/{id}", get(async || "an item"));
/// let metered = Layer::new(&registry)?.routes(&[("GET", "/items/{id}")])?.layer(app);
/// axum::serve(listener, ServiceExt::<Request>::into_make_service(metered)).await?;
/// # Ok(())
/// # }
/// ```
///
/// The layer itself finds the route by its address, not by its text, and costs what
/// [`Router`](super::Router) says.
#[derive(Clone, Copy, Debug)]
pub struct Layer {
    routes: Routes,
}

/// A metered service, by a [`Layer`].
#[derive(Clone, Copy, Debug)]
pub struct Metered<S> {
    inner: S,
    routes: Routes,
}

impl Layer {
    /// One under the default names.
    ///
    /// # Errors
    ///
    /// As [`Opts::register`](crate::Opts::register).
    pub fn new(registry: &Registry) -> Result<Self, Error> {
        Ok(Self::by(&Endpoints::new(registry)?))
    }

    /// One under names of one's choice.
    pub fn by(endpoints: &Endpoints) -> Self {
        Self { routes: Routes::new(*endpoints) }
    }

    /// Lists routes, as methods and templates; their series are made at once. `ANY` stands
    /// for every method. Other methods of a listed route are `_OTHER`, and a `HEAD` that is
    /// not listed is a `GET`.
    ///
    /// Inside of `Router::layer` axum says which route it matched, and what it matched by none is
    /// `_unmatched`. Around the router from outside, routes are found by the path, as axum finds
    /// them, and others are `_unmatched`; there a listed route that the router does not have is
    /// counted for what its fallback answers.
    ///
    /// # Errors
    ///
    /// A template is not one that axum takes, or clashes with another; a method is not a
    /// known one.
    pub fn routes(mut self, routes: &[(&str, &str)]) -> Result<Self, RouteError> {
        self.routes.list(routes)?;
        Ok(self)
    }
}

impl<S: 'static> tower_layer::Layer<S> for Layer {
    type Service = Metered<S>;

    fn layer(&self, inner: S) -> Metered<S> {
        // `Router::layer` puts it around each route, and around the fallback.
        let is_inside = TypeId::of::<S>() == TypeId::of::<::axum::routing::Route>();
        let routes = if is_inside { self.routes.by_match() } else { self.routes };
        Metered { inner, routes }
    }
}

impl<S> Service<Request> for Metered<S>
where
    S: Service<Request>,
    S::Response: IntoResponse + 'static,
{
    type Response = Response;
    type Error = S::Error;
    type Future = OfService<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    // Out of line, as `OfService::of` says.
    #[inline(never)]
    fn call(&mut self, request: Request) -> Self::Future {
        let open = |exchange: &mut Exchange, request: &mut Request| {
            let matched = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
            let meters = self.routes.meters(matched, request.method(), request.uri().path());
            start(meters, exchange, request);
        };
        OfService::of(&mut self.inner, request, open)
    }
}
