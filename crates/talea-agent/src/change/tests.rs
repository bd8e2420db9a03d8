//! Synthetic services, second by second: how soon a change is found, and how often one is found where there is none.

use talea::{Histogram, Opts, Registry, Seconds};
use talea_page::Family;

use super::*;
use crate::live::{Moment, Reading};

const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;

/// Log-normal latencies, as those of most services.
#[derive(Clone, Copy, Debug)]
struct Service {
    requests_a_second: f64,
    median: f64,
    sigma: f64,
    errors: f64,
}

/// What a second is like: factors of the requests and of the latencies, and the share of slow requests.
#[derive(Clone, Copy, Debug)]
struct Second {
    requests: f64,
    latency: f64,
    spread: f64,
    /// This share of all takes ten times as long.
    slow: f64,
    errors: f64,
}

/// What each second is like; and of each endpoint.
type Like = fn(i64) -> Second;
type LikeOf = fn(usize, i64) -> Second;

const USUAL: Second = Second { requests: 1.0, latency: 1.0, spread: 0.0, slow: 0.0, errors: 0.0 };

const API: Service = Service { requests_a_second: 20.0, median: 0.02, sigma: 0.5, errors: 0.001 };

fn normal(random: &mut fastrand::Rng) -> f64 {
    let (one, other) = (random.f64().max(1e-300), random.f64());
    (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * other).cos()
}

/// A number of events, as many as these in the mean.
fn poisson(random: &mut fastrand::Rng, mean: f64) -> u32 {
    if mean > 60.0 {
        return (mean + mean.sqrt() * normal(random)).round() as u32;
    }
    let (least, mut product, mut number) = ((-mean).exp(), random.f64(), 0);
    while product > least {
        product *= random.f64();
        number += 1;
    }
    number
}

impl Service {
    fn second(&self, random: &mut fastrand::Rng, second: Second) -> Observed {
        let (mut latencies, mut failures) = (Counts::new(), Counts::new());
        let number = poisson(random, self.requests_a_second * second.requests);
        for _ in 0..number {
            let slow = if random.f64() < second.slow { 10.0 } else { 1.0 };
            let spread = ((self.sigma + second.spread) * normal(random)).exp();
            let took = self.median * second.latency * slow * spread;
            *latencies.entry(bucket_of(took)).or_default() += 1.0;
            let has_failed = random.f64() < self.errors.max(second.errors);
            *failures.entry(if has_failed { FAILED } else { FINE }).or_default() += 1.0;
        }
        Observed { count: number.into(), latencies, failures }
    }

    /// The changes that are found, each with the second when it was, and the one that it is said to be since.
    fn watched(
        &self,
        seconds: i64,
        random: &mut fastrand::Rng,
        like: impl Fn(i64) -> Second,
    ) -> Vec<(i64, Quantity, Turn)> {
        let mut endpoint = Endpoint::new(0);
        let mut found = Vec::new();
        for second in 0..seconds {
            let observed = self.second(random, like(second));
            let turns =
                endpoint.add(second * 1000, Duration::from_secs(1), observed, threshold(200));
            found.extend(turns.into_iter().map(|(quantity, turn)| (second, quantity, turn)));
        }
        found
    }

    /// How many seconds after a change it was found in each of some runs, and how far off its second was, in their
    /// order.
    fn delays(&self, runs: u64, learnt: i64, change: Second) -> (Vec<i64>, Vec<i64>) {
        let (mut delays, mut errors) = (Vec::new(), Vec::new());
        for run in 0..runs {
            let mut random = fastrand::Rng::with_seed(run);
            let like = |second| if second < learnt { USUAL } else { change };
            let found = self.watched(learnt + 120, &mut random, like);
            let first = found.iter().find(|(second, ..)| *second >= learnt);
            if let Some((second, _, Turn::Changed(since))) = first {
                delays.push(second + 1 - learnt);
                errors.push((since / 1000 - learnt).abs());
            } else {
                delays.push(i64::MAX);
            }
        }
        delays.sort_unstable();
        errors.sort_unstable();
        (delays, errors)
    }
}

fn percentile(sorted: &[i64], percent: usize) -> i64 {
    sorted[(sorted.len() - 1) * percent / 100]
}

/// Changes of an endpoint with 20 requests a second, and within how many seconds 19 of 20 are to be found.
fn changes() -> [(&'static str, Service, Second, i64); 9] {
    let with_sigma = |sigma| Service { sigma, ..API };
    let twice = Second { latency: 2.0, ..USUAL };
    // By the ratio of the 99th percentile to the median of a log-normal distribution.
    let wider = Second { spread: std::f64::consts::LN_2 / 2.326, ..USUAL };
    [
        ("all twice as slow, sigma 0.2", with_sigma(0.2), twice, 15),
        ("all twice as slow, sigma 0.5", API, twice, 15),
        ("all twice as slow, sigma 1", with_sigma(1.0), twice, 15),
        ("p99 alone doubles, sigma 0.2", with_sigma(0.2), wider, 15),
        ("p99 alone doubles, sigma 0.5", API, wider, 90),
        ("1 of 10 is ten times as slow", API, Second { slow: 0.1, ..USUAL }, 15),
        ("1 of 20 is ten times as slow", API, Second { slow: 0.05, ..USUAL }, 30),
        ("1 of 5 fails", API, Second { errors: 0.2, ..USUAL }, 15),
        ("1 of 20 fails", API, Second { errors: 0.05, ..USUAL }, 30),
    ]
}

#[test]
fn a_change_is_found_within_seconds_and_so_is_its_second() {
    for (name, service, change, within) in changes() {
        let (delays, errors) = service.delays(20, 600, change);
        assert!(percentile(&delays, 95) <= within, "{name}: {delays:?}");
        assert!(percentile(&errors, 50) <= 2, "{name}: {errors:?}");
    }
}

#[test]
fn a_change_of_the_rate_is_found_within_two_minutes() {
    for (requests, quantity) in [(3.0, Quantity::More), (0.3, Quantity::Fewer)] {
        let mut random = fastrand::Rng::with_seed(1);
        let like =
            |second| Second { requests: if second < 1800 { 1.0 } else { requests }, ..USUAL };
        let found = API.watched(1920, &mut random, like);
        let [(_, found, Turn::Changed(since))] = found[..] else { panic!("{found:?}") };
        assert_eq!(found, quantity);
        assert!((1_790_000..=1_800_000).contains(&since), "{since}");
    }
}

#[test]
fn what_is_no_lasting_change_for_the_worse_gives_no_alarm() {
    let cases: [(&str, Like); 6] = [
        ("steady", |_| USUAL),
        ("faster", |second| Second { latency: if second < 900 { 1.0 } else { 0.3 }, ..USUAL }),
        ("5 % slower", |second| Second { latency: if second < 900 { 1.0 } else { 1.05 }, ..USUAL }),
        ("a stall of 3 seconds a minute", |second| Second {
            latency: if second % 60 < 3 { 50.0 } else { 1.0 },
            ..USUAL
        }),
        ("no requests for 20 seconds", |second| Second {
            requests: if second % 300 < 20 { 0.0 } else { 1.0 },
            ..USUAL
        }),
        ("bursts of requests", |second| Second {
            requests: if second % 200 < 5 { 10.0 } else { 1.0 },
            ..USUAL
        }),
    ];
    for (name, like) in cases {
        let mut random = fastrand::Rng::with_seed(2);
        let found = API.watched(2 * HOUR, &mut random, like);
        assert_eq!(found, [], "{name}");
    }
}

#[test]
fn a_change_ends_when_all_is_as_before_or_after_an_hour() {
    let mut random = fastrand::Rng::with_seed(3);
    let found = API.watched(1_000 + HOUR + 600, &mut random, |second| {
        let is_slow = (600..700).contains(&second) || second >= 1_000;
        Second { latency: if is_slow { 5.0 } else { 1.0 }, ..USUAL }
    });
    let turns: Vec<Turn> = found.iter().map(|it| it.2).collect();
    let changed = |second: i64| Turn::Changed(second * 1000);
    assert_eq!(turns, [changed(600), Turn::Back, changed(1_000), Turn::Adopted], "{found:?}");
    let seconds: Vec<i64> = found.iter().map(|it| it.0).collect();
    assert!((700..715).contains(&seconds[1]), "{seconds:?}");
    assert_eq!(seconds[3], 1_000 + HOUR);
}

#[test]
fn the_memory_for_an_endpoint_is_bounded() {
    let mut random = fastrand::Rng::with_seed(4);
    // Latencies of a nanosecond to an hour.
    let wild = Service { requests_a_second: 1_000.0, median: 1e-3, sigma: 5.0, errors: 0.5 };
    let mut endpoint = Endpoint::new(0);
    for second in 0..300 {
        let observed = wild.second(&mut random, USUAL);
        endpoint.add(second * 1000, Duration::from_secs(1), observed, threshold(1));
    }
    let [slower, ..] = &endpoint.watches;
    assert!(slower.usual().len() <= 1_000, "{}", slower.usual().len());
    assert!(slower.recent(i64::MAX).values().sum::<f64>() <= 61_000.0 * 1.1);
}

/// Days without a change, with how many requests and latencies there are in a second.
fn days() -> [(&'static str, LikeOf); 4] {
    [
        ("steady", |_, _| USUAL),
        ("by the hour: requests from 0.4 to 1.6, latencies from 0.7 to 1.3 times", |_, second| {
            let sine = (std::f64::consts::TAU * second as f64 / DAY as f64).sin();
            Second { requests: 1.0 + 0.6 * sine, latency: 1.0 + 0.3 * sine, ..USUAL }
        }),
        ("deploys every two hours: 8 s of silence, then 3 s three times as slow", |_, second| {
            match second % (2 * HOUR) {
                3_000..3_008 => Second { requests: 0.0, ..USUAL },
                3_008..3_011 => Second { requests: 1.5, latency: 3.0, ..USUAL },
                _ => USUAL,
            }
        }),
        (
            "bursts: every 15 min 6 s of five times the requests, and a stall of 2 s",
            |number, second| match (second + 37 * number as i64) % 900 {
                0..6 => Second { requests: 5.0, latency: 1.2, ..USUAL },
                300..302 => Second { latency: 10.0, ..USUAL },
                _ => USUAL,
            },
        ),
    ]
}

/// `cargo test --release -p talea-agent --lib -- --ignored --nocapture change::` measures what docs/explanations/changes.md
/// says.
#[test]
#[ignore = "simulates days of 200 endpoints, which takes minutes in a release build"]
fn a_day_of_200_endpoints_has_one_false_mark_at_most() {
    for (name, service, change, _) in changes() {
        let (delays, errors) = service.delays(200, HOUR, change);
        println!(
            "{name}: found after {} s in the median, {} s at the 95th percentile; its second is off by {} s and {} s",
            percentile(&delays, 50),
            percentile(&delays, 95),
            percentile(&errors, 50),
            percentile(&errors, 95),
        );
    }
    let began = Instant::now();
    for (name, like) in days() {
        let mut marks = BTreeMap::new();
        for number in 0..200 {
            // From one request a minute on.
            let service = Service {
                requests_a_second: [1.0 / 60.0, 0.1, 1.0, 5.0, 20.0, 50.0][number % 6],
                median: 0.002 * 1.5f64.powi((number % 13) as i32),
                sigma: [0.2, 0.5, 0.8, 1.2][number % 4],
                errors: [0.0, 0.000_5, 0.01][number % 3],
            };
            let mut random = fastrand::Rng::with_seed(number as u64);
            for (_, quantity, turn) in service.watched(DAY, &mut random, |it| like(number, it)) {
                if matches!(turn, Turn::Changed(_)) {
                    *marks.entry(quantity).or_insert(0) += 1;
                }
            }
        }
        println!("{name}: {marks:?}");
        assert!(marks.values().sum::<i32>() <= 1, "{name}: {marks:?}");
    }
    let each = began.elapsed().as_secs_f64() / (4.0 * 200.0 * DAY as f64);
    println!("{:.2} µs a second and endpoint, with the simulation", each * 1e6);
}

#[test]
#[ignore = "measures processor time, which says something of a release build alone"]
fn the_cost_of_a_second_of_200_endpoints() {
    let registry = Registry::with_config(talea::Config::with_len(64 << 20)).unwrap();
    let opts = Opts::new("http_request_duration_seconds", "D.");
    let times = registry.family::<Histogram<Seconds>>(opts, &["method", "route"]).unwrap();
    let opts = Opts::new("http_requests", "R.");
    let statuses = registry.family::<talea::Counter>(opts, &["method", "route", "status"]).unwrap();
    let mut random = fastrand::Rng::with_seed(6);
    let (mut changes, mut last, mut took) = (Changes::default(), None, [Duration::ZERO; 2]);
    for second in 0..120 {
        for route in (0..200).map(|number| format!("/api/resource/{number}/{{id}}")) {
            for _ in 0..random.usize(..40) {
                let latency = 0.02 * (0.5 * normal(&mut random)).exp();
                times.with_values(&["GET", &route]).observe(Duration::from_secs_f64(latency));
                statuses.with_values(&["GET", &route, "2xx"]).inc();
            }
        }
        let families = registry.snapshot().to_families();
        let reading = Reading::recorded(Duration::from_secs(second), second as i64, families);
        let began = Instant::now();
        let now = Moment::of(&reading, last.as_ref());
        let step = last.replace(now.clone()).map(|before| Step::between(&before, &now));
        took[0] += began.elapsed();
        let began = Instant::now();
        step.into_iter().for_each(|step| drop(changes.add(second as i64 * 1000, &step)));
        took[1] += began.elapsed();
    }
    println!(
        "a second takes {:?}, of which {:?} for the tests",
        (took[0] + took[1]) / 120,
        took[1] / 120
    );
}

/// The pages of a service, second by second, one of whose two endpoints is ten times as slow after some seconds.
pub(crate) fn pages(slow_after: usize) -> impl Iterator<Item = Vec<Family>> {
    let registry = Registry::for_test().unwrap();
    let opts = Opts::new("http_request_duration_seconds", "D.");
    let times = registry.family::<Histogram<Seconds>>(opts, &["method", "route"]).unwrap();
    let mut random = fastrand::Rng::with_seed(5);
    (0..).map(move |second: usize| {
        let slow = if second > slow_after { 10.0 } else { 1.0 };
        for (route, slow) in [("/search", slow), ("/health", 1.0)] {
            for _ in 0..20 {
                let took = 0.02 * slow * (0.1 * normal(&mut random)).exp();
                times.with_values(&["GET", route]).observe(Duration::from_secs_f64(took));
            }
        }
        registry.snapshot().to_families()
    })
}

#[test]
fn a_service_that_becomes_slow_is_a_change_with_its_second_and_its_numbers() {
    let (mut changes, mut last, mut events) = (Changes::default(), None, Vec::new());
    let mut since = std::collections::BTreeSet::new();
    for (second, families) in (0..200).zip(pages(180)) {
        // The two clocks are read one after the other.
        let unix_millis = 1_000_000 + second * 1_000 + second % 3;
        let reading = Reading::recorded(Duration::from_secs(second as u64), unix_millis, families);
        let now = Moment::of(&reading, last.as_ref());
        if let Some(before) = last.replace(now.clone()) {
            events.extend(changes.add(unix_millis, &Step::between(&before, &now)));
            since.extend(changes.current().iter().map(|it| it.since_unix_millis));
        }
    }
    assert_eq!(since.len(), 1, "it stays the same: {since:?}");
    let [Event { change, has_begun: true }] = &events[..] else { panic!("{events:?}") };
    assert_eq!((change.endpoint.as_str(), change.quantity), ("GET /search", Quantity::Slower));
    assert!((1_179_998..1_180_003).contains(&change.since_unix_millis), "{since:?}");
    let words: Vec<&str> = change.text.split(' ').collect();
    let ["p99", usual, "ms", "→", now, "ms,", "requests", "as", "before"] = words[..] else {
        panic!("{}", change.text)
    };
    let [usual, now] = [usual, now].map(|it| it.parse::<f64>().unwrap());
    assert!((22.0..30.0).contains(&usual) && (220.0..300.0).contains(&now), "{}", change.text);
    assert_eq!(changes.begun(), [1, 0, 0, 0]);
    // When no more requests come, what is said of the last ones stays.
    let Some(before) = last else { panic!() };
    let mut texts = Vec::new();
    for second in 200..300 {
        let step = Step {
            ended: before.ended + Duration::from_secs(second - 199),
            length: Duration::from_secs(1),
            ..Step::between(&before, &before)
        };
        changes.add(1_000_000 + second as i64 * 1_000, &step);
        texts.extend(changes.current().iter().map(|it| it.text.clone()));
    }
    assert_eq!(texts.len(), 100);
    assert!(texts.iter().all(|text| text.starts_with("p99 ") && text.contains('→')), "{texts:?}");
}
