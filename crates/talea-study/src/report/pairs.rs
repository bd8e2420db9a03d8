//! Cases that make the same number of requests with clients and iterations distributed otherwise.

use talea_statistics::figures::{NONE, measured, plain};

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

/// A title, the name of the clients' field if it may be a lower bound, and the number.
type Number = (&'static str, &'static str, fn(&CaseResult) -> Option<f64>);

/// The numbers by which two cases are compared.
const NUMBERS: [Number; 12] = [
    ("Client time, s", "", |it| Some(it.client.seconds)),
    ("Requests a second", "", |it| it.client.mean_rate),
    ("Median response time, ms", "p50_ms", |it| it.client.p50_ms),
    ("Mean at the server, ms", "", |it| it.server.as_ref()?.mean_response_ms),
    ("p99 response time, ms", "p99_ms", |it| it.client.p99_ms),
    ("p99.9 response time, ms", "p999_ms", |it| it.client.p999_ms),
    ("Server CPU, s", "", |it| it.server.as_ref()?.cpu_seconds),
    ("Tasks created", "", |it| count(it.server.as_ref()?.tasks_created)),
    ("Additional tasks, peak", "", |it| count(it.server.as_ref()?.peak_additional_tasks)),
    ("Ready tasks, peak", "", |it| count(it.server.as_ref()?.peak_ready_tasks)),
    ("Waiting for the database, peak", "", |it| count(it.server.as_ref()?.peak_pool_pending)),
    ("Server memory, MiB, peak", "", |it| {
        Some(count(it.server.as_ref()?.peak_memory_bytes)? / (1024.0 * 1024.0))
    }),
];

fn count(count: Option<u64>) -> Option<f64> {
    count.map(|count| count as f64)
}

impl Pair<'_> {
    pub(super) fn rows(&self) -> Vec<Row> {
        let row = |(name, field, number): Number| {
            let of = |case: &CaseResult| {
                let number = number(case)?;
                Some((number, case.client.at_least.contains(field)))
            };
            let (many, few) = (of(self.many), of(self.few));
            Row { name, many: shown(many), few: shown(few), times: times(many, few) }
        };
        let rows = NUMBERS.into_iter().map(row);
        rows.filter(|row| row.many != NONE || row.few != NONE).collect()
    }

    /// How the distribution changed, in words; none if one of the cases has no answers, or
    /// only a lower bound of its median.
    pub(super) fn in_words(&self) -> Option<String> {
        let Self { many, few } = self;
        if [many, few].iter().any(|case| case.client.at_least.contains("p50_ms")) {
            return None;
        }
        let (waited, before) = (many.client.p50_ms?, few.client.p50_ms.filter(|ms| *ms > 0.0)?);
        let seconds = (many.client.seconds, few.client.seconds);
        Some(format!(
            "With {} times as many clients and the same requests, {} took {} times as long as {} \
             ({} s and {} s), and its median response {} times ({} ms and {} ms).",
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

/// A number, and whether it is a lower bound.
type Bounded = (f64, bool);

fn shown(number: Option<Bounded>) -> String {
    match number {
        Some((number, true)) => format!("≥ {}", plain(number)),
        Some((number, false)) => plain(number),
        None => NONE.to_owned(),
    }
}

/// How many times the second number the first one is: `1.42×`.
fn times(first: Option<Bounded>, second: Option<Bounded>) -> String {
    let Some(((first, first_bound), (second, second_bound))) = first.zip(second) else {
        return NONE.to_owned();
    };
    let sign = match (first_bound, second_bound) {
        _ if second <= 0.0 => return NONE.to_owned(),
        (true, true) => return NONE.to_owned(),
        (true, false) => "≥ ",
        (false, true) => "≤ ",
        (false, false) => "",
    };
    format!("{sign}{}×", measured(first / second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_needs_two_numbers() {
        let known = |number| Some((number, false));
        let bound = |number| Some((number, true));
        assert_eq!(times(known(3.0), known(2.0)), "1.50×");
        assert_eq!(times(known(3.0), known(0.0)), NONE);
        assert_eq!(times(None, known(1.0)), NONE);
        assert_eq!(times(bound(3.0), known(2.0)), "≥ 1.50×");
        assert_eq!(times(known(3.0), bound(2.0)), "≤ 1.50×");
        assert_eq!(times(bound(3.0), bound(2.0)), NONE);
    }
}
