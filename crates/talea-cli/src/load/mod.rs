//! Load: clients that run a scenario, counted exactly.
//!
//! A client keeps one connection (`line`), sends one request at a time, waits for the
//! answer, and reads all of its body. Its requests and their results go into a [`Tally`] of
//! its own, so that no counter is shared between clients; the tallies are merged at the end.
//! Response times go into a Talea histogram for each step, which all clients share. Clients run on threads of
//! their own (`threads`), beside whatever else this process does.
//!
//! The [`Model`] decides when a request is made: the clients themselves (closed), or a
//! schedule that knows nothing of the answers (open), which `dispatch` hands to clients.

mod client;
mod coalescing_waker;
mod connection;
mod dispatch;
mod health;
mod meters;
mod model;
mod outcome;
mod plan;
mod request;
mod run;
pub(crate) mod samples;
mod session;
mod steps;
mod summary;
mod tally;
mod target;
mod threads;
mod time_limit;

pub(crate) use self::connection::Protocol;
pub(crate) use self::meters::{Meters, Window};
pub(crate) use self::model::{Arrivals, Model, Rate, Stage, Until};
pub(crate) use self::outcome::{Outcome, Phases};
pub(crate) use self::plan::Plan;
pub(crate) use self::run::run;
pub(crate) use self::session::{Answer, Session};
pub(crate) use self::steps::StepSummary;
pub(crate) use self::summary::{KindOfFailure, Summary, kinds_of_failure};
pub(crate) use self::target::Target;
