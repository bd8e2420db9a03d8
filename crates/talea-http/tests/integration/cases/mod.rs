//! Requests over real connections, in every way of metering and under every convention: whatever
//! clients, handlers and bodies do, each request is recorded once, with the right labels, and none
//! stays in flight.

mod bodies;
mod case;
mod client;
mod handlers;
mod layers;
mod metering;
mod mix;
mod routes;
mod scanner;
mod series;
mod server;
mod table;
mod witness;
