//! Outgoing requests: a tower layer for hyper-util's client and any other HTTP client, and a middleware
//! for reqwest (feature `reqwest`).
//!
//! A request is recorded by its server and by the template of its path, which [`Servers`] lists: the number
//! of series depends on that list, never on URLs. Any other server is `_other`, any other path `_unmatched`.
//!
//! ```
//! use bytes::Bytes;
//! use http_body_util::Full;
//! use hyper_util::client::legacy::{Client, connect::HttpConnector};
//! use hyper_util::rt::TokioExecutor;
//! use talea_http::RequestBody;
//! use talea_http::client::{Layer, Servers};
//! use tower::ServiceBuilder;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let registry = talea::Registry::for_test()?;
//! let servers = Servers::new()
//!     .server("stock.example", &["/items", "/items/{id}"])
//!     .server("payments.example:8443", &["/charges"]);
//! let client: Client<HttpConnector, RequestBody<Full<Bytes>>> =
//!     Client::builder(TokioExecutor::new()).build_http();
//! let client = ServiceBuilder::new().layer(Layer::new(&servers, &registry)?).service(client);
//! # let _ = client;
//! # Ok(())
//! # }
//! ```
//!
//! A layer or middleware that retries or follows redirects counts once if it is inside of the meter, and each
//! attempt counts if it is outside. reqwest follows redirects inside.
//!
//! # Metrics
//!
//! [`Opts::convention`] chooses between two conventions, for [`Opts::client`].
//! [`Convention::Prometheus`](crate::Convention::Prometheus):
//!
//! | metric | type | labels |
//! |---|---|---|
//! | `http_client_requests_in_flight` | gauge | `method`, `server`, `route` |
//! | `http_client_requests_total` | counter | these, `status` and `error` |
//! | `http_client_request_outcomes_total` | counter | `method`, `server`, `route`, `outcome` |
//! | `http_client_request_duration_seconds` | histogram, to the head of the response | `method`, `server`, `route` |
//! | `http_client_exchange_duration_seconds` | histogram, to the end of its body; with [`Opts::exchange_durations`] | the same |
//! | `http_client_request_body_size_bytes`, `http_client_response_body_size_bytes` | histogram, with [`Opts::body_sizes`] | the same |
//!
//! - `status` is the class, or the code by [`Opts::status_label`]; `_OTHER` if there was no response.
//! - `error` is empty if there was a response; otherwise an [`ErrorKind`]: `resolve`, `connect`, `tls`, `timeout`,
//!   `body`, `redirect`, `cancelled`, `other`.
//! - `outcome` is `complete` if the whole body was read, `aborted` if the caller dropped the request or the
//!   response before, `failed` after an error in place of the response or in its body, `timed_out` after a limit
//!   of time and for the statuses 408 and 504.
//!
//! [`Convention::OpenTelemetry`](crate::Convention::OpenTelemetry), after semantic conventions 1.44:
//!
//! | metric | stability |
//! |---|---|
//! | `http_client_request_duration_seconds`, to the end of the body | stable |
//! | `http_client_active_requests`, `http_client_request_body_size_bytes`, `http_client_response_body_size_bytes` | development |
//!
//! | label | value | stability |
//! |---|---|---|
//! | `http_request_method` | as sent, or `_OTHER` | stable |
//! | `server_address`, `server_port` | as listed; the port is empty if the list names none | stable |
//! | `http_response_status_code` | the code; empty without a response | stable |
//! | `error_type` | an error as above, `body` if the response's body fails, the code of a 4xx or 5xx | stable |
//! | `url_template` | the template; empty if none matches | development |
//!
//! `network.protocol.version`, which is recommended there, is left out.
//!
//! The series of a `GET` exist from the start, others from the first such request on.
//!
//! [`ConnectionLayer`] meters the connections of hyper-util's client: open ones, those that were made or failed, and
//! the time that this took.
//!
//! Cost: the layer allocates nothing for a request; the middleware allocates for reqwest's boxed future and
//! for the body that it watches.

mod connections;
mod error_kinds;
mod layer;
#[cfg(feature = "reqwest")]
mod middleware;
mod servers;

pub use self::connections::{ConnectFuture, ConnectionLayer, MeteredConnection, MeteredConnector};
pub use self::layer::{Layer, MeteredClient, ResponseFuture};
#[cfg(feature = "reqwest")]
pub use self::middleware::Middleware;
pub use self::servers::Servers;
#[cfg(doc)]
use crate::Opts;
pub use crate::labels::error_kind::ErrorKind;
