//! A layer for a router that exists already, and the service that it makes.

use std::any::TypeId;
use std::task::{Context, Poll};

use ::axum::Router;
use ::axum::extract::{MatchedPath, Request};
use ::axum::response::{IntoResponse, Response};
use talea::{Error, Registry};
use tower_service::Service;

use super::future::OfService;
use super::route_table::routes_of;
use super::site::start;
use crate::endpoints::Endpoints;
use crate::exchange::Exchange;
use crate::routes::{ReadRoute, RouteError, Routes};

/// Meters a service around an `axum::Router`. For a router alone [`meter`](super::meter) is
/// shorter, and enough. The layer is for a router with other layers around it from outside that
/// are to be metered too:
///
/// ```no_run
/// use axum::{Router, ServiceExt, extract::Request, routing::get};
/// use talea_http::axum::Layer;
/// use tower_layer::Layer as _;
///
/// # async fn serve(
/// #     listener: tokio::net::TcpListener,
/// #     outer: impl tower_layer::Layer<Router, Service = Router>,
/// # ) -> Result<(), Box<dyn std::error::Error>> {
/// # let registry = talea::Registry::for_test()?;
/// let app: Router = Router::new().route("/items/{id}", get(async || "an item"));
/// let metered = Layer::new(&registry)?.routes_of(&app)?;
/// let app = metered.layer(outer.layer(app));
/// axum::serve(listener, ServiceExt::<Request>::into_make_service(app)).await?;
/// # Ok(())
/// # }
/// ```
///
/// From outside, a request's route is found by its path among those that
/// [`routes_of`](Self::routes_of) and [`routes`](Self::routes) have listed; any other is
/// `_unmatched`.
///
/// # On the router
///
/// `Router::layer` takes it too, put on last. A route is known there by axum's `MatchedPath`, so
/// none needs to be listed. The series of one that is not exist from its first request on: those
/// of every known method and of `_OTHER`, since axum does not say there which it answers. And
/// axum boxes each route again, which takes two or three allocations and about 120 ns a request,
/// whatever the layer does.
#[derive(Clone, Copy, Debug)]
pub struct Layer {
    routes: Routes,
}

/// A metered service, by a [`Layer`].
#[derive(Clone, Copy, Debug)]
pub struct Metered<S> {
    inner: S,
    /// None if a layer inside meters.
    routes: Option<Routes>,
}

impl<S> Metered<S> {
    /// One that tells nothing, since a layer inside does.
    pub(super) fn unmetered(inner: S) -> Self {
        Self { inner, routes: None }
    }
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

    /// Lists all routes of a router, with the methods that it declares; their series are made at
    /// once. The router is not called for that.
    ///
    /// # Errors
    ///
    /// The routes cannot be read: axum shows them by `Debug` alone, and in a version of axum that
    /// this crate does not know that may be another text. List them by [`routes`](Self::routes).
    pub fn routes_of<S>(self, router: &Router<S>) -> Result<Self, RouteError> {
        let routes = routes_of(router);
        routes.and_then(|routes| self.read(&routes)).ok_or_else(RouteError::unreadable)
    }

    /// Lists routes that were read. None if one cannot be found by its path.
    pub(super) fn read(mut self, routes: &[ReadRoute]) -> Option<Self> {
        self.routes.read(routes).then_some(self)
    }

    /// Lists routes by hand, as methods and templates; their series are made at once. `ANY`
    /// stands for every method. Other methods of a listed route are `_OTHER`, and a `HEAD` that
    /// is not listed is a `GET`. Where there is a router, [`routes_of`](Self::routes_of) reads
    /// them, and a mistake cannot be made.
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
        Metered { inner, routes: Some(routes) }
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
            let Some(routes) = &self.routes else { return };
            let matched = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
            let meters = routes.meters(matched, request.method(), request.uri().path());
            start(meters, exchange, request);
        };
        OfService::of(&mut self.inner, request, open)
    }
}
