//! Reading a region from outside the processes that use it, without mapping it.

mod copy;
mod holdings;
pub(crate) mod overview;
pub(crate) mod reader;
pub(crate) mod standing;
