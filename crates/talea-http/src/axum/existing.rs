//! Meters an existing router from outside.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use ::axum::Router;
use ::axum::serve::{IncomingStream, Listener};
use talea::{Error, Registry};
use tower_service::Service;

use super::debug_routes::routes_of;
use super::router_layer::{Layer, Metered};
use super::routes::RouteSpec;
use crate::endpoints::Endpoints;

/// Meters an existing `axum::Router` with default options. Serve the result in its place.
///
/// ```no_run
/// use axum::{Router, routing::get};
///
/// # async fn serve(listener: tokio::net::TcpListener) -> Result<(), Box<dyn std::error::Error>> {
/// # let registry = talea::Registry::for_test()?;
/// let app: Router = Router::new().route("/items/{id}", get(async || "an item"));
/// axum::serve(listener, talea_http::axum::meter(app, &registry)?).await?;
/// # Ok(())
/// # }
/// ```
///
/// The routes and their methods are read from the router, without calling it. The series of all
/// endpoints exist from then on, at 0, with the same labels as by [`Router`](super::Router). A
/// method that a route does not declare is `_OTHER`, a request that no route matches is
/// `_unmatched`, and a service that is nested under a prefix is `PREFIX/{*rest}`. The meter is
/// outside of every layer on the router.
///
/// A layer that changes the path or the method of a request goes around the result:
/// `NormalizePathLayer::trim_trailing_slash().layer(meter(app, &registry)?)`.
///
/// A handler that takes `ConnectInfo` needs a service that provides it:
/// `axum::ServiceExt::<Request>::into_make_service_with_connect_info::<SocketAddr>(metered)`.
///
/// # Cost
///
/// The cost of [`Router`](super::Router), and a search for the route by the request's path, which
/// axum repeats. It allocates nothing for a route with at most three captures. Its tables live as
/// long as the program, also if the router is swapped for another: about 35 kB, and 4 kB a route.
///
/// # Other versions of axum
///
/// The routes are read from the router's `Debug` text, which axum may change. If any part of that
/// text is not known, a [`Layer`] on the router meters it instead. Requests are counted then too,
/// but the series of a route exist from its first request on and for every method, a request
/// costs axum's box for a layer, and a nested service is `_unmatched`.
///
/// # Errors
///
/// As [`Opts::register`](crate::Opts::register).
pub fn meter(router: Router, registry: &Registry) -> Result<Metered<Router>, Error> {
    Ok(meter_by(router, &Endpoints::new(registry)?))
}

/// Meters an existing `axum::Router`, as [`meter`] does, with options from
/// [`Opts::register`](crate::Opts::register).
pub fn meter_by(router: Router, endpoints: &Endpoints) -> Metered<Router> {
    let routes = routes_of(&router);
    meter_routes(router, endpoints, routes.as_deref())
}

fn meter_routes(
    router: Router,
    endpoints: &Endpoints,
    routes: Option<&[RouteSpec]>,
) -> Metered<Router> {
    let layer = Layer::by(endpoints);
    let listed = routes.and_then(|routes| layer.list(routes));
    // As axum's own services do: the state is given once, not for each request.
    let router = router.with_state(());
    match listed {
        Some(layer) => tower_layer::Layer::layer(&layer, router),
        None => Metered { inner: router.layer(layer), routes: None },
    }
}

/// `axum::serve` takes it, as it takes axum's router.
impl<L: Listener> Service<IncomingStream<'_, L>> for Metered<Router> {
    type Response = Self;
    type Error = Infallible;
    type Future = Ready<Result<Self, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: IncomingStream<'_, L>) -> Self::Future {
        ready(Ok(self.clone()))
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Waker;

    use ::axum::body::Body;
    use ::axum::extract::Request;
    use ::axum::routing::get;

    use super::*;

    #[test]
    fn a_router_whose_routes_cannot_be_read_is_metered_by_a_layer() {
        let registry = Registry::for_test().unwrap();
        let endpoints = Endpoints::new(&registry).unwrap();
        let unknown = RouteSpec::new("/{");
        for (n, routes) in [None, Some(&[unknown][..])].into_iter().enumerate() {
            let router = Router::new().route("/items/{id}", get(async || "an item"));
            let mut app = meter_routes(router, &endpoints, routes);
            for uri in ["/items/7", "/nowhere"] {
                let mut cx = Context::from_waker(Waker::noop());
                let request = Request::builder().uri(uri).body(Body::empty()).unwrap();
                let response = pin!(Service::call(&mut app, request));
                assert!(response.poll(&mut cx).is_ready());
            }
            let snapshot = registry.snapshot();
            for (method, route) in [("GET", "/items/{id}"), ("_OTHER", "_unmatched")] {
                let labels = [("method", method), ("route", route)];
                let count = snapshot.total("http_requests_total", &labels);
                assert_eq!(count, Some(n as f64 + 1.0), "{route}");
            }
        }
    }
}
