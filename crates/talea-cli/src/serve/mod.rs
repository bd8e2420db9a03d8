//! The agent, `talea serve`: reads regions from outside the processes that count in them, and
//! serves them all as one page.
//!
//! [`Agent`] knows the regions, of which some come and go; `routes` is what it answers,
//! and [`crate::web`] who may ask.

mod agent;
mod answered;
pub mod command;
mod connections;
mod meters;
mod region;
mod routes;
mod sources;
mod trouble;

pub use agent::Agent;
pub use sources::{Source, Sources};
