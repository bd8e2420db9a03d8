//! The budgets of metering, in user CPU time: system time has two modes here, from one
//! process to the next, with each variant.

use super::variants::{CONTROL, METERED, PLAIN, QUANTILES};
use crate::statistics::Estimate;
use crate::turns::Rounds;
use crate::verdict::Verdict;

/// The budget of metering a request, in microseconds.
const METERING: f64 = 0.15;

pub(super) fn judge(found: &Rounds) -> Vec<Verdict> {
    let user = |variant| found.of(variant, |found| found.server.user);
    let more = |this, that| Estimate::of_differences(&user(this), &user(that));
    verdicts(more(METERED, PLAIN), more(QUANTILES, METERED), more(CONTROL, PLAIN)).into()
}

fn verdicts(metering: Estimate, quantiles: Estimate, control: Estimate) -> [Verdict; 2] {
    [
        Verdict::new("(b) - (a): metering", metering, Some(METERING)),
        // A service may differ from itself by as much.
        Verdict::new("(c) - (b): quantiles", quantiles, control.farthest()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metering_has_a_limit_and_quantiles_that_of_the_control() {
        let within = |value: f64, reach: f64| Estimate {
            value,
            low: Some(value - reach),
            high: Some(value + reach),
        };
        let control = within(-0.02, 0.05);
        for (metering, quantiles, met) in
            [(0.1, -0.3, [true, true]), (0.1, 0.06, [true, true]), (0.2, 0.08, [false, false])]
        {
            let verdicts = verdicts(within(metering, 0.3), within(quantiles, 0.1), control);
            assert_eq!(verdicts.map(|verdict| verdict.met), met.map(Some));
        }
    }
}
