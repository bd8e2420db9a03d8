//! The window of a summary that keeps samples, and its slices of time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The slices that may have observations of a window: as many as its length takes, and the one in which it begins.
pub(super) const SLICES: usize = 5;

/// How long samples count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(super) millis: u64,
}

impl Window {
    pub(crate) fn of(time: Duration) -> Self {
        Self { millis: u64::try_from(time.as_millis()).unwrap_or(u64::MAX) }
    }

    /// The definition of a family of samples: the window and the labels.
    pub(super) fn encode(self, labels: &[impl AsRef<str>]) -> Vec<u8> {
        let mut out = self.millis.to_le_bytes().to_vec();
        for label in labels {
            out.extend((label.as_ref().len() as u32).to_le_bytes());
            out.extend(label.as_ref().as_bytes());
        }
        out
    }

    /// How long a slice is: a quarter.
    pub(super) fn slice(self) -> u64 {
        self.millis.div_ceil(SLICES as u64 - 1).max(1)
    }

    pub(super) fn slice_of(self, millis: u64) -> u64 {
        millis / self.slice()
    }

    /// When it begins that ends now.
    pub(super) fn begin(self, now: u64) -> u64 {
        now.saturating_sub(self.millis)
    }
}

/// Milliseconds since 1970; 0 before that.
pub(crate) fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX) & (u64::MAX >> 2)
}
