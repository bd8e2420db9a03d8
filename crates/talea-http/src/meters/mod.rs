//! From an endpoint and a request to the handles of its series, each looked up once.

pub(crate) mod attributes;
pub(crate) mod context;
pub(crate) mod endpoint;
pub(crate) mod families;
pub(crate) mod request;
