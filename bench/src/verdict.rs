//! A result compared with its budget.

#[derive(Debug, PartialEq)]
pub(crate) struct Verdict {
    pub(crate) budget: &'static str,
    pub(crate) found: f64,
    /// The highest value that meets the budget.
    pub(crate) limit: f64,
}

impl Verdict {
    pub(crate) fn is_met(&self) -> bool {
        self.found <= self.limit
    }
}
