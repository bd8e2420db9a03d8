//! Scenarios: the requests that a client makes, in their order.
//!
//! A scenario is read from a file (`file`) once. Each of its texts is a template whose
//! variables have places, so that a client fills in values without looking names up.

mod captured;
mod check;
mod definition;
mod fault;
mod feed;
mod file;
mod grpc;
mod names;
mod step_text;
mod template;
mod think;
mod value;

pub(crate) use self::captured::CapturedValue;
pub use self::check::Check;
pub(crate) use self::definition::status_text;
pub use self::definition::{Body, Flow, Scenario, Step};
pub use self::feed::{Cursors, Feed, Shard};
pub use self::grpc::{GrpcMethod, NoReply};
pub(crate) use self::grpc::{grpc_status, grpc_status_text, in_either, json_of};
pub use self::names::{Names, Quantity, Selector};
pub use self::step_text::method;
pub(crate) use self::template::{NoRequest, Template};
pub use self::think::Think;
pub(crate) use self::value::{FeedEnded, Source, Values};
