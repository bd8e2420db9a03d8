//! Load: clients that run a scenario, counted exactly.
//!
//! A client keeps one connection (`line`), sends one request at a time, waits for the
//! answer, and reads all of its body. Its requests and their results go into a [`Tally`] of
//! its own, so that no counter is shared between clients; the tallies are merged at the end.
//! Response times go into one Talea histogram that all clients share. Clients run on threads of
//! their own (`threads`), beside whatever else this process does.
//!
//! The [`Model`] decides when a request is made: the clients themselves (closed), or a
//! schedule that knows nothing of the answers (open), which `dispatch` hands to clients.

mod bell;
mod client;
pub mod command;
mod connection;
mod dispatch;
mod health;
mod line;
mod meters;
mod model;
mod outcome;
mod patience;
mod plan;
mod request;
mod rounds;
mod run;
pub mod samples;
mod summary;
mod tally;
mod target;
mod threads;

pub use self::connection::{Protocol, Trouble};
pub use self::health::Health;
pub use self::line::{Answer, Line};
pub use self::meters::{Meters, Window};
pub use self::model::{Arrivals, Model, Rate, Stage, Until};
pub use self::outcome::Outcome;
pub use self::plan::Plan;
pub use self::request::NoRequest;
pub use self::run::run;
pub use self::samples::Sample;
pub use self::summary::{KindOfFailure, Summary, kinds_of_failure};
pub use self::tally::{Failure, Tally};
pub use self::target::Target;
