//! A snapshot: every family, series and value at one instant, copied out.
//!
//! Planes are read in a fixed order and cells only grow, so of two snapshots the later never shows
//! less. Nothing in it points into the region.

mod batch;
mod copies;
mod mapped;
mod merge;
mod plain;
mod repeats;
mod runs;
mod series_copy;
mod take;
mod taking;
#[allow(unsafe_code)]
mod texts;

pub use copies::{FamilyCopy, LastUse, LivingProcess, OneCell, SegmentView, SeriesView, Snapshot};
#[cfg(all(target_os = "linux", not(loom), feature = "outside"))]
pub(crate) use take::take;
