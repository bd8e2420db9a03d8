//! gRPC: a tower layer for servers and clients, of tonic or any other service over HTTP/2.
//!
//! Each call is recorded once, by its method and by the status that it ends with: in the headers if it fails
//! at once, in the trailers otherwise. [`Services`] has the known methods; their series exist from the start,
//! and a call of any other method is recorded as `_OTHER`.
//!
//! ```
//! use talea_http::grpc::{self, MethodType, Services};
//! use tonic::transport::Server;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let registry = talea::Registry::for_test()?;
//! // Or Services::from_descriptors(FILE_DESCRIPTOR_SET)?, which has all methods of all services.
//! let services = Services::new()
//!     // shop_server::SERVICE_NAME
//!     .methods("shop.v1.Shop", MethodType::Unary, &["Show", "Create"])
//!     .methods("shop.v1.Shop", MethodType::ServerStream, &["Watch"]);
//! let server = Server::builder().layer(grpc::Layer::server(&services, &registry)?);
//! // server.add_service(ShopServer::new(shop)).serve(address).await?;
//! # let _ = server;
//! # Ok(())
//! # }
//! ```
//!
//! A client's layer goes around its channel. tonic's channel has one type of body, so a call of a client
//! allocates once for it:
//!
//! ```
//! use talea_http::grpc::{self, Services};
//! use tonic::body::Body;
//! use tonic::transport::Endpoint;
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let registry = talea::Registry::for_test()?;
//! # let services = Services::new();
//! let channel = Endpoint::from_static("http://shop:50051").connect_lazy();
//! let channel = channel.map_request(|request: http::Request<grpc::RequestBody<Body>>| request.map(Body::new));
//! let metered = ServiceBuilder::new().layer(grpc::Layer::client(&services, &registry)?).service(channel);
//! // let client = ShopClient::new(metered);
//! # let _ = metered;
//! # Ok(())
//! # }
//! ```
//!
//! # Metrics
//!
//! [`Opts::convention`] chooses between two conventions, for [`Opts::grpc_server`] and [`Opts::grpc_client`].
//!
//! [`Convention::Prometheus`](crate::Convention::Prometheus) has the names of go-grpc-middleware's provider, so that its dashboards work:
//!
//! | metric (of a client: `grpc_client_…`) | type | labels |
//! |---|---|---|
//! | `grpc_server_started_total` | counter | `grpc_type`, `grpc_service`, `grpc_method` |
//! | `grpc_server_handled_total` | counter | these and `grpc_code`, such as `NotFound` |
//! | `grpc_server_msg_received_total`, `grpc_server_msg_sent_total` | counter, of messages | `grpc_type`, `grpc_service`, `grpc_method` |
//! | `grpc_server_handling_seconds` | histogram, to the end of the call | the same |
//! | `grpc_server_in_flight` | gauge | the same |
//! | `grpc_server_outcomes_total` | counter | these and `outcome`: `complete`, `aborted`, `panicked` or `timed_out` |
//! | `grpc_server_request_size_bytes`, `grpc_server_response_size_bytes` | histogram, with [`Opts::body_sizes`] | `grpc_type`, `grpc_service`, `grpc_method` |
//!
//! The last three rows are not in the provider. All codes of a known method have a series from the start.
//!
//! [`Convention::OpenTelemetry`](crate::Convention::OpenTelemetry) has `rpc_server_call_duration_seconds` and
//! `rpc_client_call_duration_seconds`, by `rpc_system_name` (`grpc`), `rpc_method` (`shop.v1.Shop/Show`),
//! `rpc_response_status_code` (`NOT_FOUND`) and `error_type` (the code, if it is an error: for a client any
//! but `OK`), and calls in flight, which the conventions do not have, in `rpc_server_active_calls` and
//! `rpc_client_active_calls`. Source: semantic conventions 1.44, RPC metrics
//! (release candidate). A known method has a series for `OK`
//! from the start. The server that a client calls is a constant label, `server_address`.
//!
//! # How calls end
//!
//! | end | code | outcome |
//! |---|---|---|
//! | a status, of whatever code | that code | `complete`; `timed_out` for `DEADLINE_EXCEEDED` |
//! | the client cancels it, or goes away | `CANCELLED` | `aborted` |
//! | it is dropped after nine tenths of its `grpc-timeout`, or after [`Opts::timed_out_after`] | `DEADLINE_EXCEEDED` | `timed_out` |
//! | the service panics | `UNKNOWN` | `panicked` |
//! | the service returns an error | `UNKNOWN`; for a client `UNAVAILABLE` | `aborted` |
//! | the body of the response fails | the same | `aborted` |
//! | a response without a status | by its HTTP status: `UNIMPLEMENTED` for 404 | `complete` |
//!
//! The layer belongs inside of a layer that translates gRPC-Web, whose trailers are part of the body.
//!
//! Cost: a call allocates nothing, and each of its bodies is scanned at the prefixes of messages only.

mod bodies;
mod layer;
mod messages;
mod services;

pub use self::bodies::{RequestBody, ResponseBody};
pub use self::layer::{Layer, MeteredFuture, MeteredService};
pub use self::services::{DescriptorError, MethodType, Services};
#[cfg(doc)]
use crate::Opts;
