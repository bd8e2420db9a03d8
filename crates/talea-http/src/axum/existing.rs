//! A router that exists already, metered from outside.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use ::axum::Router;
use ::axum::serve::{IncomingStream, Listener};
use talea::{Error, Registry};
use tower_service::Service;

use super::matched::{Layer, Metered};
use super::route_table::routes_of;
use crate::endpoints::Endpoints;
use crate::routes::ReadRoute;

/// Meters an `axum::Router` that exists already, under the default names. Serve what it returns
/// in the router's place.
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
/// The routes and their methods are read from the router, which is not called for that. All
/// series of all endpoints exist from then on, at 0, under the names that
/// [`Router`](super::Router) would give them. A method that a route does not declare is `_OTHER`,
/// a request that no route matches is `_unmatched`, and a service that is nested under a prefix
/// is `PREFIX/{*rest}`. The meter stands outside of every layer on the router.
///
/// A handler that takes `ConnectInfo` needs a service that is made with it:
/// `axum::ServiceExt::<Request>::into_make_service_with_connect_info::<SocketAddr>(metered)`.
///
/// # Cost
///
/// That of [`Router`](super::Router) with the cost of finding the route by the request's path, as
/// axum does once more. That allocates nothing for a route with at most three captures.
///
/// # Other versions of axum
///
/// The routes are read from the router's `Debug` text, which axum may change. A router whose text
/// is not known in full is metered by a [`Layer`] on it instead. Requests are counted then too,
/// but the series of a route exist from its first request on and for every method, a request
/// costs axum's box for a layer, and a nested service is `_unmatched`.
///
/// # Errors
///
/// As [`Opts::register`](crate::Opts::register).
pub fn meter(router: Router, registry: &Registry) -> Result<Metered<Router>, Error> {
    Ok(meter_by(router, &Endpoints::new(registry)?))
}

/// The same under names of one's choice, by [`Opts::register`](crate::Opts::register).
pub fn meter_by(router: Router, endpoints: &Endpoints) -> Metered<Router> {
    let routes = routes_of(&router);
    meter_routes(router, endpoints, routes.as_deref())
}

fn meter_routes(
    router: Router,
    endpoints: &Endpoints,
    routes: Option<&[ReadRoute]>,
) -> Metered<Router> {
    let layer = Layer::by(endpoints);
    let read = routes.and_then(|routes| layer.read(routes));
    // axum's own services are made so: the state is given once, not for each request.
    let router = router.with_state(());
    match read {
        Some(layer) => tower_layer::Layer::layer(&layer, router),
        None => Metered::unmetered(router.layer(layer)),
    }
}

/// For `axum::serve`, as axum's router.
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
    fn a_router_whose_routes_cannot_be_read_is_metered_all_the_same() {
        let registry = Registry::for_test().unwrap();
        let endpoints = Endpoints::new(&registry).unwrap();
        let router = || Router::new().route("/items/{id}", get(async || "an item"));
        let unknown = ReadRoute {
            path: "/{".to_owned(),
            template: "/{".to_owned(),
            methods: Vec::new(),
            answers_each: false,
        };
        for (n, routes) in [None, Some(&[unknown][..])].into_iter().enumerate() {
            let mut app = meter_routes(router(), &endpoints, routes);
            let request = |uri| Request::builder().uri(uri).body(Body::empty()).unwrap();
            for uri in ["/items/7", "/nowhere"] {
                let mut cx = Context::from_waker(Waker::noop());
                let answer = pin!(Service::call(&mut app, request(uri)));
                assert!(answer.poll(&mut cx).is_ready());
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
