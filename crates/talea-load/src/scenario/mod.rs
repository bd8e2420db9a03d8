//! Scenarios: the requests that a client makes, in their order.
//!
//! A scenario is read from a file (`file`) once. Each of its texts is a template whose
//! variables have places, so that a client fills in values without looking names up.

mod definition;
mod file;
mod names;
mod template;
mod value;

pub(crate) use self::definition::status_text;
pub use self::definition::{Scenario, Step};
pub use self::names::{Names, Quantity, Selector};
pub(crate) use self::template::{NoRequest, Template};
pub(crate) use self::value::{CapturedValue, Values};
