//! How a request ended.

/// How a request ended; each ends in exactly one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The whole response was handed over.
    Complete,
    /// The client went away, or the service or a body failed.
    Aborted,
    Panicked,
    TimedOut,
    /// An outgoing request ended with an error, in place of its response or in the response's body.
    Failed,
}

impl Outcome {
    pub(crate) const ALL: [Self; 5] =
        [Self::Complete, Self::Aborted, Self::Panicked, Self::TimedOut, Self::Failed];

    /// Whether its series exist from the start: an alert sees a first panic only as an increase.
    pub(crate) fn is_likely(self) -> bool {
        !matches!(self, Self::TimedOut | Self::Failed)
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Aborted => "aborted",
            Self::Panicked => "panicked",
            Self::TimedOut => "timed_out",
            Self::Failed => "failed",
        }
    }
}
