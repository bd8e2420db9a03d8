//! Samples: what was observed lately, kept in the region itself.
//!
//! A [`Summary`](crate::Summary) shows what a reader saw change, so a reader that is younger
//! than the window cannot tell all of it. Where processes live for some requests, all
//! readers are young. A [`SampledSummary`] therefore keeps what was observed, with the time,
//! in a family beside its own, which is not shown:
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
//! storage beside the cells of a [`Histogram`](crate::Histogram) is needed because those only ever
//! grow: what they held some minutes ago is known to a reader that has stayed, and to no other.

mod lately;
mod names;
mod ring;
mod sampled_summary;
mod shown;
mod slices;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(crate) use lately::Lately;
pub(crate) use names::{KIND, find, is_own, own_name, owner_of};
pub use sampled_summary::SampledSummary;

/// How long samples count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    millis: u64,
}

impl Window {
    pub(crate) fn of(time: Duration) -> Self {
        Self { millis: u64::try_from(time.as_millis()).unwrap_or(u64::MAX) }
    }

    /// What tells families of samples of one name apart: this, and the labels.
    fn encode(self, labels: &[impl AsRef<str>]) -> Vec<u8> {
        let mut out = self.millis.to_le_bytes().to_vec();
        for label in labels {
            out.extend((label.as_ref().len() as u32).to_le_bytes());
            out.extend(label.as_ref().as_bytes());
        }
        out
    }

    /// How long a slice is: a fifth.
    fn slice(self) -> u64 {
        self.millis.div_ceil(slices::PLACES as u64).max(1)
    }

    /// The number of the slice that a time is in.
    fn slice_of(self, millis: u64) -> u64 {
        millis / self.slice()
    }

    /// When it begins that ends now.
    fn begin(self, now: u64) -> u64 {
        now.saturating_sub(self.millis)
    }
}

/// Milliseconds since 1970; 0 before that.
pub(crate) fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX) & (u64::MAX >> 2)
}
