//! Claims about the formats that a scraper can ask for.

use std::time::{Duration, SystemTime};

use crate::support::metrics::By;
use crate::support::protobuf::{self, MetricFamily, Time};
use talea::{
    Combine, Counter, DynamicLabels, Escaping, Family, FloatCounter, FloatGauge, Format, Gauge,
    Histogram, Info, LabelValue, Opts, Registry, Seconds, StateSet, UpDownCounter,
};
use talea_parse::Syntax;

const FORMATS: [Format; 4] =
    [Format::Text, Format::OpenMetrics, Format::OpenMetricsDraft, Format::Protobuf];

#[derive(LabelValue)]
#[allow(dead_code)]
enum Circuit {
    Closed,
    Open,
}

/// A registry with a metric of each kind.
fn one_of_each() -> Registry {
    let registry = Registry::for_test().unwrap();
    let calls: Family<By<'static>, Counter> =
        registry.register(Opts::new("calls", "Calls \\ of\n\"all\" kinds.")).unwrap();
    calls.with(By { user: "a\"b\\c\nd" }).add(3);
    let failed = calls.with(By { user: "x" });
    failed.add_with_exemplar(2, &[("trace_id", "0af7"), ("note", "a\"b")]).unwrap();
    let fill: FloatGauge = registry.register(Opts::new("fill_ratio", "How full.")).unwrap();
    fill.set(0.25);
    let opts = Opts::new("wait", "Time to wait.").buckets(&[0.1, 1.0]);
    let wait: Histogram<Seconds> = registry.register(opts).unwrap();
    wait.observe(Duration::from_millis(50));
    wait.observe_with_exemplar(Duration::from_secs(3), &[("trace_id", "beef")]).unwrap();
    let build: Info<By<'static>> = registry.register(Opts::new("build", "By whom.")).unwrap();
    build.set(By { user: "ci" });
    let circuit: StateSet<Circuit> = registry.register(Opts::new("circuit", "Its state.")).unwrap();
    circuit.set(Circuit::Open);
    registry
}

fn scraped(registry: &Registry, format: Format, escaping: Escaping) -> Vec<u8> {
    let mut scraper = registry.scraper();
    scraper.format(format, escaping);
    scraper.scrape().to_vec()
}

fn text_of(registry: &Registry, format: Format) -> String {
    String::from_utf8(scraped(registry, format, Escaping::default())).unwrap()
}

/// The text with what differs from run to run left out.
fn without_times(text: &str) -> String {
    let lines = text.lines().map(|line| match line.split_once("_created") {
        Some((name, rest)) if !line.starts_with('#') => {
            let (labels, time) = rest.rsplit_once(' ').unwrap();
            check_time(time);
            format!("{name}_created{labels} TIME")
        }
        _ => match line.split_once(" # ") {
            Some((_, exemplar)) if exemplar.starts_with('{') => {
                let (rest, time) = line.rsplit_once(' ').unwrap();
                check_time(time);
                format!("{rest} TIME")
            }
            _ => line.to_owned(),
        },
    });
    lines.map(|line| line + "\n").collect()
}

fn check_time(text: &str) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64();
    let age = now - text.parse::<f64>().unwrap();
    assert!((-0.1..60.0).contains(&age), "{text}");
}

#[test]
fn openmetrics_has_all_that_there_is_to_say() {
    let expected = r#"# TYPE build info
# HELP build By whom.
build_info{user="ci"} 1
# TYPE calls counter
# HELP calls Calls \\ of\n\"all\" kinds.
calls_total{user="a\"b\\c\nd"} 3
calls_created{user="a\"b\\c\nd"} TIME
calls_total{user="x"} 2 # {trace_id="0af7",note="a\"b"} 2 TIME
calls_created{user="x"} TIME
# TYPE circuit stateset
# HELP circuit Its state.
circuit{circuit="closed"} 0
circuit{circuit="open"} 1
# TYPE fill_ratio gauge
# UNIT fill_ratio ratio
# HELP fill_ratio How full.
fill_ratio 0.25
# TYPE wait_seconds histogram
# UNIT wait_seconds seconds
# HELP wait_seconds Time to wait.
wait_seconds_bucket{le="0.1"} 1
wait_seconds_bucket{le="1.0"} 1
wait_seconds_bucket{le="+Inf"} 2 # {trace_id="beef"} 3 TIME
wait_seconds_count 2
wait_seconds_sum 3.05
wait_seconds_created TIME
# EOF
"#;
    let text = text_of(&one_of_each(), Format::OpenMetrics);
    assert_eq!(without_times(&text), expected);
}

#[test]
fn the_text_format_shows_what_it_does_not_know_as_gauges() {
    let text = text_of(&one_of_each(), Format::Text);
    for line in [
        "# TYPE build_info gauge\nbuild_info{user=\"ci\"} 1\n",
        "# HELP calls_total Calls \\\\ of\\n\"all\" kinds.\n# TYPE calls_total counter\n",
        "circuit{circuit=\"closed\"} 0\ncircuit{circuit=\"open\"} 1\n",
        "wait_seconds_bucket{le=\"1\"} 1\nwait_seconds_bucket{le=\"+Inf\"} 2\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(!text.contains("_created") && !text.contains("EOF") && !text.contains("trace_id"));
}

#[test]
fn names_that_a_scraper_does_not_take_are_shown_as_it_asks() {
    let registry = Registry::for_test().unwrap();
    let opts = Opts::new("http.requests", "Requests.").utf8_names(true);
    let requests: Family<DynamicLabels, Counter> =
        registry.family(opts, &["http.route", "ok"]).unwrap();
    requests.with_values(&["/a\"b", "yes"]).inc();
    let opts = Opts::new("größe", "Size.").utf8_names(true);
    registry.register::<Gauge>(opts).unwrap().set(7);
    for (escaping, expected) in [
        (
            Escaping::AllowUtf8,
            [
                "{\"http.requests_total\",\"http.route\"=\"/a\\\"b\",ok=\"yes\"} 1\n",
                "{\"größe\"} 7\n",
            ],
        ),
        (
            Escaping::Underscores,
            ["http_requests_total{http_route=\"/a\\\"b\",ok=\"yes\"} 1\n", "gr__e{} 7\n"],
        ),
        (
            Escaping::Dots,
            ["http_dot_requests__total{http_dot_route=\"/a\\\"b\",ok=\"yes\"} 1\n", "gr____e 7\n"],
        ),
        (
            Escaping::Values,
            [
                "U__http_2e_requests__total{U__http_2e_route=\"/a\\\"b\",ok=\"yes\"} 1\n",
                "U__gr_f6__df_e 7\n",
            ],
        ),
    ] {
        let text = String::from_utf8(scraped(&registry, Format::OpenMetrics, escaping)).unwrap();
        for line in expected {
            assert!(text.contains(&line.replace("{}", "")), "{escaping:?} {line}\n{text}");
        }
    }
    let text = String::from_utf8(scraped(&registry, Format::Text, Escaping::AllowUtf8)).unwrap();
    assert!(text.contains("# TYPE \"http.requests_total\" counter\n"), "{text}");
    let snapshot = registry.snapshot();
    let series = snapshot.select("http.requests_total", &[]).next().unwrap();
    assert_eq!(series.label("http.route").as_deref(), Some("/a\"b"));
}

/// A label value of so many bytes, which begins with their number.
fn value_of(len: usize) -> String {
    format!("{len}-").chars().chain("abcdefghij".chars().cycle()).take(len).collect()
}

#[test]
fn lines_of_any_length_are_whole() {
    let registry = Registry::for_test().unwrap();
    let mut expected = String::new();
    for len in [1, 10, 30, 31, 32, 33, 100, 126, 127, 128, 129, 200] {
        let name: &str = format!("{:c<len$}", "a").leak();
        let family = registry.family::<UpDownCounter>(Opts::new(name, "Some."), &["l"]).unwrap();
        for n in 0..200 {
            let number = (-3_i64).wrapping_pow(n as u32 % 40);
            let value = value_of(n);
            family.with_values(&[&value]).add(number);
            expected += &format!("{name}{{l=\"{value}\"}} {number}\n");
        }
    }
    let text = text_of(&registry, Format::Text);
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    let mut expected: Vec<&str> = expected.lines().collect();
    expected.sort_by_key(|line| line.split('{').next());
    assert!(samples.eq(expected));
}

#[test]
fn a_scrape_in_pieces_equals_one_at_once() {
    let registry = one_of_each();
    let calls = registry.family::<Counter>(Opts::new("many", "Many."), &["n"]).unwrap();
    for n in 0..500 {
        calls.with_values(&[n.to_string()]).add(n);
    }
    for format in FORMATS {
        let snapshot = registry.snapshot();
        let mut whole = Vec::new();
        snapshot.chunks(format, Escaping::default(), usize::MAX).for_each(|c| whole.extend(c));
        for size in [1, 7, 100, 4096] {
            let chunks: Vec<_> = snapshot.chunks(format, Escaping::default(), size).collect();
            assert!(chunks.len() > 2, "{format:?} {size}");
            let longest = chunks.iter().map(Vec::len).max().unwrap();
            assert!(longest < size + 1000, "{longest}");
            assert_eq!(chunks.concat(), whole, "{format:?} {size}");
        }
    }
}

#[test]
fn a_scraper_gives_pieces_of_one_scrape_after_the_other() {
    let registry = one_of_each();
    let mut scraper = registry.scraper();
    scraper.format(Format::OpenMetrics, Escaping::default());
    for _ in 0..2 {
        scraper.begin(|name| name.starts_with("wait") || name == "calls_total");
        let (mut pieces, mut piece) = (Vec::new(), Vec::new());
        while scraper.write_some(&mut piece, 100) {
            pieces.push(std::mem::take(&mut piece));
        }
        pieces.push(piece);
        assert!(pieces.len() >= 3);
        let text = String::from_utf8(pieces.concat()).unwrap();
        let families: Vec<_> = text.lines().filter(|line| line.starts_with("# TYPE")).collect();
        assert_eq!(families, ["# TYPE calls counter", "# TYPE wait_seconds histogram"]);
        assert!(text.ends_with("# EOF\n"));
    }
    // One that was left half-way does not begin in the middle.
    scraper.begin(|_| true);
    assert!(scraper.write_some(&mut Vec::new(), 1));
    assert_eq!(scraper.scrape(), scraped(&registry, Format::OpenMetrics, Escaping::default()));
}

#[test]
fn a_second_scrape_allocates_nothing() {
    let registry = Registry::for_test().unwrap();
    let calls: Family<By<'static>, Counter> =
        registry.register(Opts::new("calls", "Calls.")).unwrap();
    let wait: Family<By<'static>, Histogram<Seconds>> =
        registry.register(Opts::new("wait", "Time to wait.")).unwrap();
    for n in 0..200 {
        calls.with(By { user: &n.to_string() }).inc();
        wait.with(By { user: &n.to_string() }).observe(Duration::from_millis(n));
    }
    for format in [Format::Text, Format::OpenMetrics] {
        let mut scraper = registry.scraper();
        scraper.format(format, Escaping::default());
        for _ in 0..3 {
            scraper.scrape();
        }
        let counted = allocation_counter::measure(|| {
            scraper.scrape();
        });
        assert_eq!(counted.count_total, 0, "{format:?}");
    }
}

fn check(time: &Option<Time>) {
    let Time { seconds, nanos } = time.clone().unwrap();
    check_time(&format!("{seconds}.{nanos:09}"));
}

fn families(registry: &Registry) -> Vec<MetricFamily> {
    protobuf::families(&scraped(registry, Format::Protobuf, Escaping::default()))
}

#[test]
fn protobuf_has_all_that_there_is_to_say() {
    let families = families(&one_of_each());
    let names: Vec<_> = families.iter().map(|f| (f.name.as_str(), f.kind.unwrap())).collect();
    let expected = [
        ("build_info", 1),
        ("calls_total", 0),
        ("circuit", 1),
        ("fill_ratio", 1),
        ("wait_seconds", 4),
    ];
    assert_eq!(names, expected);
    let calls = &families[1];
    assert_eq!(calls.help, "Calls \\ of\n\"all\" kinds.");
    let first = &calls.metric[0];
    assert_eq!(
        (first.label[0].name.as_str(), first.label[0].value.as_str()),
        ("user", "a\"b\\c\nd")
    );
    let counter = calls.metric[1].counter.as_ref().unwrap();
    assert_eq!(counter.value, Some(2.0));
    check(&counter.created);
    let exemplar = counter.exemplar.as_ref().unwrap();
    assert_eq!((exemplar.value, exemplar.label[1].value.as_str()), (2.0, "a\"b"));
    check(&exemplar.time);
    assert_eq!(families[3].metric[0].gauge.as_ref().unwrap().value, Some(0.25));
    let wait = families[4].metric[0].histogram.as_ref().unwrap();
    assert_eq!((wait.count, wait.sum), (2, 3.05));
    check(&wait.created);
    let buckets: Vec<_> = wait.bucket.iter().map(|b| (b.upper_bound, b.cumulative)).collect();
    assert_eq!(buckets, [(0.1, 1), (1.0, 1), (f64::INFINITY, 2)]);
    assert_eq!(wait.bucket[2].exemplar.as_ref().unwrap().label[0].value, "beef");
}

#[test]
fn an_exemplar_that_is_too_long_is_refused_and_what_it_was_of_counts() {
    let registry = Registry::for_test().unwrap();
    let calls: Counter = registry.register(Opts::new("calls", "Calls.")).unwrap();
    let value = "ü".repeat(120);
    calls.add_with_exemplar(1, &[("trace_id", &value)]).unwrap();
    let value = "ü".repeat(121);
    let message = calls.add_with_exemplar(1, &[("trace_id", &value)]).unwrap_err().to_string();
    assert!(message.contains("129") && message.contains("128"), "{message}");
    for labels in [[("a b", "x"), ("c", "y")], [("c", "x"), ("c", "y")]] {
        assert!(calls.add_with_exemplar(1, &labels).is_err());
    }
    assert_eq!(calls.get(), 4);
    let series = registry.snapshot();
    let shown: Vec<_> = series.select("calls_total", &[]).flat_map(|s| s.exemplars()).collect();
    assert_eq!(shown.len(), 1);
    assert_eq!(shown[0].labels, [("trace_id".to_owned(), "ü".repeat(120))]);
}

#[test]
fn what_a_counter_ignores_is_no_exemplar() {
    let registry = Registry::for_test().unwrap();
    let spent: FloatCounter = registry.register(Opts::new("spent", "Spent.")).unwrap();
    for (x, id) in [(0.5, "counted"), (f64::NAN, "nan"), (-1.0, "negative"), (-0.5, "more")] {
        spent.add_with_exemplar(x, &[("trace_id", id)]).unwrap();
    }
    assert_eq!(spent.get(), 0.5);
    let shown = registry.snapshot();
    let shown: Vec<_> = shown.select("spent_total", &[]).flat_map(|s| s.exemplars()).collect();
    let [exemplar] = &shown[..] else { panic!("{shown:?}") };
    assert_eq!((exemplar.value, exemplar.labels[0].1.as_str()), (0.5, "counted"));
}

#[test]
fn values_of_each_process_are_separate_in_every_format() {
    let registry = Registry::for_test().unwrap();
    let opts = Opts::new("load", "Load.").combine(Combine::Each);
    registry.register::<Gauge>(opts).unwrap().set(-3);
    let expected = format!("load{{pid=\"{}\"}} -3\n", std::process::id());
    assert!(text_of(&registry, Format::Text).ends_with(&expected));
    let family = &families(&registry)[0];
    assert_eq!(family.metric[0].label[0].name, "pid");
}

#[test]
fn the_checker_finds_nothing_in_a_scrape() {
    let registry = Registry::for_test().unwrap();
    let orders: Counter = registry.register(Opts::new("orders", "Orders \"taken\".")).unwrap();
    orders.inc();
    let _waiting: Gauge = registry.register(Opts::new("waiting", "Requests that wait.")).unwrap();
    let waited: Histogram<Seconds> = registry.register(Opts::new("waited", "Waited.")).unwrap();
    waited.observe(std::time::Duration::from_millis(30));
    let mut scraper = registry.scraper();
    for (format, syntax) in
        [(Format::Text, Syntax::Text), (Format::OpenMetrics, Syntax::OpenMetrics)]
    {
        scraper.format(format, Escaping::Underscores);
        let text = std::str::from_utf8(scraper.scrape()).unwrap();
        assert_eq!(talea_parse::check(text, syntax), [], "{text}");
        assert_eq!(Syntax::of_text(text), syntax);
    }
}
