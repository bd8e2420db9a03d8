//! Cases that make the same number of requests with clients and iterations distributed otherwise.

use talea_load::figures::{NONE, measured, plain};

use crate::study::CaseResult;

/// Two cases of one T; the one with more clients first.
pub(super) struct Pair<'a> {
    pub(super) many: &'a CaseResult,
    pub(super) few: &'a CaseResult,
}

/// All pairs, by the order of their first case.
pub(super) fn of(results: &[CaseResult]) -> Vec<Pair<'_>> {
    let total = |result: &CaseResult| result.clients.checked_mul(result.iterations?);
    let mut pairs = Vec::new();
    for (at, one) in results.iter().enumerate() {
        for other in &results[at + 1..] {
            if total(one).is_some() && total(one) == total(other) && one.clients != other.clients {
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
    /// The measure by which the two cases are compared.
    pub(super) fn rows(&self) -> Vec<Row> {
        let Self { many, few } = self;
        let (by_many, by_few) = (many.server_values(), few.server_values());
        let counts = |one: Option<u64>| one.map(|count| count as f64);
        let all = [
            Row::of("Client time, s", Some(many.client.seconds), Some(few.client.seconds)),
            Row::of("Requests a second", many.client.mean_rate, few.client.mean_rate),
            Row::of("Median response time, ms", many.client.p50_ms, few.client.p50_ms),
            Row::of("Mean at the server, ms", by_many.mean_response_ms, by_few.mean_response_ms),
            Row::of("p99 response time, ms", many.client.p99_ms, few.client.p99_ms),
            Row::of("p99.9 response time, ms", many.client.p999_ms, few.client.p999_ms),
            Row::of("Server CPU, s", by_many.cpu_seconds, by_few.cpu_seconds),
            Row::of("Tasks created", counts(by_many.tasks_created), counts(by_few.tasks_created)),
            Row::of(
                "Additional tasks, peak",
                counts(by_many.peak_additional_tasks),
                counts(by_few.peak_additional_tasks),
            ),
            Row::of(
                "Ready tasks, peak",
                counts(by_many.peak_ready_tasks),
                counts(by_few.peak_ready_tasks),
            ),
            Row::of(
                "Waiting for the database, peak",
                counts(by_many.peak_pool_pending),
                counts(by_few.peak_pool_pending),
            ),
            Row::of(
                "Server memory, MiB, peak",
                by_many.peak_memory_bytes.map(mebibytes),
                by_few.peak_memory_bytes.map(mebibytes),
            ),
        ];
        all.into_iter().filter(|row| row.many != NONE || row.few != NONE).collect()
    }

    /// How the distribution changed, in words; none if one of the cases has no answers.
    pub(super) fn in_words(&self) -> Option<String> {
        let Self { many, few } = self;
        let (waited, before) = (many.client.p50_ms?, few.client.p50_ms.filter(|ms| *ms > 0.0)?);
        let seconds = (many.client.seconds, few.client.seconds);
        Some(format!(
            "With {} times as many clients and the same requests, {} took {} times as long as {} \
             ({} s and {} s), and its median answer {} times ({} ms and {} ms).",
            measured(many.clients as f64 / few.clients as f64),
            many.id,
            measured(seconds.0 / seconds.1),
            few.id,
            measured(seconds.0),
            measured(seconds.1),
            measured(waited / before),
            measured(waited),
            measured(before),
        ))
    }
}

impl Row {
    fn of(name: &'static str, many: Option<f64>, few: Option<f64>) -> Self {
        Self {
            name,
            many: many.map_or(NONE.to_owned(), plain),
            few: few.map_or(NONE.to_owned(), plain),
            times: times(many, few),
        }
    }
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / (1024.0 * 1024.0)
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
