//! The metric types, as numbers in the region and as names in the formats.

/// The type of a metric, as the text formats name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Only goes up.
    Counter = 1,
    /// Goes up and down.
    Gauge = 2,
    /// Counts observations by size.
    Histogram = 3,
    /// Says in its labels what does not change while the process runs; it is 1.
    Info = 4,
    /// A set of states, each of which is 0 or 1.
    StateSet = 5,
    /// Shows quantiles of recent observations.
    Summary = 6,
}

impl Kind {
    pub(crate) const ALL: [Self; 6] =
        [Self::Counter, Self::Gauge, Self::Histogram, Self::Info, Self::StateSet, Self::Summary];

    pub(crate) fn from_u8(n: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == n)
    }

    /// The type's name in OpenMetrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Info => "info",
            Self::StateSet => "stateset",
            Self::Summary => "summary",
        }
    }
}
