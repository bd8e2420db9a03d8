//! The room in which a request is metered, from its arrival to its end. Each is recorded once.
//!
//! | step | file | recorded |
//! |---|---|---|
//! | arrival | `arrival.rs` | it is in flight |
//! | the head of the response | `response.rs` | the status, and the time to the head |
//! | a poll of the handler | `costs.rs` | its costs, if they are asked for |
//! | the end | `end.rs` | the outcome, the time to the end, the bytes of both bodies |
//!
//! A gRPC call takes the same steps, but its status comes at the end (`call.rs`); an
//! outgoing request may have an error in place of its response (`outgoing.rs`).
//!
//! Each step finds its handles from the ones of the step before, in `meters.rs`. A door (a router, a
//! layer, [`ManualExchange`](manual::ManualExchange)) finds the endpoint of a request, and calls
//! [`Exchange::open`](arrival::Exchange) with the request and `Exchange::respond` with its response.

mod aborted_body;
pub(crate) mod arrival;
pub(crate) mod attributes;
pub(crate) mod bodies;
#[cfg(feature = "grpc")]
pub(crate) mod call;
mod clock;
pub(crate) mod costs;
pub(crate) mod end;
pub(crate) mod families;
mod label_texts;
pub(crate) mod manual;
pub(crate) mod marks;
pub(crate) mod meters;
#[cfg(feature = "client")]
mod outgoing;
pub(crate) mod request_size;
pub(crate) mod response;
pub(crate) mod upgrade;
