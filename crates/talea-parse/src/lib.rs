//! Reads and checks the Prometheus text format 0.0.4 and OpenMetrics text 1.0.
//!
//! ```
//! use talea_parse::{Line, Reader, Syntax};
//!
//! let text = "# TYPE shop_orders_total counter\nshop_orders_total{country=\"pe\"} 3\n";
//! for line in Reader::new(text, Syntax::Text) {
//!     if let Line::Sample(sample) = line? {
//!         assert_eq!((sample.name.as_ref(), sample.value), ("shop_orders_total", 3.0));
//!         assert!(sample.labels.iter().eq([("country".into(), "pe".into())]));
//!     }
//! }
//! # Ok::<(), talea_parse::ParseError>(())
//! ```
//!
//! - [`Reader`] yields a text line by line. It copies only text that must be unescaped.
//!   It takes the texts that the parser of Prometheus 3 takes, which are more than the formats
//!   allow.
//! - [`families`] groups samples with the metadata of their metric. [`text`] returns the
//!   samples alone.
//! - [`page`] reads the page of a service into the types of talea-page, from either text or, with the
//!   feature `protobuf`, from protobuf.
//! - [`check`] reports every line that the format's documentation forbids, and gives advice.
//! - [`Syntax::of_content_type`] says whether Prometheus takes a Content-Type, and which format it
//!   names.

mod check;
mod content_type;
mod departure;
mod error;
mod families;
mod labels;
mod lexer;
mod line;
mod metric_type;
mod number;
mod page;
mod plain;
mod reader;
mod sample;
mod scan;
mod syntax;

pub use check::{Finding, Severity, check};
pub use content_type::ContentTypeError;
pub use error::ParseError;
pub use families::{FamilyRef, families};
pub use labels::LabelsRef;
pub use line::Line;
pub use metric_type::MetricType;
pub use page::{PageError, page, utf8};
pub use reader::{Reader, text};
pub use sample::{ExemplarRef, Sample, SampleRef};
pub use syntax::Syntax;
