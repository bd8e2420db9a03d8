//! Response times at the server, by endpoint: read before and after a case.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::native_durations::NativeDurations;
use super::protobuf;
use super::reading::{Between, Durations};
use crate::scenario::{Names, Quantity, Selector};

/// The response times of each endpoint in a service's histogram of durations.
#[derive(Clone, Debug, Default)]
pub(super) struct EndpointTimes(BTreeMap<String, Times>);

#[derive(Clone, Debug, Default)]
struct Times {
    durations: Durations,
    /// In the unit of the metric; `None` if the service shows none.
    native: Option<NativeDurations>,
}

/// The requests to one endpoint in a case, by the server's metrics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct EndpointSummary {
    /// Its method and route.
    pub name: String,
    pub requests: u64,
    pub mean_ms: Option<f64>,
    /// Quantiles of the response time: the buckets that they lie in.
    #[serde(flatten)]
    pub quantiles: Quantiles,
}

/// The buckets of a histogram that some quantiles lie in, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Quantiles {
    pub p50_ms: Option<Between>,
    pub p90_ms: Option<Between>,
    pub p99_ms: Option<Between>,
}

impl EndpointTimes {
    /// Reads a page, in protobuf or as text. None of the endpoints of one that is neither.
    pub(super) fn read(page: &[u8], names: &Names) -> Self {
        let Some(selector) = names.get(Quantity::Duration) else { return Self::default() };
        let seconds = names.seconds();
        match protobuf::families(page) {
            Some(families) => Self::of_families(&families, selector, seconds),
            None => Self::of_text(std::str::from_utf8(page).unwrap_or_default(), selector, seconds),
        }
    }

    fn of_families(families: &[protobuf::MetricFamily], selector: &Selector, seconds: f64) -> Self {
        let mut all = Self::default();
        for family in families.iter().filter(|family| family.name == selector.name) {
            for metric in &family.metric {
                let label = |it: &protobuf::LabelPair| (it.name.clone(), it.value.clone());
                let labels: Vec<_> = metric.label.iter().map(label).collect();
                let Some(histogram) = &metric.histogram else { continue };
                if !selector.selects(&family.name, &labels) {
                    continue;
                }
                let times = all.0.entry(endpoint_of(&labels)).or_default();
                times.durations.sum += histogram.sample_sum * seconds;
                times.durations.count += histogram.sample_count as f64;
                for bucket in &histogram.bucket {
                    let threshold = bucket.upper_bound * seconds;
                    times.durations.add(threshold, bucket.cumulative_count as f64);
                }
                if let Some(native) = NativeDurations::of(histogram) {
                    times.native.get_or_insert_default().add(&native, 1.0);
                }
            }
        }
        all
    }

    fn of_text(text: &str, selector: &Selector, seconds: f64) -> Self {
        let mut all = Self::default();
        let [count, sum, bucket] =
            ["_count", "_sum", "_bucket"].map(|ending| selector.ending(ending));
        for sample in talea_parse::text(text).unwrap_or_default() {
            let is = |selector: &Selector| selector.selects(&sample.name, &sample.labels);
            let (is_count, is_sum, is_bucket) = (is(&count), is(&sum), is(&bucket));
            if !(is_count || is_sum || is_bucket) {
                continue;
            }
            let durations = &mut all.0.entry(endpoint_of(&sample.labels)).or_default().durations;
            if is_count {
                durations.count += sample.value;
            } else if is_sum {
                durations.sum += sample.value * seconds;
            } else {
                let threshold = sample.labels.iter().find(|(name, _)| name == "le");
                if let Some(threshold) = threshold.and_then(|(_, text)| text.parse::<f64>().ok()) {
                    durations.add(threshold * seconds, sample.value);
                }
            }
        }
        all
    }

    /// The observations since an earlier reading: the endpoints that had requests, and all of them
    /// together. An endpoint that counts less than before began anew.
    pub(super) fn since(&self, before: &Self, names: &Names) -> (Vec<EndpointSummary>, Quantiles) {
        let (mut endpoints, mut all) = (Vec::new(), Times::default());
        for (name, now) in &self.0 {
            let anew = Times::default();
            let before = before.0.get(name).filter(|it| it.durations.count <= now.durations.count);
            let grown = now.since(before.unwrap_or(&anew));
            if grown.durations.count <= 0.0 {
                continue;
            }
            all.add(&grown);
            endpoints.push(EndpointSummary {
                name: name.clone(),
                requests: grown.durations.count.round() as u64,
                mean_ms: grown.durations.mean_ms(),
                quantiles: grown.quantiles(names.seconds()),
            });
        }
        endpoints.sort_by_key(|endpoint| std::cmp::Reverse(endpoint.requests));
        (endpoints, all.quantiles(names.seconds()))
    }
}

impl Times {
    fn since(&self, before: &Self) -> Self {
        let mut grown = Self::default();
        grown.durations.add_increase(&before.durations, &self.durations);
        grown.native = self.native.clone().map(|mut native| {
            native.add(&before.native.clone().unwrap_or_default(), -1.0);
            native
        });
        grown
    }

    fn add(&mut self, other: &Self) {
        self.durations.add_increase(&Durations::default(), &other.durations);
        if let Some(native) = &other.native {
            self.native.get_or_insert_default().add(native, 1.0);
        }
    }

    fn quantiles(&self, seconds: f64) -> Quantiles {
        let of = |quantile| match &self.native {
            None => self.durations.quantile_ms(quantile),
            Some(native) => native.quantile(quantile).map(|found| found.times(seconds * 1e3)),
        };
        Quantiles { p50_ms: of(0.5), p90_ms: of(0.9), p99_ms: of(0.99) }
    }
}

/// Labels that do not tell endpoints apart, in the conventions that services use.
const NOT_OF_ENDPOINTS: [&str; 10] = [
    "le",
    "code",
    "status",
    "status_code",
    "http_status_code",
    "http_response_status_code",
    "error_type",
    "url_scheme",
    "network_protocol_name",
    "network_protocol_version",
];
const METHODS: [&str; 3] = ["method", "http_method", "http_request_method"];

/// The name of the endpoint that a series belongs to: its method, and its other labels' values.
fn endpoint_of(labels: &[(String, String)]) -> String {
    let is_method = |name: &str| METHODS.contains(&name);
    let method = labels.iter().filter(|(name, _)| is_method(name));
    let others = labels
        .iter()
        .filter(|(name, _)| !is_method(name) && !NOT_OF_ENDPOINTS.contains(&name.as_str()));
    let values: Vec<&str> = method.chain(others).map(|(_, value)| value.as_str()).collect();
    match values[..] {
        [] => "all".to_owned(),
        _ => values.join(" "),
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
        let observe = move |status: &str, millis| {
            let endpoint = if millis < 100 { "/quick" } else { "/slow" };
            family.with_values(&[status, endpoint, "GET"]).observe(Duration::from_millis(millis));
        };
        (registry, observe)
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
            let (endpoints, all) = read(&registry, format).since(&before, &names());
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
        let (endpoints, _) = read(&new, Format::Protobuf).since(&before, &names());
        assert_eq!(endpoints[0].requests, 7);
    }

    #[test]
    fn what_is_no_page_has_no_endpoints() {
        for page in [&b"<html>"[..], b"", b"\x05abc", &[0xFF; 40]] {
            let times = EndpointTimes::read(page, &names());
            assert!(times.0.is_empty());
            assert_eq!(times.since(&times, &names()), (Vec::new(), Quantiles::default()));
        }
    }
}
