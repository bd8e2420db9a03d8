//! The requests of a load as its clients saw them, from the metrics that a load keeps of itself.

use crate::live::{Counts, Value};
use talea_page::Family;
use talea_view::families::Times;

/// The times of requests that were answered.
pub const RESPONSE_TIME: &str = "load_response_seconds";
/// How long requests were waited for that timed out.
pub const CENSORED: &str = "load_response_censored_seconds";
/// The requests that failed.
pub const FAILED: &str = "load_requests_failed_total";

/// The families that it is read from.
pub(super) fn is_of_clients(name: &str) -> bool {
    [RESPONSE_TIME, CENSORED, FAILED].contains(&name)
}

/// The answers and the failures that clients have seen until now, and how long they waited for requests that
/// timed out, which are among the failures.
pub(super) type Clients = [Value; 3];

/// `None` if the page has no load's metrics.
pub(super) fn clients(families: &[Family]) -> Option<Clients> {
    let of_name = |name: &str| families.iter().find(|family| family.name == name);
    let answered = times(of_name(RESPONSE_TIME)?);
    let censored = of_name(CENSORED).map(times).unwrap_or_default();
    let failed = of_name(FAILED).into_iter().flat_map(|family| &family.series);
    let failed = failed.filter_map(|it| it.value.number()).sum();
    let durations = |status: Option<&str>, times| Value::Durations {
        family: RESPONSE_TIME.into(),
        status: status.map(str::to_owned),
        times,
    };
    Some([
        durations(Some("answered"), answered),
        durations(None, censored),
        Value::Status("failed".to_owned(), failed),
    ])
}

/// The times of all series of a family.
fn times(family: &Family) -> Times {
    let mut times = Times::default();
    for histogram in family.series.iter().filter_map(|metric| metric.value.histogram()) {
        times.add_histogram(histogram, 1.0);
    }
    times
}

/// The observations since an earlier reading.
pub(super) fn clients_grown(before: Option<&Clients>, now: &Clients) -> Counts {
    let mut grown = Counts::default();
    for (number, now) in now.iter().enumerate() {
        grown.add_increase(before.map(|before| &before[number]), now);
    }
    grown
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use talea::{Counter, Escaping, Format, Histogram, Opts, Registry, Seconds};

    use super::*;

    #[test]
    fn a_request_that_timed_out_counts_for_as_long_as_it_was_waited_for() {
        let registry = Registry::for_test().unwrap();
        for (name, count, took) in [(RESPONSE_TIME, 9, 10), (CENSORED, 1, 1_000)] {
            let times: Histogram<Seconds> = registry.register(Opts::new(name, "T.")).unwrap();
            (0..count).for_each(|_| times.observe(Duration::from_millis(took)));
        }
        let failed: Counter = registry.register(Opts::new(FAILED, "F.")).unwrap();
        failed.inc();
        let snapshot = registry.snapshot();
        let page = snapshot.chunks(Format::Protobuf, Escaping::default(), usize::MAX);
        let families = talea_parse::page(&page.collect::<Vec<_>>().concat()).unwrap();
        let counts = clients_grown(None, &clients(&families).unwrap());
        assert_eq!(counts.times.count, 10.0);
        let p99 = counts.times.quantiles().p99_ms.unwrap();
        assert!(p99.high.unwrap() >= 1_000.0, "{p99:?}");
        let statuses = [("answered", 9.0), ("failed", 1.0)].map(|(name, n)| (name.to_owned(), n));
        assert_eq!(counts.statuses, statuses.into());
    }
}
