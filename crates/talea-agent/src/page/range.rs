//! The past, in bins.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Serialize;

use super::clients::{clients, clients_grown, is_of_clients};
use super::feed::Feed;
use super::numbering::{Bucket, Endpoint};
use super::point::{InFlight, Point};
use super::query::{Selection, TimeRange};
use crate::history::{Stretch, Time};
use crate::live::{Counts, Mark, Moment, Reading, Step, Watch, is_of_live, is_of_marks};
use talea_page::{Family, Series};

/// The most ticks that are looked at because counters fell there, beside the ends of bins.
const MOST_FALLS: usize = 1_000;

/// The answer to a request for a part of the past.
#[derive(Debug, Serialize)]
pub(super) struct Range {
    run: String,
    from: i64,
    to: i64,
    /// Seconds.
    bin: i64,
    points: Vec<Point>,
    endpoints: Vec<Endpoint>,
    buckets: Vec<Bucket>,
    marks: Vec<Mark>,
}

impl Range {
    /// Takes as long as to read the ticks of it, up to a second.
    pub(super) fn of(feed: &Feed, span: TimeRange) -> Self {
        let is_wanted = |name: &str| is_of_live(name) || is_of_marks(name) || is_of_clients(name);
        let mut last_clients = None;
        let stretch = feed.between(span.from, span.to);
        let found = Bins::of(&stretch, span, is_wanted, |reading, before| {
            let seen = clients(&reading.families);
            let seen_before = std::mem::replace(&mut last_clients, seen.clone());
            let grown = seen.map(|now| clients_grown(seen_before.as_ref(), &now));
            (Moment::of(reading, before), grown)
        });
        found.shown(feed, span)
    }

    /// The distribution of what a histogram observed. It is in points where the requests are that clients saw.
    pub(super) fn of_histogram(
        feed: &Feed,
        family: &str,
        wanted: &Selection,
        span: TimeRange,
    ) -> Self {
        let stretch = feed.between(span.from, span.to);
        let is_wanted = |name: &str| name == family || is_of_marks(name);
        let mut found = Bins::of(&stretch, span, is_wanted, |reading, before| {
            let is_selected = |series: &Series| wanted.has(&series.labels);
            (Moment::of_histogram(family, is_selected, reading, before), None)
        });
        for bin in &mut found.bins {
            bin.clients = bin.step.grown.remove(family);
        }
        found.shown(feed, span)
    }
}

/// A part of the past as steps.
struct Bins {
    bins: Vec<Bin>,
    marks: Vec<Mark>,
    in_flight: InFlight,
}

impl Bins {
    fn of(
        stretch: &Stretch,
        span: TimeRange,
        is_wanted: impl Fn(&str) -> bool,
        mut moment: impl FnMut(&Reading, Option<&Moment>) -> (Moment, Option<Counts>),
    ) -> Self {
        let (mut bins, mut marks): (Vec<Bin>, _) = (Vec::new(), Vec::new());
        let (mut last, mut watch): (Option<Moment>, _) = (None, Watch::default());
        let mut in_flight = InFlight::default();
        replay(stretch, span, is_wanted, |tick, families| {
            marks.extend(watch.next(tick.time.unix_millis, &families));
            let reading = Reading::recorded(tick.after, tick.time.unix_millis, families);
            let (now, clients) = moment(&reading, last.as_ref());
            if let Some(before) = last.replace(now.clone()) {
                if bins.is_empty() {
                    in_flight = InFlight::of(&before);
                }
                let step = Step::between(&before, &now);
                let bin = span.bin_of(tick.time.unix_millis);
                match bins.last_mut().filter(|last| last.number == bin) {
                    Some(last) => last.extend(&tick, step, clients),
                    None => bins.push(Bin {
                        number: bin,
                        unix_millis: tick.time.unix_millis,
                        steps: tick.steps,
                        step,
                        clients,
                    }),
                }
            }
        });
        // A wall clock that was set back shows times again.
        bins.sort_by_key(|bin| bin.unix_millis);
        Self { bins, marks, in_flight }
    }

    fn shown(mut self, feed: &Feed, span: TimeRange) -> Range {
        feed.with_numbers(|numbering| {
            let points = self
                .bins
                .iter()
                .filter(|bin| bin.unix_millis >= span.from)
                .map(|bin| {
                    let (clients, steps) = (bin.clients.as_ref(), (bin.steps, &bin.step));
                    Point::of(bin.unix_millis, steps, clients, numbering, &mut self.in_flight)
                })
                .collect();
            let (endpoints, buckets) = numbering.since((0, 0));
            let TimeRange { from, to, bin } = span;
            let run = feed.run().to_owned();
            Range { run, from, to, bin: bin / 1000, points, endpoints, buckets, marks: self.marks }
        })
    }
}

/// Steps that end in one bin.
#[derive(Debug)]
struct Bin {
    number: i64,
    /// When the last of them ended.
    unix_millis: i64,
    /// The number of ticks in them.
    steps: u64,
    step: Step,
    /// The requests of a load as its clients saw them.
    clients: Option<Counts>,
}

impl Bin {
    fn extend(&mut self, tick: &Tick, step: Step, clients: Option<Counts>) {
        if let Some(clients) = clients {
            self.clients.get_or_insert_default().add(&clients);
        }
        self.unix_millis = tick.time.unix_millis;
        self.steps += tick.steps;
        self.step.extend(step);
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Tick {
    pub(super) time: Time,
    /// The time since the first tick, by a clock that is never set, or by the other one where the machine was
    /// booted in between.
    pub(super) after: Duration,
    /// How many ticks there are since the one shown before.
    pub(super) steps: u64,
}

/// Hands the wanted families to `show` as they were at the last tick of each bin, and before and after each
/// tick at which a counter fell, so that increases are exact.
pub(super) fn replay(
    stretch: &Stretch,
    span: TimeRange,
    is_wanted: impl Fn(&str) -> bool,
    mut show: impl FnMut(Tick, Vec<Family>),
) {
    let times = stretch.times();
    let mut looks = ends_of_bins(&times, span);
    let mut falls = 0;
    stretch.replay(|number, _, state| {
        if state.fell() && falls < MOST_FALLS {
            falls += 1;
            looks.extend(number.checked_sub(1));
            looks.insert(number);
        }
    });
    let afters = stretch.afters();
    let mut shown = None;
    stretch.replay(|number, time, state| {
        if looks.contains(&number) {
            let steps = shown.map_or(0, |shown| (number - shown) as u64);
            shown = Some(number);
            let after = afters.get(number).copied().unwrap_or_default();
            show(Tick { time, after, steps }, state.families_named(&is_wanted));
        }
    });
}

/// The last tick of each bin, and the last one before the first bin.
fn ends_of_bins(times: &[Time], span: TimeRange) -> BTreeSet<usize> {
    let bin = |number: usize| {
        let unix_millis = times[number].unix_millis;
        if unix_millis < span.from { i64::MIN } else { span.bin_of(unix_millis) }
    };
    (0..times.len())
        .filter(|number: &usize| number + 1 == times.len() || bin(*number) != bin(number + 1))
        .collect()
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;
    use std::time::Instant;

    use super::*;
    use crate::history::{Extent, History};
    use crate::live::CREATED;
    use crate::page::feed::{About, Recorded};
    use talea_view::families::pages::{self, gauge, requests};

    /// Readings, each with its second of the wall clock, and of the one that is never set.
    pub(in super::super) fn feed(pages: impl IntoIterator<Item = (i64, u64, String)>) -> Arc<Feed> {
        let hour = Duration::from_secs(3600);
        let history = History::new(Extent { seconds: hour, minutes: hour, bytes: 1 << 20 });
        let feed = Feed::new(About::default(), history);
        for (second, steady, page) in pages {
            let time = Time { unix_millis: second * 1000, steady: Duration::from_secs(steady) };
            let (began, ended) = (Instant::now(), Instant::now());
            let (families, processes) = (pages::read(&page), Vec::new());
            feed.add(Recorded { time, began, ended, families, processes }).unwrap();
        }
        feed
    }

    #[test]
    fn a_request_that_has_ended_is_not_in_flight_on_a_page_that_is_opened_later() {
        let a = "method=\"GET\",route=\"/a\"";
        let page = |in_flight: u64, aborted: u64| {
            requests(&[(a, 1)])
                + &gauge("http_requests_in_flight", &[(a, in_flight)])
                + &pages::counter(
                    "http_request_outcomes_total",
                    &[(&*format!("{a},outcome=\"aborted\""), aborted)],
                )
        };
        // A stream whose client leaves, one that stays, and a service that is gone with it.
        let all = [page(0, 0), page(1, 0), page(0, 1), page(1, 1), String::new(), String::new()];
        let seconds = (100..).zip(all);
        let feed = feed(seconds.map(|(second, page)| (second, second as u64, page)));
        let points = |from, to, bin| {
            let span = TimeRange { from, to, bin };
            let json = serde_json::to_value(Range::of(&feed, span)).unwrap();
            let points = json["points"].as_array().unwrap().iter();
            points
                .map(|it: &serde_json::Value| match &it["e"][0] {
                    serde_json::Value::Null => "nothing".to_owned(),
                    endpoint => format!("{} {}", endpoint[3], endpoint[6]),
                })
                .collect::<Vec<String>>()
        };
        let [open, left, gone] = ["1 {}", "0 {\"aborted\":1}", "null {}"];
        assert_eq!(points(100_001, 106_000, 1_000), [open, left, open, gone, "nothing"]);
        // Opened when it was in flight already.
        assert_eq!(points(101_001, 102_000, 1_000), [left]);
        assert_eq!(points(103_001, 106_000, 1_000), [gone, "nothing"]);
        assert_eq!(points(100_001, 110_000, 10_000), ["null {\"aborted\":1}"]);
    }

    #[test]
    fn one_bin_has_as_many_requests_as_its_seconds_also_if_a_region_was_replaced_in_it() {
        // A region that was made at second 10, and one that took its place at second 102.
        let pages = [(100, 10, 5), (101, 10, 7), (103, 102, 9), (104, 102, 12)];
        let feed = feed(pages.map(|(second, created, count)| {
            let page = gauge(CREATED, &[("region=\"shop\"", created)])
                + &requests(&[("method=\"GET\",route=\"/a\"", count)]);
            (second, second as u64, page)
        }));
        for bin in [1_000, 10_000] {
            let span = TimeRange { from: 100_001, to: 105_000, bin };
            let json = serde_json::to_value(Range::of(&feed, span)).unwrap();
            let points = json["points"].as_array().unwrap().iter();
            let endpoints = points.flat_map(|point| point["e"].as_array().unwrap());
            let all: u64 = endpoints.map(|endpoint| endpoint[1].as_u64().unwrap()).sum();
            assert_eq!(all, 2 + 9 + 3, "{json}");
        }
    }

    #[test]
    fn endpoints_and_health_are_said_with_their_region_if_the_page_has_several() {
        let page = |regions: &[&str], count: u64| {
            let labels: Vec<String> = regions.iter().map(|it| format!("region=\"{it}\"")).collect();
            let endpoints: Vec<String> =
                labels.iter().map(|it| format!("{it},method=\"GET\",route=\"/a\"")).collect();
            let each = |labels: &[String], value: u64| {
                labels.iter().map(|it| (it.clone(), value)).collect::<Vec<_>>()
            };
            let text = |series: &[(String, u64)], write: fn(&[(&str, u64)]) -> String| {
                write(&series.iter().map(|it| (it.0.as_str(), it.1)).collect::<Vec<_>>())
            };
            text(&each(&labels, 10), |series| gauge(CREATED, series))
                + &text(&each(&endpoints, count), requests)
                + &text(&each(&labels, 7), |series| gauge("process_open_fds", series))
        };
        // Names that are odd, that are a part of another, or a word of the page.
        for regions in [&["shop"][..], &["shop", "shop 2", "GET", "a\u{202e}b"]] {
            let feed = feed(
                (100..104).map(|second| (second, second as u64, page(regions, second as u64))),
            );
            let span = TimeRange { from: 100_001, to: 104_000, bin: 1_000 };
            let json = serde_json::to_value(Range::of(&feed, span)).unwrap();
            let found = json["endpoints"].as_array().unwrap().iter();
            let mut found: Vec<(&str, &str)> =
                found.map(|it| (it[1].as_str().unwrap(), it[3].as_str().unwrap())).collect();
            found.sort_by_key(|it| regions.iter().position(|region| *region == it.1));
            let expected: Vec<String> = regions.iter().map(|it| format!("GET /a {it}")).collect();
            let expected = expected.iter().map(String::as_str).zip(regions.iter().copied());
            assert_eq!(found, expected.collect::<Vec<_>>());
            let point = &json["points"][0];
            assert_eq!(point["h"]["open_fds"], 7 * regions.len());
            let apart = point["hr"].as_object().map(|it| it.keys().cloned().collect());
            let apart: Vec<String> = apart.unwrap_or_default();
            if regions.len() == 1 {
                assert_eq!(apart, [""; 0], "it says nothing more");
            } else {
                assert_eq!(apart.len(), regions.len());
                assert_eq!(point["hr"]["shop 2"]["open_fds"], 7);
            }
        }
    }

    #[test]
    fn a_histogram_of_any_unit_is_shown_as_its_buckets_of_the_series_that_are_selected() {
        let page = |count: u64| {
            let [a, b] = ["region=\"a\",topic=\"x\"", "region=\"b\",topic=\"y\""];
            gauge(CREATED, &[("region=\"a\"", 10), ("region=\"b\"", 10)])
                + &pages::histogram("message_bytes", &[(a, count), (b, count * 10)])
        };
        let feed = feed((100..105).map(|second| (second, second as u64, page(second as u64))));
        let span = TimeRange { from: 100_001, to: 104_000, bin: 1_000 };
        let counts = |wanted: &[(&str, &str)]| {
            let query = wanted.iter().map(|it| (it.0.to_owned(), it.1.to_owned())).collect();
            let range = Range::of_histogram(&feed, "message_bytes", &Selection::of(&query), span);
            let json = serde_json::to_value(range).unwrap();
            assert_eq!(json["endpoints"], serde_json::json!([]), "it is no endpoint");
            let bucket = &json["buckets"][0];
            assert_eq!((&bucket[1], &bucket[2]), (&0.0.into(), &0.25.into()), "{json}");
            let points = json["points"].as_array().unwrap().iter();
            points.map(|point| point["c"][5][1].as_u64().unwrap_or(0)).collect::<Vec<u64>>()
        };
        assert_eq!(counts(&[]), [11; 4]);
        assert_eq!(counts(&[("region", "b")]), [10; 4]);
        assert_eq!(counts(&[("label.topic", "x")]), [1; 4]);
        assert_eq!(counts(&[("label.topic", "x"), ("region", "b")]), [0; 4]);
    }
}
