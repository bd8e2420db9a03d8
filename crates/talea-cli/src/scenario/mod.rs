//! Scenarios: the requests that a client makes, in their order.
//!
//! A scenario is read from a file (`file`) once. Each of its texts is a [`Template`] whose
//! variables have places, so that a client fills in values without looking names up.

mod definition;
mod file;
mod names;
mod template;
mod value;
mod variable;

pub use self::definition::{Capture, Expected, Metrics, Scenario, Step};
pub use self::file::ScenarioError;
pub use self::names::{Names, Quantity, Selector};
pub use self::template::{Template, Unfilled};
pub use self::value::{Captured, Values};
pub use self::variable::{Source, Variable};
