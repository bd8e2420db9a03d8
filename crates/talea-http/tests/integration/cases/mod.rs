//! Requests over real connections, by every door and under every convention: whatever
//! clients, handlers and bodies do, each request is recorded once, with the right labels, and none
//! stays in flight.

pub(crate) mod bodies;
mod case;
mod client;
mod door;
pub(crate) mod framework;
mod handlers;
mod layers;
mod mix;
mod routes;
mod scanner;
mod series;
mod server;
mod table;
mod witness;
