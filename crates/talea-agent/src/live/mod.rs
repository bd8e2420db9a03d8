//! A service as it runs: what the latest readings of its metrics say about its endpoints.
//!
//! A [`Reading`] has all families at one time; `requests` finds the requests in one, under any naming convention;
//! [`Window`] keeps those of the last seconds and says what happened in them; [`Watch`] marks processes that
//! started or died in between.

mod health;
mod marks;
mod reading;
mod regions;
mod requests;
mod step;
mod window;
pub mod words;

pub(crate) use self::marks::ENDS;
#[cfg(test)]
pub(crate) use self::marks::LAST_DEATH;
pub use self::marks::{Kind, Mark, PROCESSES, Watch, is_of_marks};
pub use self::reading::{Reading, answered, unix_millis};
pub use self::regions::{ANSWERED, CREATED, KnownRegions, REGION, UP, region_of};
pub use self::requests::{Counts, Value};
pub use self::step::{Moment, Step};
pub use self::window::{Row, Table, Window};

/// Whether a family may be one of those that moments are made of.
pub(crate) fn is_of_live(name: &str) -> bool {
    requests::is_of_requests(name) || health::is_of_health(name)
}
