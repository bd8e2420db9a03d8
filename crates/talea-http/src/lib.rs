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
//! # What is told
//!
//! Once per request, at the route, whatever middleware stands inside: that it is in flight;
//! its status; the time to its response's head and, apart, to the end of its body; the bytes
//! of both bodies as they pass; and in exactly one way how it ended, *complete*, *aborted*,
//! *panicked* or *timed out*. [`Convention`] has the names.
//!
//! The number of series depends on the declaration alone, never on what clients send: routes
//! are told as their templates, and routes, methods, status codes and hosts that nobody
//! declared have one name each.
//!
//! # Where to put the meter
//!
//! | service | by | allocations added |
//! |---|---|---|
//! | a new one on axum | [`axum::Router`] in place of axum's own | none |
//! | an `axum::Router` that exists | [`axum::meter`], which reads its routes | none |
//! | the same with layers around it from outside | [`axum::Layer`] | none |
//! | hyper, or any tower service | [`Endpoints::layer`] | none |
//!
//! These are for requests without a body, and responses whose body is in memory. With axum's
//! types each body that is watched as it passes is one more, see [`axum::Router`]; a request's
//! body one by [`Convention::OpenTelemetry`], whose sizes are told by the status.
//!
//! # Scrapes
//!
//! [`MetricsServer`] answers `GET /metrics` on a port, a thread and a runtime of its own.
//! [`Exposition`] does the same as a service for a router that is there already. Both
//! speak the format that the scraper asks for (text, OpenMetrics or protobuf), compressed by gzip
//! where it takes that, or by zstd with the feature `zstd`, and send large scrapes piece by piece, so that a slow client costs
//! a snapshot's memory and no more, and one that stops reading not even that for long.
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `axum` | yes | the routers and layers of [`axum`], and [`Exposition`] as a handler |
//! | `gzip` | yes | scrapes compressed by gzip |
//! | `zstd` | no | scrapes compressed by zstd; needs a C compiler |
//! | `server` | yes | [`MetricsServer`] and [`server`], on axum and hyper |
//! | `http2` | no | HTTP/2 for [`server::Server`] |
//!
//! A service on hyper or another tower stack needs none of them: [`Endpoints::layer`] meters it, and
//! [`Exposition`] is a tower service.

mod arrival;
#[cfg(feature = "axum")]
pub mod axum;
mod body;
mod broken;
mod case;
mod caught_panic;
mod convention;
mod endpoints;
mod exchange;
mod exposition;
mod families;
mod handler_error;
mod layer;
mod meters;
#[cfg(feature = "server")]
mod metrics_server;
mod opts;
mod outcome;
#[cfg(feature = "axum")]
mod routes;
#[cfg(feature = "server")]
pub mod server;
mod status;
pub mod turns;
mod upgrade;

pub use body::{RequestBody, ResponseBody};
pub use caught_panic::CaughtPanic;
pub use convention::Convention;
pub use endpoints::{Endpoint, Endpoints};
pub use exposition::{Exposition, ExpositionBody};
pub use handler_error::HandlerError;
pub use layer::{Layer, Metered, MeteredFuture};
#[cfg(feature = "server")]
pub use metrics_server::{MetricsServer, MetricsServerBuilder};
pub use opts::Opts;
#[cfg(feature = "axum")]
pub use routes::RouteError;
#[cfg(feature = "server")]
pub use server::Limits;
pub use status::StatusLabel;
pub use upgrade::UpgradeGuard;

/// The example in the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The examples in the guide compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/http.md")]
struct Guide;
