//! The service's log: lines on standard error.

use std::fmt::Display;
use std::io::{self, Write};

/// Writes a line. If standard error takes nothing, as on a full disk, the line is lost:
/// `eprintln!` would panic.
pub fn line(text: impl Display) {
    let _ = writeln!(io::stderr(), "items-api: {text}");
}
