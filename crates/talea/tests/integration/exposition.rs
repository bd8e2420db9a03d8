//! Claims about the formats that a scraper can ask for.
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use crate::support::metrics::{self, By, Users, opts, register, registry};
use crate::support::pages::{Circuit, Several, TEXTS, alone, escaped, scraped};
use crate::support::protobuf::{self, MetricFamily, Time};
use talea::{
    Bucketing, Combine, Counter, Escaping, FloatCounter, FloatGauge, Floats, Format, Gauge,
    Histogram, Info, Opts, Registry, Seconds, StateSet, Summary, UpDownCounter,
};

const FORMATS: [Format; 5] = [
    Format::Text,
    Format::OpenMetrics,
    Format::OpenMetricsDraft,
    Format::Protobuf,
    Format::OpenMetrics2,
];

/// A registry with a metric of each kind.
fn one_of_each() -> Registry {
    let registry = registry();
    let calls: Users<Counter> =
        registry.register(Opts::new("calls", "Calls \\ of\n\"all\" kinds.")).unwrap();
    calls.with(By { user: "a\"b\\c\nd" }).add(3);
    let failed = calls.with(By { user: "x" });
    failed.add_with_exemplar(2, &[("trace_id", "0af7"), ("note", "a\"b")]).unwrap();
    register::<FloatGauge>(&registry, "fill_ratio").set(0.25);
    let wait: Histogram<Seconds> = registry.register(opts("wait").buckets(&[0.1, 1.0])).unwrap();
    wait.observe(Duration::from_millis(50));
    wait.observe_with_exemplar(Duration::from_secs(3), &[("trace_id", "beef")]).unwrap();
    register::<Info<By<'static>>>(&registry, "build").set(By { user: "ci" });
    register::<StateSet<Circuit>>(&registry, "circuit").set(Circuit::Open);
    registry
}

/// The text with what differs from run to run left out.
fn without_times(text: &str) -> String {
    text.lines()
        .map(|line: &str| {
            let is_exemplar = line.split_once(" # ").is_some_and(|(_, rest)| rest.starts_with('{'));
            if line.starts_with('#') || !line.contains("_created") && !is_exemplar {
                return format!("{line}\n");
            }
            let (rest, time) = line.rsplit_once(' ').unwrap();
            check_time(time);
            format!("{rest} TIME\n")
        })
        .collect()
}

fn check_time(text: &str) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64();
    let age = now - text.parse::<f64>().unwrap();
    assert!((-0.1..60.0).contains(&age), "{text}");
}

#[test]
fn openmetrics_2_has_one_sample_for_each_series() {
    let registry = one_of_each();
    let native = opts("depth").bucketing(Bucketing::Native).schema(0);
    let depth: Histogram<Floats> = registry.register(native).unwrap();
    [-1.0, 0.0, 1.0, 1.5, 3.0, 1_000.0].iter().for_each(|x| depth.observe(*x));
    let dual = opts("size").bucketing(Bucketing::Dual).buckets(&[10.0]).schema(0);
    registry.register::<Histogram<talea::Count>>(dual).unwrap().observe(7);
    let quantiles = opts("age").quantiles(&[0.5, 1.0]);
    registry.register::<Summary<talea::Count>>(quantiles).unwrap().observe(9);
    let below = opts("below").quantiles(&[0.5]);
    registry.register::<Summary<Floats>>(below).unwrap().observe(-9.5);
    let expected = r#"# TYPE age summary
# HELP age Some.
age {count:1,sum:9,quantile:[0.5:9.101766782649008,1.0:9.101766782649008]} st@TIME
# TYPE below unknown
# HELP below Some.
below{quantile="0.5"} -9.101766782649008
# TYPE below_count unknown
# HELP below_count Some.
below_count 1
# TYPE below_sum unknown
# HELP below_sum Some.
below_sum -9.5
# TYPE build_info info
# HELP build_info Some.
build_info{user="ci"} 1
# TYPE calls_total counter
# HELP calls_total Calls \\ of\n\"all\" kinds.
calls_total{user="a\"b\\c\nd"} 3 st@TIME
calls_total{user="x"} 2 st@TIME # {trace_id="0af7",note="a\"b"} 2 TIME
# TYPE circuit stateset
# HELP circuit Some.
circuit{circuit="closed"} 0
circuit{circuit="open"} 1
# TYPE depth histogram
# HELP depth Some.
depth {count:6,sum:1004.5,schema:0,zero_threshold:2.938735877055719e-39,zero_count:1,negative_spans:[0:1],negative_buckets:[1],positive_spans:[0:3,7:1],positive_buckets:[1,1,1,1]} st@TIME
# TYPE fill_ratio gauge
# UNIT fill_ratio ratio
# HELP fill_ratio Some.
fill_ratio 0.25
# TYPE size histogram
# HELP size Some.
size {count:1,sum:7,schema:0,zero_threshold:2.938735877055719e-39,zero_count:0,positive_spans:[3:1],positive_buckets:[1],bucket:[10.0:1,+Inf:1]} st@TIME
# TYPE wait_seconds histogram
# UNIT wait_seconds seconds
# HELP wait_seconds Some.
wait_seconds {count:2,sum:3.05,schema:3,zero_threshold:2.938735877055719e-39,zero_count:0,positive_spans:[-34:1,46:1],positive_buckets:[1,1],bucket:[0.1:1,1.0:1,+Inf:2]} st@TIME # {trace_id="beef"} 3 TIME
# EOF
"#;
    let text = alone(&registry, Format::OpenMetrics2);
    let words = text.split_inclusive([' ', '\n']).map(|word| {
        let time = word.trim_end();
        let number = time.strip_prefix("st@").unwrap_or(time);
        let is_time = number.parse().is_ok_and(|number: f64| number > 1e9);
        if is_time {
            check_time(number);
        }
        if is_time { word.replace(number, "TIME") } else { word.to_owned() }
    });
    assert_eq!(words.collect::<String>(), expected);
}

#[test]
fn openmetrics_has_all_that_there_is_to_say() {
    let expected = r#"# TYPE build info
# HELP build Some.
build_info{user="ci"} 1
# TYPE calls counter
# HELP calls Calls \\ of\n\"all\" kinds.
calls_total{user="a\"b\\c\nd"} 3
calls_created{user="a\"b\\c\nd"} TIME
calls_total{user="x"} 2 # {trace_id="0af7",note="a\"b"} 2 TIME
calls_created{user="x"} TIME
# TYPE circuit stateset
# HELP circuit Some.
circuit{circuit="closed"} 0
circuit{circuit="open"} 1
# TYPE fill_ratio gauge
# UNIT fill_ratio ratio
# HELP fill_ratio Some.
fill_ratio 0.25
# TYPE wait_seconds histogram
# UNIT wait_seconds seconds
# HELP wait_seconds Some.
wait_seconds_bucket{le="0.1"} 1
wait_seconds_bucket{le="1.0"} 1
wait_seconds_bucket{le="+Inf"} 2 # {trace_id="beef"} 3 TIME
wait_seconds_count 2
wait_seconds_sum 3.05
wait_seconds_created TIME
# EOF
"#;
    let text = alone(&one_of_each(), Format::OpenMetrics);
    assert_eq!(without_times(&text), expected);
}

#[test]
fn the_text_format_shows_what_it_does_not_know_as_gauges() {
    let text = alone(&one_of_each(), Format::Text);
    for line in [
        "# TYPE build_info gauge\nbuild_info{user=\"ci\"} 1\n",
        "# HELP calls_total Calls \\\\ of\\n\"all\" kinds.\n# TYPE calls_total counter\n",
        "circuit{circuit=\"closed\"} 0\ncircuit{circuit=\"open\"} 1\n",
        "wait_seconds_bucket{le=\"1.0\"} 1\nwait_seconds_bucket{le=\"+Inf\"} 2\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(!text.contains("_created") && !text.contains("EOF") && !text.contains("trace_id"));
}

/// The names and labels of samples that have a threshold or a quantile.
fn with_bounds(text: &str) -> BTreeSet<&str> {
    let samples = text.lines().filter_map(|line| line.split_once("} "));
    let names = samples.map(|(name, _)| name);
    names.filter(|name| name.contains("le=\"") || name.contains("quantile=\"")).collect()
}

#[test]
fn a_bucket_and_a_quantile_have_one_name_in_all_text_formats() {
    let registry = one_of_each();
    let thresholds = [-1e7, -2.0, 0.0, 1e-5, 0.1, 1.0, 250.0, 1e6];
    let sizes = opts("sizes").buckets(&thresholds).quantiles(&[0.0, 1.0]);
    registry.register::<Histogram<Floats>>(sizes).unwrap().observe(3.0);
    let prices = opts("prices").quantiles(&[0.0, 0.5, 1.0]);
    registry.register::<Summary<Floats>>(prices).unwrap().observe(3.0);
    let text = alone(&registry, Format::Text);
    let expected = with_bounds(&text);
    // Each has the threshold +Inf too.
    assert_eq!(expected.len(), 3 + thresholds.len() + 1 + 2 + 3, "{text}");
    for name in ["sizes_bucket{le=\"-2.0\"", "sizes_bucket{le=\"1e+06\"", "prices{quantile=\"1.0\""]
    {
        assert!(expected.contains(name), "{name}\n{text}");
    }
    for format in [Format::Text, Format::OpenMetrics, Format::OpenMetricsDraft] {
        assert_eq!(with_bounds(&alone(&registry, format)), expected, "{format:?}");
        let mut scraper = registry.scraper();
        scraper.format(format, Escaping::default());
        scraper.write_decimals();
        let text = String::from_utf8_lossy(scraper.scrape()).into_owned();
        assert_eq!(with_bounds(&text), expected, "{format:?}");
    }
    let several = Several::new([("b", registry.clone()), ("a", registry)]);
    let [text, openmetrics] = TEXTS.map(|(format, _)| several.text(format));
    assert_eq!(with_bounds(&text).len(), 2 * expected.len());
    assert_eq!(with_bounds(&text), with_bounds(&openmetrics));
}

#[test]
fn names_that_a_scraper_does_not_take_are_shown_as_it_asks() {
    let registry = registry();
    let requests = opts("http.requests").utf8_names(true);
    let requests = registry.family::<Counter>(requests, &["http.route", "ok"]).unwrap();
    requests.with_values(&["/a\"b", "yes"]).inc();
    registry.register::<Gauge>(opts("größe").utf8_names(true)).unwrap().set(7);
    let requested = "{route}=\"/a\\\"b\",ok=\"yes\"} 1\n";
    for (escaping, request, route, size) in [
        (Escaping::AllowUtf8, "{\"http.requests_total\",", "\"http.route\"", "{\"größe\"}"),
        (Escaping::Underscores, "http_requests_total{", "http_route", "gr__e"),
        (Escaping::Dots, "http_dot_requests__total{", "http_dot_route", "gr____e"),
        (Escaping::Values, "U__http_2e_requests__total{", "U__http_2e_route", "U__gr_f6__df_e"),
    ] {
        let text = escaped(&registry, Format::OpenMetrics, escaping);
        let requested = requested.replace("{route}", route);
        for line in [format!("{request}{requested}"), format!("{size} 7\n")] {
            assert!(text.contains(&line), "{escaping:?} {line}\n{text}");
        }
    }
    let text = escaped(&registry, Format::Text, Escaping::AllowUtf8);
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
    let registry = registry();
    let mut expected = String::new();
    for len in [1, 10, 30, 31, 32, 33, 100, 126, 127, 128, 129, 200] {
        let name: &str = format!("{:c<len$}", "a").leak();
        let family = registry.family::<UpDownCounter>(opts(name), &["l"]).unwrap();
        for n in 0..200 {
            let number = (-3_i64).wrapping_pow(n as u32 % 40);
            let value = value_of(n);
            family.with_values(&[&value]).add(number);
            expected += &format!("{name}{{l=\"{value}\"}} {number}\n");
        }
    }
    let text = alone(&registry, Format::Text);
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    let mut expected: Vec<&str> = expected.lines().collect();
    expected.sort_by_key(|line| line.split('{').next());
    assert!(samples.eq(expected));
}

#[test]
fn a_scrape_in_pieces_equals_one_at_once() {
    let registry = one_of_each();
    let calls = registry.family::<Counter>(opts("many"), &["n"]).unwrap();
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
    let registry = registry();
    let calls: Users<Counter> = register(&registry, "calls");
    let wait: Users<Histogram<Seconds>> = register(&registry, "wait");
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
    let label = &first.label[0];
    assert_eq!((label.name.as_str(), label.value.as_str()), ("user", "a\"b\\c\nd"));
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
    let (registry, calls) = metrics::alone::<Counter>(opts("calls"));
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
    let (registry, spent) = metrics::alone::<FloatCounter>(opts("spent"));
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
    let (registry, load) = metrics::alone::<Gauge>(opts("load").combine(Combine::Each));
    load.set(-3);
    let expected = format!("load{{pid=\"{}\"}} -3\n", std::process::id());
    assert!(alone(&registry, Format::Text).ends_with(&expected));
    let family = &families(&registry)[0];
    assert_eq!(family.metric[0].label[0].name, "pid");
}
