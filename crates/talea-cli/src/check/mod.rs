//! Check: what a text of metrics does that its format forbids, and what is better avoided.
//!
//! The text comes from a file, from standard input or over HTTP (`source`, `fetch`); the
//! findings are those of [`talea_parse::check`].

pub mod command;
mod fetch;
mod source;

pub use source::Source;
