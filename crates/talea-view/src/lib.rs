//! What Talea's programs show to people: the requests of a page of metrics, text for a terminal, and
//! documents with tables and charts.
//!
//! - [`families`]: families of any page, requests' durations and quantiles.
//! - [`screen`]: a command's results, notes and tables; [`printable`] escapes untrusted text.
//! - [`document`]: an HTML page of its own; [`chart`] draws.
//! - [`write_whole`]: a file that is written whole or not at all.
// What is public is for the programs of this repository; the modules' first lines say what they do.
#![allow(missing_docs)]

pub mod chart;
pub mod document;
pub mod families;
mod printable;
pub mod screen;
mod whole_file;

pub use self::printable::printable;
pub use self::whole_file::{complete_in, temporary_in, write_whole};
