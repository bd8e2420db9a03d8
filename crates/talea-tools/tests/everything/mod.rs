//! The participants of the test in which everything happens at once.

pub(crate) mod clients;
pub(crate) mod page;
pub(crate) mod writers;
