//! Check: the violations in a text of metrics, and advice.
//!
//! The text comes from a file, from standard input or over HTTP (`source`); the
//! findings are those of [`talea_parse::check`].

pub(crate) mod command;
mod source;

pub(crate) use source::Source;
