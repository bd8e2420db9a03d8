//! A result compared with its budget.

use serde::Serialize;

use crate::statistics::Estimate;

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Verdict {
    pub(crate) budget: String,
    pub(crate) found: Estimate,
    /// The highest value that meets the budget; unknown if there is only one round.
    pub(crate) limit: Option<f64>,
    pub(crate) met: Option<bool>,
}

impl Verdict {
    /// A result with its limit, if the limit is known.
    pub(crate) fn new(budget: impl Into<String>, found: Estimate, limit: Option<f64>) -> Self {
        let met = limit.map(|limit| found.value <= limit);
        Self { budget: budget.into(), found, limit, met }
    }

    /// The verdict in words. It is sure if it is the same for the whole interval.
    pub(crate) fn words(&self) -> &'static str {
        let within = |bound: Option<f64>| Some(bound? <= self.limit?);
        let is_sure = within(self.found.low) == self.met && within(self.found.high) == self.met;
        match (self.met, is_sure) {
            (Some(true), true) => "met",
            (Some(true), false) => "met, not surely",
            (Some(false), true) => "missed",
            (Some(false), false) => "missed, not surely",
            (None, _) => "not known from one round",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_sure_if_the_whole_interval_agrees() {
        for (cost, words) in
            [(0.05, "met"), (0.1, "met, not surely"), (0.2, "missed, not surely"), (0.25, "missed")]
        {
            let found = Estimate { value: cost, low: Some(cost - 0.08), high: Some(cost + 0.08) };
            assert_eq!(Verdict::new("x", found, Some(0.15)).words(), words, "{cost}");
            assert_eq!(Verdict::new("x", found, None).words(), "not known from one round");
        }
    }
}
