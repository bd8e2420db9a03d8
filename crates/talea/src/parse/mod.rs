//! Reading what others expose.

mod text;

pub use text::{ParseError, Sample, text};
