//! What the queue holds: requests that are encoded, with what is in them.

use std::ops::{Add, AddAssign, Sub};

/// How many values of each kind a request has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) samples: u64,
    pub(crate) histograms: u64,
    pub(crate) exemplars: u64,
}

impl Counts {
    /// Samples of either kind. Exemplars are counted beside them.
    pub(crate) fn values(self) -> u64 {
        self.samples + self.histograms
    }

    /// Of each kind, the smaller of two counts.
    pub(crate) fn min(self, other: Self) -> Self {
        Self {
            samples: self.samples.min(other.samples),
            histograms: self.histograms.min(other.histograms),
            exemplars: self.exemplars.min(other.exemplars),
        }
    }
}

impl Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            samples: self.samples + other.samples,
            histograms: self.histograms + other.histograms,
            exemplars: self.exemplars + other.exemplars,
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Counts {
    type Output = Self;

    /// Less others, at least 0.
    fn sub(self, other: Self) -> Self {
        Self {
            samples: self.samples.saturating_sub(other.samples),
            histograms: self.histograms.saturating_sub(other.histograms),
            exemplars: self.exemplars.saturating_sub(other.exemplars),
        }
    }
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) counts: Counts,
    /// The body in its newest version, compressed as it is sent.
    pub(crate) body: Vec<u8>,
}

/// All requests with the values of one instant, at least one. No series is in two of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Collection {
    /// Milliseconds from 1970 to that instant.
    pub(crate) time: i64,
    pub(crate) records: Vec<Record>,
}

impl Collection {
    pub(crate) fn counts(&self) -> Counts {
        self.records.iter().fold(Counts::default(), |all, record| all + record.counts)
    }

    /// The memory or disk that its bodies take.
    pub(crate) fn bytes(&self) -> usize {
        self.records.iter().map(|record| record.body.len()).sum()
    }
}
