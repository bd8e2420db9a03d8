//! The requests that a reading counts, by endpoint. Families are recognized by their names and labels, so
//! that it reads those of any convention: a histogram of the durations of requests, a counter of them
//! by status, a gauge of those in flight, whose names begin alike.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::regions::{known_regions, named_in, region_of};
use talea_page::{Family, Kind, Label, Series};
use talea_view::families::{Times, endpoint_of, is_of_endpoint, outcome_of, status_of};

/// The series of each endpoint, by its name. Each counts by itself: one may begin anew, or go, while others
/// count on.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Requests(pub(crate) BTreeMap<String, BTreeMap<String, Counted>>);

/// A series of an endpoint.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Counted {
    pub(crate) region: String,
    pub(crate) value: Value,
}

/// The value of a series, by its meaning.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// In seconds, whatever the unit of the metric; of responses of one status, where the family has those.
    Durations {
        family: Arc<str>,
        status: Option<String>,
        times: Times,
    },
    /// Requests by status.
    Status(String, f64),
    /// Requests by how they ended, such as `aborted`.
    Outcome(String, f64),
    InFlight(f64),
}

/// The requests to an endpoint from one reading to another, or since its series began.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// The family that the durations are from.
    pub(crate) family: Option<Arc<str>>,
    /// The region that counts them, where series name it.
    pub(crate) region: String,
    pub(crate) times: Times,
    pub(crate) statuses: BTreeMap<String, f64>,
    pub(crate) in_flight: Option<f64>,
    pub(crate) outcomes: BTreeMap<String, f64>,
}

impl Counts {
    /// All that some series counted.
    pub(crate) fn total<'a>(series: impl IntoIterator<Item = &'a Counted>) -> Self {
        let mut total = Self::default();
        series.into_iter().for_each(|it| total.add_increase(None, &it.value));
        total
    }

    /// Adds what a series counted since an earlier reading. One that counts less than before began anew from 0.
    pub(crate) fn add_increase(&mut self, before: Option<&Value>, now: &Value) {
        match now {
            Value::Durations { family, status, times } => {
                let grown = match before {
                    Some(Value::Durations { times: before, .. }) => times.since(before),
                    _ => times.clone(),
                };
                self.family = Some(Arc::clone(family));
                if let Some(status) = status {
                    *self.statuses.entry(status.clone()).or_default() += grown.count;
                }
                self.times.add(&grown);
            }
            Value::Status(name, count) | Value::Outcome(name, count) => {
                let counts = match now {
                    Value::Status(..) => &mut self.statuses,
                    _ => &mut self.outcomes,
                };
                let before = match before {
                    Some(Value::Status(_, before) | Value::Outcome(_, before))
                        if before <= count =>
                    {
                        *before
                    }
                    _ => 0.0,
                };
                *counts.entry(name.clone()).or_default() += count - before;
            }
            Value::InFlight(number) => *self.in_flight.get_or_insert_default() += number,
        }
    }

    /// Adds what another counts; requests in flight stay.
    pub(crate) fn add(&mut self, other: &Self) {
        self.family = other.family.clone().or(self.family.take());
        self.region.clone_from(&other.region);
        self.times.add(&other.times);
        for (sums, others) in
            [(&mut self.statuses, &other.statuses), (&mut self.outcomes, &other.outcomes)]
        {
            for (name, count) in others {
                *sums.entry(name.clone()).or_default() += count;
            }
        }
    }
}

impl Requests {
    /// Each region is read by its own families: those of one say nothing of another.
    pub(crate) fn of(families: &[Family]) -> Self {
        let mut all = Self::default();
        for families in by_region(families).values() {
            all.add_region(families);
        }
        all
    }

    /// The series of a histogram that `is_wanted`, in its own unit, as one endpoint with the family's name.
    pub(crate) fn of_histogram(
        families: &[Family],
        name: &str,
        is_wanted: impl Fn(&Series) -> bool,
    ) -> Self {
        let mut series = BTreeMap::new();
        let text: Arc<str> = name.into();
        for family in families.iter().filter(|family| family.name == name) {
            for metric in family.series.iter().filter(|metric| is_wanted(metric)) {
                let Some(histogram) = metric.value.histogram() else { continue };
                let mut times = Times::default();
                times.add_histogram(histogram, 1.0);
                let value = Value::Durations { family: Arc::clone(&text), status: None, times };
                series.insert(key(family, metric), Counted::of(metric, value));
            }
        }
        Self(BTreeMap::from([(name.to_owned(), series)]))
    }

    fn add_region(&mut self, families: &[Part<'_>]) {
        for (prefix, durations) in duration_families(families) {
            self.add_durations(durations);
            let mut alike = families.iter().filter(|part| part.family.name.starts_with(prefix));
            let has_statuses = durations.metrics.iter().any(|it| status_of(&it.labels).is_some());
            if !has_statuses {
                let counter = alike.clone().find(|it| counts_by(it, &COUNTED[..2], status_of));
                counter.into_iter().for_each(|it| {
                    self.add(it, |it| {
                        Some(Value::Status(status_of(&it.labels)?.to_owned(), finite(it)?))
                    });
                });
            }
            let ended = alike.clone().find(|it| counts_by(it, &COUNTED, outcome_of));
            ended.into_iter().for_each(|it| {
                self.add(it, |it| {
                    Some(Value::Outcome(outcome_of(&it.labels)?.to_owned(), finite(it)?))
                });
            });
            let gauge = alike.find(counts_in_flight);
            gauge.into_iter().for_each(|it| {
                self.add(it, |it| Some(Value::InFlight(finite(it)?)));
            });
        }
    }

    fn add_durations(&mut self, Part { family, metrics }: &Part<'_>) {
        let seconds = unit_seconds(&family.name).unwrap_or(1.0);
        let name: Arc<str> = family.name.as_str().into();
        for metric in metrics {
            let Some(histogram) = metric.value.histogram() else { continue };
            let mut times = Times::default();
            times.add_histogram(histogram, seconds);
            let status = status_of(&metric.labels).map(str::to_owned);
            let value = Value::Durations { family: Arc::clone(&name), status, times };
            self.0
                .entry(endpoint_of(&metric.labels))
                .or_default()
                .insert(key(family, metric), Counted::of(metric, value));
        }
    }

    /// Adds the values of a family's series to endpoints that have durations.
    fn add(&mut self, part: &Part<'_>, value: impl Fn(&Series) -> Option<Value>) {
        for metric in &part.metrics {
            let series = self.0.get_mut(&endpoint_of(&metric.labels));
            if let (Some(series), Some(value)) = (series, value(metric)) {
                series.insert(key(part.family, metric), Counted::of(metric, value));
            }
        }
    }
}

/// The series of endpoints that a family has of one region.
struct Part<'a> {
    family: &'a Family,
    metrics: Vec<&'a Series>,
}

/// The families that requests may be read from, by region; all of them under one name if there is only
/// one region.
fn by_region(families: &[Family]) -> BTreeMap<&str, Vec<Part<'_>>> {
    let known = known_regions(families);
    let mut all: BTreeMap<&str, Vec<Part<'_>>> = BTreeMap::new();
    for family in families.iter().filter(|family| is_of_requests(&family.name)) {
        for metric in family.series.iter().filter(|metric| is_of_endpoint(&metric.labels)) {
            let region = if known.len() > 1 { named_in(&known, &metric.labels) } else { "" };
            let parts = all.entry(region).or_default();
            match parts.last_mut().filter(|last| std::ptr::eq(last.family, family)) {
                Some(last) => last.metrics.push(metric),
                None => parts.push(Part { family, metrics: vec![metric] }),
            }
        }
    }
    all
}

impl Counted {
    fn of(metric: &Series, value: Value) -> Self {
        Self { region: region_of(&metric.labels).to_owned(), value }
    }
}

/// The family of a series that has this key.
pub(super) fn family_of(key: &str) -> &str {
    key.split('\0').next().unwrap_or_default()
}

/// Distinguishes a series from the others of its endpoint.
fn key(family: &Family, metric: &Series) -> String {
    let labels = metric.labels.iter().flat_map(|pair| [&*pair.name, &*pair.value]);
    [&*family.name].into_iter().chain(labels).collect::<Vec<&str>>().join("\0")
}

/// A number that can be added to others.
fn finite(metric: &Series) -> Option<f64> {
    metric.value.number().filter(|value| value.is_finite())
}

/// Finds a status or an outcome among labels.
type LabelReader = fn(&[Label]) -> Option<&str>;

/// Whether a family counts things with one of these names by a label.
fn counts_by(part: &Part<'_>, names: &[&str], value_of: LabelReader) -> bool {
    let family = part.family;
    let is_counter = family.kind == Kind::Counter;
    let is_named = names.iter().any(|word| family.name.contains(word));
    is_counter && is_named && part.metrics.iter().any(|it| value_of(&it.labels).is_some())
}

/// The histograms of requests' durations that distinguish endpoints: of each beginning of a name the
/// one that is most likely meant.
fn duration_families<'a>(families: &'a [Part<'a>]) -> BTreeMap<&'a str, &'a Part<'a>> {
    let mut found: BTreeMap<&str, (usize, &Part<'_>)> = BTreeMap::new();
    for part in families.iter().filter(|part| part.family.kind == Kind::Histogram) {
        let Some((prefix, place)) = duration_name(&part.family.name) else { continue };
        let best = found.entry(prefix).or_insert((place, part));
        if place < best.0 {
            *best = (place, part);
        }
    }
    found.into_iter().map(|(prefix, (_, part))| (prefix, part)).collect()
}

/// The words for what is counted by status, or by outcome.
const COUNTED: [&str; 3] = ["requests", "responses", "outcomes"];
/// The words for requests that have no response yet.
const IN_FLIGHT: [&str; 5] =
    ["in_flight", "inflight", "in_progress", "inprogress", "active_requests"];

/// Whether a family may be one of those that requests are read from.
pub(super) fn is_of_requests(name: &str) -> bool {
    let words = COUNTED.iter().chain(&IN_FLIGHT);
    duration_name(name).is_some() || words.into_iter().any(|word| name.contains(word))
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

fn counts_in_flight(part: &&Part<'_>) -> bool {
    let family = part.family;
    family.kind == Kind::Gauge && IN_FLIGHT.iter().any(|name| family.name.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_view::families::pages::{self, counter, gauge, histogram};

    fn of_page(page: &str) -> BTreeMap<String, Counts> {
        let all = Requests::of(&pages::read(page)).0.into_iter();
        all.map(|(name, series)| (name, Counts::total(series.values()))).collect()
    }

    #[test]
    fn requests_are_found_under_any_convention() {
        let a = "method=\"GET\",route=\"/a\"";
        let [ok, failed, aborted] = ["status=\"2xx\"", "status=\"5xx\"", "outcome=\"aborted\""]
            .map(|label| format!("{a},{label}"));
        let talea = [
            pages::requests(&[(a, 7)]),
            histogram("http_exchange_duration_seconds", &[(a, 5)]),
            counter("http_requests_total", &[(&ok, 4), (&failed, 3)]),
            counter("http_request_outcomes_total", &[(&aborted, 6)]),
            gauge("http_requests_in_flight", &[(a, 2)]),
        ];
        let b = "http_request_method=\"GET\",http_route=\"/a\"";
        let [ok, failed] =
            [200, 503].map(|status| format!("{b},http_response_status_code=\"{status}\""));
        let opentelemetry = [
            histogram("http_server_request_duration_seconds", &[(&ok, 4), (&failed, 3)]),
            histogram("http_client_request_duration_seconds", &[(&ok, 100)]),
            gauge("http_server_active_requests", &[(&*format!("{b},url_scheme=\"http\""), 2)]),
        ];
        let cowboy = [histogram("cowboy_request_duration_milliseconds", &[(a, 7)])];
        for (page, errors, in_flight, seconds) in [
            (talea.concat(), Some(3.0), Some(2.0), 7.0),
            (opentelemetry.concat(), Some(3.0), Some(2.0), 7.0),
            (cowboy.concat(), None, None, 0.007),
        ] {
            let found = of_page(&page);
            let counts = &found["GET /a"];
            assert_eq!(found.len(), 1, "{page}");
            assert_eq!(counts.times.count, 7.0, "{page}");
            assert_eq!(counts.times.sum, seconds, "{page}");
            let found = counts
                .statuses
                .iter()
                .find(|(status, _)| status.starts_with('5'))
                .map(|(_, count)| *count);
            assert_eq!((found, counts.in_flight), (errors, in_flight), "{page}");
            let aborted = page.contains("outcome").then_some(&6.0);
            assert_eq!(counts.outcomes.get("aborted"), aborted, "{page}");
            let families = pages::read(&page);
            for Family { name, .. } in &families {
                assert_ne!(is_of_requests(name), name.contains("client"), "{page}");
            }
        }
    }

    #[test]
    fn a_number_that_is_not_finite_changes_no_other() {
        let mut page = pages::requests(&[("route=\"/a\"", 7)]);
        for (name, kind, label) in [
            ("http_requests_total", "counter", ",status=\"5xx\""),
            ("http_request_outcomes_total", "counter", ",outcome=\"aborted\""),
            ("http_requests_in_flight", "gauge", ""),
        ] {
            let values =
                [("http", "NaN"), ("https", "3"), ("ws", "+Inf")].map(|(scheme, value)| {
                    (format!("route=\"/a\",url_scheme=\"{scheme}\"{label}"), value)
                });
            page += &pages::family(kind, name, &values.each_ref().map(|it| (&*it.0, it.1)));
        }
        let counts = &of_page(&page)["/a"];
        assert_eq!((counts.statuses["5xx"], counts.outcomes["aborted"]), (3.0, 3.0));
        assert_eq!(counts.in_flight, Some(3.0));
    }

    #[test]
    fn histograms_of_other_things_are_no_requests() {
        for (name, labels) in [
            ("http_request_body_size_bytes", "method=\"GET\",route=\"/a\""),
            ("http_request_duration_highr_seconds", "app=\"shop\""),
            ("db_query_duration_seconds", "method=\"GET\""),
            ("http_client_request_duration_seconds", "method=\"GET\""),
        ] {
            assert_eq!(of_page(&histogram(name, &[(labels, 1)])), BTreeMap::new(), "{name}");
        }
    }

    #[test]
    fn each_region_is_read_by_its_own_families() {
        let up = gauge("talea_agent_region_up", &[("region=\"a\"", 1), ("region=\"b\"", 1)]);
        let of = |region: &str, more: &str| {
            format!("region=\"{region}\",method=\"GET\",route=\"/x\"{more}")
        };
        // One has its statuses in the histogram, and another name for it.
        let pages = [
            up,
            histogram("http_request_duration_seconds", &[(&of("a", ",status=\"5xx\""), 3)]),
            histogram("http_response_time_seconds", &[(&of("b", ""), 7)]),
            counter("http_requests_total", &[(&of("b", ",status=\"2xx\""), 7)]),
            gauge("http_requests_in_progress", &[(&of("a", ""), 1)]),
            gauge("http_requests_in_flight", &[(&of("b", ""), 2)]),
        ];
        let found = of_page(&pages.concat());
        let short = |name: &str| {
            let counts = &found[name];
            let statuses: Vec<_> =
                counts.statuses.iter().map(|(of, n)| (of.as_str(), *n)).collect();
            (counts.times.count, statuses, counts.in_flight)
        };
        assert_eq!(short("GET /x a"), (3.0, vec![("5xx", 3.0)], Some(1.0)));
        assert_eq!(short("GET /x b"), (7.0, vec![("2xx", 7.0)], Some(2.0)));
    }
}
