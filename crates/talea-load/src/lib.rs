//! A load generator for HTTP: clients that run a scenario, counted exactly.
//!
//! A client keeps one connection ([`Session`]), sends one request at a time, waits for the
//! answer, and reads all of its body. Its requests and their results go into a tally of
//! its own, so that no counter is shared between clients; the tallies are merged at the end.
//! Response times go into a Talea histogram for each step, which all clients share ([`Meters`]). Clients run on
//! threads of their own, beside whatever else this process does.
//!
//! The [`Model`] decides when a request is made: the clients themselves (closed), or a
//! schedule that knows nothing of the answers (open), which `dispatch` hands to clients.

mod client;
mod coalescing_waker;
pub mod connect;
mod connection;
mod cookies;
pub mod descriptors;
mod dispatch;
mod distributions;
mod dry_run;
mod duration;
mod event_counter;
mod fetch;
mod health;
mod judge;
mod meters;
mod model;
mod outcome;
mod plan;
mod progress;
mod published;
mod redirect;
mod request;
mod run;
pub mod samples;
pub mod scenario;
mod server_memory;
mod session;
mod shard_record;
mod steps;
pub mod stop;
mod summary;
mod tally;
mod target;
mod threads;
mod time_limit;
mod times;
mod websocket;

pub use self::connection::Protocol;
pub use self::distributions::Distributions;
pub use self::dry_run::{dry_run, set_up, tear_down};
pub use self::duration::parse_duration;
pub use self::fetch::fetch;
pub use self::meters::{Meters, Window};
pub use self::model::{Arrivals, Model, Rate, Stage, Until};
pub use self::outcome::{Outcome, Phases};
pub use self::plan::Plan;
pub use self::run::run;
pub use self::server_memory::{MemoryWatch, ServerMemory};
pub use self::session::{Answer, Keep, Session};
pub use self::shard_record::{Merged, ShardRecord, Slice, Start, Timeline};
pub use self::steps::StepSummary;
pub use self::summary::{CheckSummary, KindOfFailure, NumberSummary, Summary, kinds_of_failure};
pub use self::target::Target;
pub use self::times::{LowerBounds, Milliseconds, Times};
