//! Lines on standard error, about what is not an error of a call.

use std::fmt::Display;
use std::io::Write;

/// Writes a line in one piece, so that the lines of several processes stay whole. If standard error takes
/// nothing, as on a full disk, the line is lost, and the program goes on.
pub fn notice(text: impl Display) {
    let line = format!("talea: {text}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}
