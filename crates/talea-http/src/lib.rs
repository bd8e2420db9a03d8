//! HTTP endpoints that are metered because they are declared: the declaration
//! makes both the router and the meters, so an endpoint cannot be served without
//! its meter, and all its series are there before the first request.
//!
//! ```no_run
//! use talea::Registry;
//! use talea_http::MetricsServer;
//! use talea_http::axum::{Router, get};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let registry = Registry::new()?;
//!     let app = Router::new()
//!         .route("/hello/{name}", get(|| async { "hello" }))
//!         .metered(&registry)?; // an axum::Router
//!     let _metrics = MetricsServer::bind(([127, 0, 0, 1], 9464).into(), &registry)?;
//!     let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
//!     Ok(axum::serve(listener, app).await?)
//! }
//! ```
//!
//! # What is recorded
//!
//! | metric | type | labels |
//! |---|---|---|
//! | `http_requests_in_flight` | gauge | `method`, `route` |
//! | `http_requests_total` | counter | `method`, `route`, `status` |
//! | `http_request_duration_seconds` | histogram, to the response's head | `method`, `route` |
//!
//! Once per request, at the route, whatever middleware stands inside.
//!
//! - `route` is the template as declared (`/hello/{name}`), or `_unmatched`.
//! - `method` is the declared one; `HEAD` on a `GET` endpoint counts as `GET`. A
//!   method that the route does not declare, and any method where no route
//!   matched, is `_OTHER`.
//! - `status` is the class, `1xx` to `5xx`, or the code, as
//!   [`Router::status_label`](axum::Router::status_label) says; `_OTHER` where no status was sent
//!   because the client went away. A handler that panics counts as a 500.
//!
//! So the number of series depends on the declaration alone, never on what
//! clients send.
//!
//! # Scrapes
//!
//! [`MetricsServer`] answers `GET /metrics` on a port, a thread and a runtime of its own.
//! [`Exposition`] does the same as a service for a router that is there already. Both
//! speak the format that the scraper asks for (text, OpenMetrics or protobuf), with gzip
//! where it takes that, and send large scrapes piece by piece, so that a slow client costs
//! a snapshot's memory and no more, and one that stops reading not even that for long.

pub mod axum;
mod endpoint;
mod exposition;
mod meter;
mod metrics_server;

pub use endpoint::StatusLabel;
pub use exposition::{Exposition, ExpositionBody};
pub use metrics_server::MetricsServer;

/// The example in the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
