//! Shared by the tests: a client, requests in process, registries and their counts, waiting.

pub(crate) mod client;
pub(crate) mod counts;
pub(crate) mod orders;
pub(crate) mod requests;
pub(crate) mod wait;
