//! What is told of requests over real connections, in every way of metering and under every
//! convention: whatever clients, handlers and bodies do, each request is told once, as it
//! went, and nothing stays in flight.

mod answer;
mod app;
mod bounded;
mod case;
mod client;
mod inside;
mod mix;
mod routes;
mod series;
mod server;
mod table;
mod way;
mod witness;
