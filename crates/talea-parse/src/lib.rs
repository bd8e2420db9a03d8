//! Reads and checks metrics in the Prometheus text format 0.0.4 and in OpenMetrics text 1.0.
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
//! - [`Reader`] reads a text line by line and copies only what is escaped. It accepts what
//!   Prometheus accepts: in text 0.0.4 more than the format's documentation allows, in
//!   OpenMetrics nothing beyond the grammar except names in quotes.
//! - [`families`] groups samples with their metadata; [`text`] returns the samples alone.
//! - [`check`] reports everything that a format's documentation forbids, and what is better
//!   avoided.

mod check;
mod departure;
mod error;
mod families;
mod labels;
mod lexer;
mod metric_type;
mod number;
mod plain;
mod reader;
mod sample;
mod scan;
mod syntax;

pub use check::{Finding, Severity, check};
pub use error::ParseError;
pub use families::{FamilyRef, families};
pub use labels::LabelsRef;
pub use metric_type::MetricType;
pub use reader::{Line, Reader};
pub use sample::{ExemplarRef, Sample, SampleRef, text};
pub use syntax::Syntax;
