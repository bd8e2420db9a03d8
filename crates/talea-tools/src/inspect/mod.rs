//! Inspect: the region that a service counts in, read from outside while it runs, is stopped
//! or is dead.
//!
//! The way of it: a file or a process → [`talea::outside`] → [`Inspection`], which is the JSON →
//! tables. The text of a region is untrusted, so nothing of it reaches a terminal as
//! it is (`printable`).

pub(crate) mod command;
mod inspection;
mod table;

pub(crate) use inspection::Inspection;
