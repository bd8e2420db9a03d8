//! What was found beside what is asked for.

/// Whether a budget is met.
#[derive(Debug, PartialEq)]
pub(crate) struct Verdict {
    pub(crate) budget: &'static str,
    pub(crate) found: f64,
    /// What may be found at most.
    pub(crate) limit: f64,
}

impl Verdict {
    pub(crate) fn is_met(&self) -> bool {
        self.found <= self.limit
    }
}
