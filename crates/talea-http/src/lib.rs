//! Meters HTTP endpoints from their declaration: it makes both the router and the meters, so no
//! endpoint is served without a meter, and its series exist before the first request.
//!
//! ```toml
//! [dependencies]
//! talea = "0.1"      # cargo add talea
//! talea-http = "0.1" # cargo add talea-http
//! axum = "0.8"
//! tokio = { version = "1", features = ["macros", "net", "rt-multi-thread"] }
//! ```
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
//! # Metrics
//!
//! Each request is recorded once, at its route and outside of all middleware: as in flight, by its
//! status, with the time to the head of the response, and by its outcome, which is one of *complete*,
//! *aborted*, *panicked* and *timed out*. [`Opts::detailed`] adds the time to the end of its body, and
//! the bytes of both bodies, each once it has ended. [`Convention`] has the names.
//!
//! The number of series depends on the declaration only, never on requests: a route is recorded as
//! its template, and undeclared routes, methods, status codes and hosts have one label value each.
//!
//! # Where to put the meter
//!
//! | service | use | allocations added |
//! |---|---|---|
//! | a new one on axum | [`axum::Router`] in place of axum's own | none |
//! | an existing `axum::Router` | [`axum::meter`], which reads its routes | none |
//! | an existing `axum::Router` inside of other layers | [`axum::Layer`] | none |
//! | hyper, or any tower service | [`Endpoints::layer`] | none |
//! | tonic, or any gRPC service or client | [`grpc::Layer`] | none; a client's, one |
//! | outgoing requests of hyper-util, reqwest or tower | [`client::Layer`] | none |
//! | any of them, with an OpenAPI document | [`OpenApi`] | none |
//! | actix-web | [`actix::Meter`] | none; two for a request's body |
//! | any other server | [`ManualExchange`] | none |
//!
//! That holds for requests without a body and responses whose body is buffered. With axum's types,
//! each body that is watched as it passes adds one, see [`axum::Router`]. With
//! [`Convention::OpenTelemetry`], whose sizes have the status as a label, a request's body adds
//! one.
//!
//! # Scrapes
//!
//! [`MetricsServer`] serves `GET /metrics` on a port, a thread and a runtime of its own.
//! [`Exposition`] is a service for a router that you have. Both use the format that the scraper
//! asks for (text, OpenMetrics or protobuf), compressed with the features `gzip` and `zstd`, if the
//! scraper accepts that. They send large scrapes piece by piece, so that a slow
//! client costs the memory of a snapshot and no more, and a client that stops reading not even that
//! for long.
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `axum` | yes | the routers and layers of [`axum`], and [`Exposition`] as a handler |
//! | `actix` | no | [`actix`]: the middleware for actix-web |
//! | `costs` | no | [`Opts::costs`]: the CPU time of requests, by route; on Unix |
//! | `client` | no | [`client`]: the layer for outgoing requests |
//! | `reqwest` | no | the same, with the middleware for reqwest |
//! | `grpc` | no | [`grpc`]: the layer for gRPC servers and clients, with prost |
//! | `openapi` | no | [`OpenApi`]: endpoints from a document |
//! | `gzip` | no | scrapes compressed by gzip |
//! | `zstd` | no | scrapes compressed by zstd; needs a C compiler |
//! | `server` | yes | [`MetricsServer`] and [`server`], on axum and hyper |
//! | `http2` | no | HTTP/2 for [`server::Server`] |
//! | `tsc` | yes | durations by the CPU's time stamp counter if that is invariant; it is calibrated for 20 ms as the program starts. Without it, the system's clock, which takes longer to read |
//! | `tracing` | no | exemplars: the OpenTelemetry trace of a request, beside its latency |
//!
//! A service on hyper or another tower stack needs none of them: [`Endpoints::layer`] meters it,
//! and [`Exposition`] is a tower service.

#[cfg(feature = "actix")]
pub mod actix;
#[cfg(feature = "axum")]
pub mod axum;
#[cfg(feature = "client")]
pub mod client;
// Each feature takes a part of the three modules that all doors share.
#[cfg_attr(not(all(feature = "grpc", feature = "reqwest")), allow(dead_code, unreachable_pub))]
mod convention;
mod endpoints;
mod exposition;
#[cfg(feature = "grpc")]
pub mod grpc;
#[cfg_attr(not(all(feature = "grpc", feature = "reqwest")), allow(dead_code, unreachable_pub))]
mod labels;
mod layer;
#[cfg(feature = "server")]
mod metrics_server;
#[cfg(feature = "openapi")]
mod openapi;
mod opts;
#[cfg_attr(not(all(feature = "grpc", feature = "reqwest")), allow(dead_code, unreachable_pub))]
mod request;
#[cfg(feature = "server")]
pub mod server;
#[cfg(any(feature = "actix", feature = "axum", feature = "openapi"))]
mod templates;
pub mod turns;

#[cfg(feature = "axum")]
pub use axum::RouteError;
pub use convention::Convention;
pub use endpoints::Endpoints;
#[doc(hidden)]
pub use exposition::accepts_gzip;
pub use exposition::{Exposition, ExpositionBody};
pub use labels::status::StatusLabel;
pub use layer::{EndpointLayer, MeteredFuture, MeteredService};
#[cfg(feature = "server")]
pub use metrics_server::{MetricsServer, MetricsServerBuilder, ServeError, serve};
#[cfg(feature = "openapi")]
pub use openapi::{OpenApi, OpenApiError};
#[cfg(all(feature = "costs", unix))]
pub use opts::Allocations;
pub use opts::Opts;
pub use request::bodies::{RequestBody, ResponseBody};
pub use request::manual::ManualExchange;
pub use request::marks::{CaughtPanic, HandlerError};
pub use request::meters::Endpoint;
pub use request::upgrade::UpgradeGuard;
#[cfg(feature = "server")]
pub use server::Limits;
#[cfg(all(unix, feature = "server"))]
pub use server::UnixAddress;
#[cfg(any(feature = "actix", feature = "axum", feature = "openapi"))]
pub use templates::TemplateError;

/// The example in the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The examples in the book compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/how-to/http.md")]
#[doc = include_str!("../../../docs/how-to/frameworks.md")]
#[doc = include_str!("../../../docs/first-steps/axum.md")]
#[doc = include_str!("../../../docs/first-steps/rust.md")]
struct Book;
