//! Response times at the server, by endpoint: read before and after a case.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use talea_load::scenario::{Names, Quantity, Selector};

use talea_page::Family;
use talea_view::families::{Quantiles, Times, endpoint_of};

/// The response times of each endpoint in a service's histogram of durations.
#[derive(Clone, Debug, Default)]
pub(super) struct EndpointTimes(BTreeMap<String, Times>);

/// The requests to one endpoint in a case, by the server's metrics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndpointSummary {
    /// Its method and route.
    pub name: String,
    pub requests: u64,
    pub mean_ms: Option<f64>,
    /// Quantiles of the response time: the buckets that they lie in.
    #[serde(flatten)]
    pub quantiles: Quantiles,
}

impl EndpointTimes {
    /// Reads a page, in protobuf or as text. None of the endpoints of one that is neither.
    pub(super) fn read(page: &[u8], names: &Names) -> Self {
        let Some(selector) = names.get(Quantity::Duration) else { return Self::default() };
        Self::of(&talea_parse::page(page).unwrap_or_default(), selector, names.seconds())
    }

    fn of(families: &[Family], selector: &Selector, seconds: f64) -> Self {
        let mut all = Self::default();
        for family in families.iter().filter(|family| family.name == selector.name) {
            for metric in &family.series {
                let labels: Vec<_> =
                    metric.labels.iter().map(|it| (it.name.clone(), it.value.clone())).collect();
                let Some(histogram) = metric.value.histogram() else { continue };
                if selector.selects(&family.name, &labels) {
                    let times = all.0.entry(endpoint_of(&metric.labels)).or_default();
                    times.add_histogram(histogram, seconds);
                }
            }
        }
        all
    }

    /// The observations since an earlier reading: the endpoints that had requests, and all of them
    /// together. An endpoint that counts less than before began anew.
    pub(super) fn since(&self, before: &Self) -> (Vec<EndpointSummary>, Quantiles) {
        let (mut endpoints, mut all) = (Vec::new(), Times::default());
        for (name, now) in &self.0 {
            let grown = now.since(before.0.get(name).unwrap_or(&Times::default()));
            if grown.count <= 0.0 {
                continue;
            }
            all.add(&grown);
            endpoints.push(EndpointSummary {
                name: name.clone(),
                requests: grown.count.round() as u64,
                mean_ms: grown.mean_ms(),
                quantiles: grown.quantiles(),
            });
        }
        endpoints.sort_by_key(|endpoint| std::cmp::Reverse(endpoint.requests));
        (endpoints, all.quantiles())
    }
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
