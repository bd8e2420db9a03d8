//! The requests of a load as its clients saw them, from the metrics that a load keeps of itself.

use talea_load::Meters;

use crate::families::protobuf::{Metric, MetricFamily};
use crate::live::Counts;

/// The families that it is read from.
pub(super) fn is_of_clients(name: &str) -> bool {
    [Meters::RESPONSE_TIME, Meters::FAILED].contains(&name)
}

/// All that clients have seen until now; `None` if the page has no load's metrics.
pub(super) fn clients(families: &[MetricFamily]) -> Option<Counts> {
    let of_name = |name: &str| families.iter().find(|family| family.name == name);
    let mut counts = Counts::default();
    let times = &of_name(Meters::RESPONSE_TIME)?.metric;
    for histogram in times.iter().filter_map(|metric| metric.histogram.as_ref()) {
        counts.times.add_histogram(histogram, 1.0);
    }
    let failed = of_name(Meters::FAILED).into_iter().flat_map(|family| &family.metric);
    let failed = failed.filter_map(Metric::value).sum();
    let answered = counts.times.durations.count;
    counts.statuses = [("answered".to_owned(), answered), ("failed".to_owned(), failed)].into();
    Some(counts)
}
