//! Encoders: from a snapshot to what a scraper reads.

mod text;

pub use text::CONTENT_TYPE as TEXT_CONTENT_TYPE;
pub(crate) use text::{text, write_float};
