//! A service as it runs: what the latest readings of its metrics say about its endpoints.
//!
//! [`Source`] gives readings; [`requests`] finds the requests in one, under any naming convention;
//! [`Window`] keeps those of the last seconds and says what happened in them.

mod requests;
mod source;
mod window;
pub(crate) mod words;

pub(crate) use self::source::{Reading, Source};
pub(crate) use self::window::{Row, Table, Window};
