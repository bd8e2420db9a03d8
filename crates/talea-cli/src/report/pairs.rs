//! Cases that make the same number of requests with clients and iterations distributed otherwise.

use crate::figures::{NONE, measured, measured_or_none, whole};
use crate::study::Finding;

/// Two cases of one T; the one with more clients first.
pub(super) struct Pair<'a> {
    pub(super) many: &'a Finding,
    pub(super) few: &'a Finding,
}

/// All pairs, by the order of their first case.
pub(super) fn of(findings: &[Finding]) -> Vec<Pair<'_>> {
    let total = |finding: &Finding| finding.clients.checked_mul(finding.iterations);
    let mut pairs = Vec::new();
    for (at, one) in findings.iter().enumerate() {
        for other in &findings[at + 1..] {
            if total(one) == total(other) && one.clients != other.clients {
                let (many, few) =
                    if one.clients > other.clients { (one, other) } else { (other, one) };
                pairs.push(Pair { many, few });
            }
        }
    }
    pairs
}

/// One line of a comparison, as it is shown.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) many: String,
    pub(super) few: String,
    /// How many times the second number the first one is.
    pub(super) times: String,
}

impl Pair<'_> {
    /// What the two cases are compared by.
    pub(super) fn rows(&self) -> [Row; 6] {
        let Self { many, few } = self;
        [
            Row::measured("Client time, s", Some(many.client_seconds), Some(few.client_seconds)),
            Row::measured("Mean response time, ms", many.mean_response_ms, few.mean_response_ms),
            Row::measured("p99 response time, ms", many.client_p99_ms, few.client_p99_ms),
            Row::measured(
                "Server CPU, s",
                Some(many.server_cpu_seconds),
                Some(few.server_cpu_seconds),
            ),
            Row::counted(
                "Additional tasks, peak",
                many.peak_additional_tasks,
                few.peak_additional_tasks,
            ),
            Row::counted("Ready tasks, peak", many.peak_ready_tasks, few.peak_ready_tasks),
        ]
    }
}

impl Row {
    fn measured(name: &'static str, many: Option<f64>, few: Option<f64>) -> Self {
        Self {
            name,
            many: measured_or_none(many),
            few: measured_or_none(few),
            times: times(many, few),
        }
    }

    fn counted(name: &'static str, many: u64, few: u64) -> Self {
        let times = times(Some(many as f64), Some(few as f64));
        Self { name, many: whole(many), few: whole(few), times }
    }
}

/// How many times the second number the first one is: `1.42×`.
fn times(first: Option<f64>, second: Option<f64>) -> String {
    match (first, second) {
        (Some(first), Some(second)) if second > 0.0 => format!("{}×", measured(first / second)),
        _ => NONE.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_needs_two_numbers() {
        assert_eq!(times(Some(3.0), Some(2.0)), "1.50×");
        assert_eq!(times(Some(3.0), Some(0.0)), NONE);
        assert_eq!(times(None, Some(1.0)), NONE);
    }
}
