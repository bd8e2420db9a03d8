//! The sources of label values: the endpoint, the status, the outcome, errors, extensions.

pub(crate) mod endpoint;
pub(crate) mod error_kind;
pub(crate) mod extension;
pub(crate) mod outcome;
pub(crate) mod status;
