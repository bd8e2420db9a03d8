//! The requests that a reading counts, by endpoint. Families are recognized by their names and labels, so
//! that it reads those of any convention: a histogram of the durations of requests, a counter of them
//! by status, a gauge of those in flight, whose names begin alike.

use std::collections::BTreeMap;

use crate::families::protobuf::{Kind, Metric, MetricFamily};
use crate::families::{Times, endpoint_of, is_of_endpoint, status_of};

/// The requests to each endpoint, by its name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Requests(pub(super) BTreeMap<String, Counts>);

/// The requests to an endpoint since its series began.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Counts {
    /// In seconds, whatever the unit of the metric.
    pub(super) times: Times,
    /// The responses by status.
    pub(super) statuses: BTreeMap<String, f64>,
    pub(super) in_flight: Option<f64>,
}

impl Requests {
    pub(super) fn of(families: &[MetricFamily]) -> Self {
        let mut all = Self::default();
        for (prefix, durations) in duration_families(families) {
            all.add_durations(durations);
            let is_alike = |family: &&MetricFamily| family.name.starts_with(prefix);
            let has_statuses = durations.metric.iter().any(|it| status_of(&it.label).is_some());
            if !has_statuses {
                let counter = families.iter().filter(is_alike).find(counts_by_status);
                counter.into_iter().for_each(|family| all.add_statuses(family));
            }
            let gauge = families.iter().filter(is_alike).find(counts_in_flight);
            gauge.into_iter().for_each(|family| all.add_in_flight(family));
        }
        all
    }

    fn add_durations(&mut self, family: &MetricFamily) {
        let seconds = unit_seconds(&family.name).unwrap_or(1.0);
        for metric in of_endpoints(family) {
            let Some(histogram) = &metric.histogram else { continue };
            let counts = self.0.entry(endpoint_of(&metric.label)).or_default();
            counts.times.add_histogram(histogram, seconds);
            if let Some(status) = status_of(&metric.label) {
                let count = counts.statuses.entry(status.to_owned()).or_default();
                *count += histogram.sample_count as f64;
            }
        }
    }

    /// Those of endpoints that have durations.
    fn add_statuses(&mut self, family: &MetricFamily) {
        for metric in of_endpoints(family) {
            let counts = self.0.get_mut(&endpoint_of(&metric.label));
            let (Some(counts), Some(counter)) = (counts, &metric.counter) else { continue };
            if let Some(status) = status_of(&metric.label) {
                *counts.statuses.entry(status.to_owned()).or_default() += counter.value;
            }
        }
    }

    fn add_in_flight(&mut self, family: &MetricFamily) {
        for metric in of_endpoints(family) {
            let counts = self.0.get_mut(&endpoint_of(&metric.label));
            let (Some(counts), Some(gauge)) = (counts, &metric.gauge) else { continue };
            *counts.in_flight.get_or_insert_default() += gauge.value;
        }
    }
}

fn of_endpoints(family: &MetricFamily) -> impl Iterator<Item = &Metric> {
    family.metric.iter().filter(|metric| is_of_endpoint(&metric.label))
}

/// The histograms of requests' durations that distinguish endpoints: of each beginning of a name the
/// one that is most likely meant.
fn duration_families(families: &[MetricFamily]) -> BTreeMap<&str, &MetricFamily> {
    let mut found: BTreeMap<&str, (usize, &MetricFamily)> = BTreeMap::new();
    for family in families {
        let is_histogram = family.kind == Kind::Histogram as i32;
        if !is_histogram || of_endpoints(family).next().is_none() {
            continue;
        }
        let Some((prefix, place)) = duration_name(&family.name) else { continue };
        let best = found.entry(prefix).or_insert((place, family));
        if place < best.0 {
            *best = (place, family);
        }
    }
    found.into_iter().map(|(prefix, (_, family))| (prefix, family)).collect()
}

/// The words for what is timed, the likeliest first.
const TIMED: [&str; 3] = ["request", "exchange", "response"];

/// The beginning of the name of a histogram of durations, and how likely it is one of requests that are
/// answered; `None` if it is another.
fn duration_name(name: &str) -> Option<(&str, usize)> {
    unit_seconds(name)?;
    let is_time = ["duration", "latency", "time"].iter().any(|word| name.contains(word));
    if !is_time || name.contains("client") {
        return None;
    }
    let timed = TIMED.iter().enumerate();
    let mut found = timed.filter_map(|(place, word)| Some((name.find(word)?, place)));
    let (at, place) = found.next()?;
    Some((&name[..at], place))
}

/// The seconds of the unit that a name ends with.
fn unit_seconds(name: &str) -> Option<f64> {
    [("_milliseconds", 1e-3), ("_microseconds", 1e-6), ("_seconds", 1.0)]
        .iter()
        .find(|(unit, _)| name.ends_with(unit))
        .map(|(_, seconds)| *seconds)
}

fn counts_by_status(family: &&MetricFamily) -> bool {
    let is_counter = family.kind == Kind::Counter as i32;
    let is_named = ["requests", "responses"].iter().any(|word| family.name.contains(word));
    is_counter && is_named && of_endpoints(family).any(|it| status_of(&it.label).is_some())
}

fn counts_in_flight(family: &&MetricFamily) -> bool {
    const NAMES: [&str; 5] =
        ["in_flight", "inflight", "in_progress", "inprogress", "active_requests"];
    family.kind == Kind::Gauge as i32 && NAMES.iter().any(|name| family.name.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::families;

    fn of(page: &str) -> Requests {
        Requests::of(&families::read(page.as_bytes()).unwrap())
    }

    fn histogram(name: &str, labels: &str, count: u64) -> String {
        format!(
            "{name}_bucket{{{labels},le=\"+Inf\"}} {count}\n{name}_sum{{{labels}}} {count}\n\
             {name}_count{{{labels}}} {count}\n"
        )
    }

    #[test]
    fn requests_are_found_under_any_convention() {
        let talea = format!(
            "# TYPE http_request_duration_seconds histogram\n{}\
             # TYPE http_exchange_duration_seconds histogram\n{}\
             # TYPE http_requests_total counter\n\
             http_requests_total{{method=\"GET\",route=\"/a\",status=\"2xx\"}} 4\n\
             http_requests_total{{method=\"GET\",route=\"/a\",status=\"5xx\"}} 3\n\
             # TYPE http_requests_in_flight gauge\n\
             http_requests_in_flight{{method=\"GET\",route=\"/a\"}} 2\n",
            histogram("http_request_duration_seconds", "method=\"GET\",route=\"/a\"", 7),
            histogram("http_exchange_duration_seconds", "method=\"GET\",route=\"/a\"", 5),
        );
        let labels = |status: &str| {
            format!(
                "http_request_method=\"GET\",http_response_status_code=\"{status}\",http_route=\"/a\""
            )
        };
        let name = "http_server_request_duration_seconds";
        let opentelemetry = format!(
            "# TYPE {name} histogram\n{}{}\
             # TYPE http_client_request_duration_seconds histogram\n{}\
             # TYPE http_server_active_requests gauge\n\
             http_server_active_requests{{http_request_method=\"GET\",url_scheme=\"http\",http_route=\"/a\"}} 2\n",
            histogram(name, &labels("200"), 4),
            histogram(name, &labels("503"), 3),
            histogram("http_client_request_duration_seconds", &labels("200"), 100),
        );
        let cowboy = format!(
            "# TYPE cowboy_request_duration_milliseconds histogram\n{}",
            histogram("cowboy_request_duration_milliseconds", "method=\"GET\",route=\"/a\"", 7)
        );
        for (page, errors, in_flight, seconds) in [
            (talea, Some(3.0), Some(2.0), 7.0),
            (opentelemetry, Some(3.0), Some(2.0), 7.0),
            (cowboy, None, None, 0.007),
        ] {
            let found = of(&page);
            let counts = &found.0["GET /a"];
            assert_eq!(found.0.len(), 1, "{page}");
            assert_eq!(counts.times.durations.count, 7.0, "{page}");
            assert_eq!(counts.times.durations.sum, seconds, "{page}");
            let is_error = |(status, _): &(&String, &f64)| status.starts_with('5');
            let found = counts.statuses.iter().find(is_error).map(|(_, count)| *count);
            assert_eq!((found, counts.in_flight), (errors, in_flight), "{page}");
        }
    }

    #[test]
    fn histograms_of_other_things_are_no_requests() {
        for (name, labels) in [
            ("http_request_body_size_bytes", "method=\"GET\",route=\"/a\""),
            ("http_request_duration_highr_seconds", "app=\"shop\""),
            ("db_query_duration_seconds", "method=\"GET\""),
            ("http_client_request_duration_seconds", "method=\"GET\""),
        ] {
            let page = format!("# TYPE {name} histogram\n{}", histogram(name, labels, 1));
            assert_eq!(of(&page), Requests::default(), "{name}");
        }
    }
}
