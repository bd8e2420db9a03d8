//! What the differences may be, in user CPU time: system time has two modes here, from one
//! process to the next, whatever the variant.

use serde::Serialize;

use crate::experiment::Course;
use crate::statistics::Estimate;
use crate::variants::{CONTROL, METERED, PLAIN, QUANTILES};

/// The budget of metering a request, in microseconds.
const METERING: f64 = 0.15;

/// Whether a budget is met, by what was found.
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

    /// Whether all of the interval says the same as what was found.
    pub(crate) fn is_sure(&self) -> bool {
        let within = |bound: Option<f64>| Some(bound? <= self.limit?);
        self.met.is_some()
            && within(self.found.low) == self.met
            && within(self.found.high) == self.met
    }
}

/// The budgets beside what was found.
pub(crate) fn judge(course: &Course) -> Vec<Verdict> {
    let user = |variant| course.of(variant, |found| found.user);
    let more = |this, that| Estimate::of_differences(&user(this), &user(that));
    verdicts(more(METERED, PLAIN), more(QUANTILES, METERED), more(CONTROL, PLAIN)).into()
}

fn verdicts(metering: Estimate, quantiles: Estimate, control: Estimate) -> [Verdict; 2] {
    [
        Verdict::new("(b) - (a): metering", metering, Some(METERING)),
        // What the same service may differ from itself by is no difference.
        Verdict::new("(c) - (b): quantiles", quantiles, control.farthest()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(value: f64, reach: f64) -> Estimate {
        Estimate { value, low: Some(value - reach), high: Some(value + reach) }
    }

    #[test]
    fn metering_may_cost_so_much() {
        for (cost, met) in [(0.1, true), (0.2, false)] {
            let [metering, _] = verdicts(within(cost, 0.3), within(0.0, 0.1), within(0.0, 0.1));
            assert_eq!(metering.met, Some(met), "{cost}");
        }
    }

    #[test]
    fn a_verdict_is_sure_where_the_whole_interval_says_so() {
        for (cost, sure) in [(0.05, true), (0.1, false), (0.2, false), (0.25, true)] {
            let [metering, _] = verdicts(within(cost, 0.08), within(0.0, 0.1), within(0.0, 0.1));
            assert_eq!(metering.is_sure(), sure, "{cost}");
        }
    }

    #[test]
    fn quantiles_may_differ_by_as_much_as_a_service_from_itself() {
        let control = within(-0.02, 0.05);
        for (cost, met) in [(-0.3, true), (0.06, true), (0.08, false)] {
            let [_, quantiles] = verdicts(within(0.1, 0.1), within(cost, 0.1), control);
            assert_eq!(quantiles.met, Some(met), "{cost}");
        }
    }

    #[test]
    fn one_round_says_nothing_surely() {
        let one_round = Estimate { value: 0.0, low: None, high: None };
        let [metering, quantiles] = verdicts(one_round, one_round, one_round);
        assert!(quantiles.limit.is_none() && quantiles.met.is_none());
        assert!(!metering.is_sure() && !quantiles.is_sure());
    }
}
