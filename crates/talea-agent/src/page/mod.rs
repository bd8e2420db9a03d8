//! The live page: a service in a browser, as it runs and as it was.
//!
//! A [`Feed`] takes a reading a second. It keeps the [`History`](crate::history::History), and makes of each
//! reading a `point`: what happened since the reading before. Browsers get points as server-sent events
//! (`events`) and those of the past from the history (`range`, `series`). `numbering` has the numbers of
//! endpoints and buckets that points use, `assets` are the
//! page's own files, which the folder `web` of the repository builds.

mod assets;
pub mod clients;
mod events;
mod feed;
mod numbering;
mod point;
mod process;
mod query;
mod range;
mod routes;
mod series;

pub use self::assets::add_safety;
#[cfg(test)]
pub(crate) use self::feed::tests::add_second;
pub use self::feed::{About, Feed, Recorded, now};
pub use self::process::Process;
pub use self::query::parameters;
pub use self::routes::{PAST_IS_BUSY, busy, routes};
