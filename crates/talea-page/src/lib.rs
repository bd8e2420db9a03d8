//! The model of a page of metrics, whatever it was read from: a snapshot of a registry, a page in
//! protobuf, in Prometheus' text format or in OpenMetrics.
//!
//! A page is a `Vec` of [`Family`]. `talea` fills it from a snapshot, `talea-parse` from the bytes of a
//! page. All of them give the same page of the same values, as far as a format has them:
//!
//! | | snapshot | protobuf | OpenMetrics | Prometheus' text |
//! |---|---|---|---|---|
//! | [`Kind::Info`], [`Kind::StateSet`] | yes | gauges | yes | gauges |
//! | [`Family::unit`] | yes | if the page has it | yes | no |
//! | [`Series::created`] | yes | yes | yes | no |
//! | exemplars of counters and classic buckets | yes | yes | yes | no |
//! | [`Histogram::native`] and its exemplars | yes | yes | no | no |
//!
//! ```
//! use talea_page::{Family, Kind, Label, Number, Series, Value};
//!
//! let number = Number { value: 3.0, exemplar: None };
//! let orders = Family {
//!     name: "shop_orders_total".to_owned(),
//!     kind: Kind::Counter,
//!     series: vec![Series {
//!         labels: vec![Label::new("country", "pe")],
//!         value: Value::Number(number),
//!         created: None,
//!     }],
//!     ..Family::default()
//! };
//! assert!(orders.kind.only_grows());
//! assert_eq!(orders.series[0].label("country"), Some("pe"));
//! assert_eq!(orders.series[0].value.number(), Some(3.0));
//! ```

mod family;
mod histogram;
mod value;

pub use family::{Family, Kind, Label, Series};
pub use histogram::{Bucket, Histogram, Native};
pub use value::{Exemplar, Number, Quantile, Summary, Value};
