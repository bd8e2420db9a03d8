//! A service as it runs: what the latest readings of its metrics say about its endpoints.
//!
//! [`Source`] gives readings; [`requests`] finds the requests in one, under any naming convention;
//! [`Window`] keeps those of the last seconds and says what happened in them; [`Watch`] marks processes that
//! started or died in between.

mod health;
mod marks;
mod regions;
mod requests;
mod source;
mod step;
mod window;
pub(crate) mod words;

pub(crate) use self::marks::{Kind, Mark, PROCESSES, Watch, is_of_marks};
pub(crate) use self::regions::{ANSWERED, CREATED, KnownRegions, REGION, UP, region_of};
pub(crate) use self::requests::{Counts, Value};
pub(crate) use self::source::{Reading, Source, unix_millis};
pub(crate) use self::step::{Moment, Step};
pub(crate) use self::window::{Row, Table, Window};
#[cfg(test)]
pub(crate) use self::{marks::LAST_DEATH, step::tests::grown};

/// Whether a family may be one of those that moments are made of.
pub(crate) fn is_of_live(name: &str) -> bool {
    requests::is_of_requests(name) || health::is_of_health(name)
}
