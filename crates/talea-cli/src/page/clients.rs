//! The requests of a load as its clients saw them, from the metrics that a load keeps of itself.

use talea_load::Meters;

use crate::families::Times;
use crate::families::protobuf::{Metric, MetricFamily};
use crate::live::{Counts, Value};

/// The families that it is read from.
pub(super) fn is_of_clients(name: &str) -> bool {
    [Meters::RESPONSE_TIME, Meters::FAILED].contains(&name)
}

/// The answers and the failures that clients have seen until now.
pub(super) type Clients = [Value; 2];

/// `None` if the page has no load's metrics.
pub(super) fn clients(families: &[MetricFamily]) -> Option<Clients> {
    let of_name = |name: &str| families.iter().find(|family| family.name == name);
    let mut times = Times::default();
    let answered = &of_name(Meters::RESPONSE_TIME)?.metric;
    for histogram in answered.iter().filter_map(|metric| metric.histogram.as_ref()) {
        times.add_histogram(histogram, 1.0);
    }
    let failed = of_name(Meters::FAILED).into_iter().flat_map(|family| &family.metric);
    let failed = failed.filter_map(Metric::value).sum();
    let (family, status) = (Meters::RESPONSE_TIME.into(), Some("answered".to_owned()));
    Some([Value::Durations { family, status, times }, Value::Status("failed".to_owned(), failed)])
}

/// The observations since an earlier reading.
pub(super) fn clients_grown(before: Option<&Clients>, now: &Clients) -> Counts {
    let mut grown = Counts::default();
    for (number, now) in now.iter().enumerate() {
        grown.add_increase(before.map(|before| &before[number]), now);
    }
    grown
}
