//! Shared by the tests: a client, requests in process, counts in a registry, waiting.

pub(crate) mod client;
pub(crate) mod counts;
pub(crate) mod requests;
pub(crate) mod wait;
