//! The agent, `talea serve`: reads regions from outside the processes that count in them, and
//! serves them all as one page.
//!
//! [`Agent`] knows the regions, of which some come and go; `routes` has its answers,
//! and [`crate::web`] its rules for clients.

mod agent;
mod connections;
mod meters;
mod postmortem;
mod recorder;
mod region;
mod routes;
mod scrape_outcome;
mod source_error;
mod sources;

pub use agent::Agent;
pub use connections::register;
pub use recorder::Recorder;
pub use routes::routes;
pub use sources::Sources;
pub use sources::region_name_of;
