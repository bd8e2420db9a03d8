//! Inspect: the region that a service counts in, read from outside while it runs, is stopped
//! or is dead.
//!
//! The way of it: a file or a process → [`talea::outside`] → [`Inspection`], which is the JSON →
//! tables. What a region holds is text of somebody else, so nothing of it reaches a terminal as
//! it is (`printable`).

pub mod command;
mod inspection;
mod table;

pub use inspection::Inspection;
