//! The exposition formats, and the encoder that writes a snapshot or a page in one of them.

mod composite;
mod encoder;
mod escaping;
mod families;
mod format;
mod lines;
mod native_spans;
mod number;
mod openmetrics;
mod pages;
mod protobuf;
mod shown_names;
mod text;
mod text_format;
mod untyped;
mod writer;

pub(crate) use encoder::Encoder;
pub use escaping::Escaping;
pub use format::Format;
pub use number::write_canonical;
pub(crate) use number::write_float;
#[cfg(target_os = "linux")]
#[cfg(all(target_os = "linux", feature = "outside"))]
pub(crate) use openmetrics::unit;
pub(crate) use pages::Pages;
pub use text::CONTENT_TYPE as TEXT_CONTENT_TYPE;
pub(crate) use text_format::TextFormat;
