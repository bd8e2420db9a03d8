//! Samples: recent observations, stored in the region itself.
//!
//! A [`Summary`](crate::Summary) shows the change that a reader saw, so a reader that is younger
//! than the window does not know all of it. If processes live for only some requests, all readers
//! are young. A [`SampledSummary`] therefore stores observations with their times, in a family
//! beside its own, which is not shown:
//!
//! ```text
//!   name samples   one series for each of the summary's, of the same label text
//!     cell 0       the next place of the ring
//!     segment 0, 1 the ring: the latest 128 observations, each a stamp and a value
//!     segment 2…   observations that have left the ring, counted by time and size: `slices`
//! ```
//!
//! An observation is in the ring, and later in a slice. While a window has no more than the ring
//! holds, its quantiles are exact. Beyond that they are the quantiles of native buckets. A third
//! storage beside the cells of a [`Histogram`](crate::Histogram) is needed because those only grow:
//! only a reader that has stayed knows their values of some minutes ago.

mod names;
mod recent;
mod ring;
mod sampled_summary;
mod shown;
mod slices;
mod storage;
mod window;

pub(crate) use names::{find, is_own, own_name, owner_of};
pub use sampled_summary::SampledSummary;
