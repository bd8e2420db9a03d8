//! Response times and failures at the server, by endpoint: read before and after a case.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use talea_load::scenario::{Names, Quantity, Selector};

use talea_page::{Family, Series};
use talea_view::families::{Quantiles, Times, endpoint_of, status_of};

/// The requests to each endpoint, by a service's metrics.
#[derive(Clone, Debug, Default)]
pub(super) struct EndpointTimes(BTreeMap<String, Counted>);

/// The requests to one endpoint so far.
#[derive(Clone, Debug, Default, PartialEq)]
struct Counted {
    times: Times,
    /// Those with a status from 500 on; none if the service does not count by status.
    failed: Option<f64>,
}

impl Counted {
    fn add_status(&mut self, status: &str, count: f64) {
        *self.failed.get_or_insert_default() += if status.starts_with('5') { count } else { 0.0 };
    }
}

/// The requests to one endpoint in a case, by the server's metrics.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EndpointSummary {
    /// Its method and route.
    pub name: String,
    pub requests: u64,
    /// Those with a status from 500 on; none if the service does not count by status.
    #[serde(default)]
    pub failed: Option<u64>,
    pub mean_ms: Option<f64>,
    /// Quantiles of the response time: the buckets that they lie in.
    #[serde(flatten)]
    pub quantiles: Quantiles,
    /// The distribution of the response time; a report has it with the round's measures.
    #[serde(skip)]
    pub(crate) times: Times,
}

impl EndpointTimes {
    /// Reads a page, in protobuf or as text. None of the endpoints of one that is neither.
    pub(super) fn read(page: &[u8], names: &Names) -> Self {
        let Some(selector) = names.get(Quantity::Duration) else { return Self::default() };
        let families = talea_parse::page(page).unwrap_or_default();
        let mut all = Self::default();
        all.add_durations(&families, selector, names.seconds());
        if let Some(requests) = names.get(Quantity::Requests) {
            all.add_statuses(&families, requests);
        }
        all
    }

    fn add_durations(&mut self, families: &[Family], selector: &Selector, seconds: f64) {
        for metric in series(families, selector) {
            let Some(histogram) = metric.value.histogram() else { continue };
            let counted = self.0.entry(endpoint_of(&metric.labels)).or_default();
            counted.times.add_histogram(histogram, seconds);
            if let Some(status) = status_of(&metric.labels) {
                counted.add_status(status, histogram.count as f64);
            }
        }
    }

    /// Adds the statuses of a counter of requests, if the histogram has no statuses.
    fn add_statuses(&mut self, families: &[Family], selector: &Selector) {
        if self.0.values().any(|counted| counted.failed.is_some()) {
            return;
        }
        for metric in series(families, selector) {
            let counted = self.0.get_mut(&endpoint_of(&metric.labels));
            let count = metric.value.number().filter(|count| count.is_finite());
            let status = status_of(&metric.labels);
            if let (Some(counted), Some(status), Some(count)) = (counted, status, count) {
                counted.add_status(status, count);
            }
        }
    }

    /// The observations since an earlier reading: the endpoints that had requests, and all of them
    /// together. An endpoint that counts less than before began anew.
    pub(super) fn since(&self, before: &Self) -> (Vec<EndpointSummary>, Quantiles) {
        let (mut endpoints, mut all) = (Vec::new(), Times::default());
        for (name, now) in &self.0 {
            let idle = Counted::default();
            let before = before.0.get(name).unwrap_or(&idle);
            let grown = now.times.since(&before.times);
            let failed = now.failed.map(|failed| match before.failed {
                Some(earlier) if earlier <= failed => failed - earlier,
                _ => failed,
            });
            if grown.count <= 0.0 {
                continue;
            }
            all.add(&grown);
            endpoints.push(EndpointSummary {
                name: name.clone(),
                requests: grown.count.round() as u64,
                failed: failed.map(|failed| failed.round() as u64),
                mean_ms: grown.mean_ms(),
                quantiles: grown.quantiles(),
                times: grown,
            });
        }
        endpoints.sort_by_key(|endpoint| std::cmp::Reverse(endpoint.requests));
        (endpoints, all.quantiles())
    }
}

/// The series that a selector means. The page of a counter may name it without its ending `_total`.
fn series<'a>(
    families: &'a [Family],
    selector: &'a Selector,
) -> impl Iterator<Item = &'a Series> + 'a {
    let name = &selector.name;
    let named = families.iter().filter(move |family| {
        family.name == *name || name.strip_suffix("_total") == Some(&family.name)
    });
    named.flat_map(|family| &family.series).filter(|metric| {
        let labels: Vec<_> =
            metric.labels.iter().map(|it| (it.name.clone(), it.value.clone())).collect();
        selector.selects(name, &labels)
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use talea::{Escaping, Format, Histogram, Opts, Registry, Seconds};

    use super::*;

    fn registry() -> (Registry, impl Fn(&str, u64)) {
        let registry = Registry::for_test().unwrap();
        let opts = Opts::new("http_request_duration", "T.").buckets(&[0.1, 1.0]);
        let labels = ["status", "endpoint", "method"];
        let family = registry.family::<Histogram<Seconds>>(opts, &labels).unwrap();
        (registry, move |status, millis| {
            let endpoint = if millis < 100 { "/quick" } else { "/slow" };
            family.with_values(&[status, endpoint, "GET"]).observe(Duration::from_millis(millis));
        })
    }

    fn read(registry: &Registry, format: Format) -> EndpointTimes {
        let snapshot = registry.snapshot();
        let page = snapshot.chunks(format, Escaping::default(), usize::MAX);
        EndpointTimes::read(&page.collect::<Vec<_>>().concat(), &names())
    }

    fn names() -> Names {
        Names::built_in("talea").unwrap()
    }

    #[test]
    fn each_endpoint_has_what_was_observed_meanwhile() {
        for (format, is_close) in [(Format::Protobuf, true), (Format::Text, false)] {
            let (registry, observe) = registry();
            (0..100).for_each(|_| observe("2xx", 5_000));
            let before = read(&registry, format);
            (0..90).for_each(|_| observe("2xx", 20));
            (0..10).for_each(|_| observe("5xx", 50));
            (0..30).for_each(|_| observe("2xx", 200));
            let (endpoints, all) = read(&registry, format).since(&before);
            let shown: Vec<_> =
                endpoints.iter().map(|it| (it.name.as_str(), it.requests)).collect();
            assert_eq!(shown, [("GET /quick", 100), ("GET /slow", 30)]);
            assert!((endpoints[0].mean_ms.unwrap() - 23.0).abs() < 1e-6);
            for (found, expected) in [
                (endpoints[0].quantiles.p50_ms, 20.0),
                (endpoints[0].quantiles.p99_ms, 50.0),
                (endpoints[1].quantiles.p99_ms, 200.0),
                (all.p50_ms, 20.0),
                (all.p99_ms, 200.0),
            ] {
                let found = found.unwrap();
                let high = found.high.unwrap();
                assert!(found.low < expected && expected <= high, "{expected}: {found:?}");
                assert_eq!(found.estimate().is_some(), is_close, "{found:?}");
            }
        }
    }

    #[test]
    fn failures_are_those_of_the_histogram_or_of_a_counter_or_not_known() {
        let page = |statuses: &str, failed: u64| {
            let histogram = |labels: &str, count: u64| {
                format!(
                    "http_request_duration_seconds_bucket{{{labels}le=\"+Inf\"}} {count}\n\
                     http_request_duration_seconds_sum{{{labels}}} 1\n\
                     http_request_duration_seconds_count{{{labels}}} {count}\n"
                )
            };
            let labels = "method=\"GET\",endpoint=\"/a\",";
            let mut page = "# TYPE http_request_duration_seconds histogram\n".to_owned();
            match statuses {
                "histogram" => {
                    page += &histogram(&format!("{labels}status=\"200\","), 50);
                    page += &histogram(&format!("{labels}status=\"503\","), failed);
                }
                _ => page += &histogram(labels, 50 + failed),
            }
            if statuses == "counter" {
                page += &format!(
                    "# TYPE http_requests_total counter\n\
                     http_requests_total{{{labels}status=\"2xx\"}} 50\n\
                     http_requests_total{{{labels}status=\"5xx\"}} {failed}\n"
                );
            }
            EndpointTimes::read(page.as_bytes(), &names())
        };
        for (statuses, expected) in [("histogram", Some(4)), ("counter", Some(4)), ("none", None)] {
            let (endpoints, _) = page(statuses, 7).since(&page(statuses, 3));
            let [endpoint] = &endpoints[..] else { panic!("{statuses}: {endpoints:?}") };
            assert_eq!((endpoint.requests, endpoint.failed), (4, expected), "{statuses}");
        }
    }

    #[test]
    fn a_service_that_began_anew_counts_from_0() {
        let (old, in_old) = registry();
        (0..100).for_each(|_| in_old("2xx", 5));
        let (new, in_new) = registry();
        (0..7).for_each(|_| in_new("2xx", 5));
        let before = read(&old, Format::Protobuf);
        let (endpoints, _) = read(&new, Format::Protobuf).since(&before);
        assert_eq!(endpoints[0].requests, 7);
    }

    #[test]
    fn what_is_no_page_has_no_endpoints() {
        for page in [&b"<html>"[..], b"", b"\x05abc", &[0xFF; 40]] {
            let times = EndpointTimes::read(page, &names());
            assert!(times.0.is_empty());
            assert_eq!(times.since(&times), (Vec::new(), Quantiles::default()));
        }
    }
}
