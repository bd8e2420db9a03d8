//! Claims about pages: several registries that are shown as one.
#![cfg(not(miri))]

mod stage;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use stage::protobuf;
use talea::{
    Combine, Config, Conflict, Count, Counter, DynamicLabels, Escaping, Family, FloatCounter,
    FloatGauge, Format, Gauge, Histogram, Info, LabelValue, Labels, Opts, Page, Registry,
    Scrapable, Scraper, Seconds, StateSet, Summary,
};
use talea_parse::{Severity, Syntax, check, families};

const TEXTS: [(Format, Syntax); 2] =
    [(Format::Text, Syntax::Text), (Format::OpenMetrics, Syntax::OpenMetrics)];

/// Registries by the names that distinguish them.
#[derive(Clone)]
struct Several {
    label: &'static str,
    all: Arc<Vec<(String, Registry)>>,
}

impl Several {
    fn new(all: impl IntoIterator<Item = (&'static str, Registry)>) -> Self {
        Self::by("region", all)
    }

    fn by(label: &'static str, all: impl IntoIterator<Item = (&'static str, Registry)>) -> Self {
        let all = all.into_iter().map(|(name, registry)| (name.to_owned(), registry));
        Self { label, all: Arc::new(all.collect()) }
    }

    /// The page in a format, and what is left out of it.
    fn page(&self, format: Format) -> (Vec<u8>, Vec<Conflict>) {
        self.escaped(format, Escaping::AllowUtf8)
    }

    fn escaped(&self, format: Format, escaping: Escaping) -> (Vec<u8>, Vec<Conflict>) {
        let mut scraper = Scraper::new(self);
        scraper.format(format, escaping);
        let whole = scraper.scrape().to_vec();
        // In pieces it is the same, and so it is the second time.
        for len in [1, 100] {
            scraper.begin(|_| true);
            let mut pieces = Vec::new();
            let mut piece = Vec::new();
            while scraper.write_some(&mut piece, len) {
                pieces.append(&mut piece);
            }
            pieces.append(&mut piece);
            assert_eq!(lossy(&pieces), lossy(&whole), "in pieces of {len}");
        }
        let conflicts = scraper.page().conflicts().to_vec();
        (whole, conflicts)
    }

    /// The page as a text that breaks no rule of its format.
    fn text(&self, format: Format) -> String {
        let text = String::from_utf8(self.page(format).0).unwrap();
        let syntax = TEXTS.into_iter().find(|(of, _)| *of == format).unwrap().1;
        assert_no_violation(&text, syntax);
        text
    }

    fn conflicts(&self) -> Vec<Conflict> {
        let [text, openmetrics] = [Format::Text, Format::OpenMetrics].map(|format| {
            self.text(format);
            self.page(format).1
        });
        assert_eq!(text, openmetrics);
        text
    }

    /// The page of what each registry shows alone.
    fn expected(&self, format: Format, is_left_out: impl Fn(&str, &str) -> bool) -> String {
        let mut merged: BTreeMap<String, (String, String)> = BTreeMap::new();
        for (region, registry) in &*self.all {
            let alone = alone(registry, format);
            for Block { name, about, samples } in blocks(&alone, format) {
                if is_left_out(region, &name) {
                    continue;
                }
                let (_, all) = merged.entry(name).or_insert_with(|| (about, String::new()));
                for line in samples {
                    *all += &with_label(line, self.label, region);
                    all.push('\n');
                }
            }
        }
        let blocks = merged.into_values().map(|(about, samples)| about + &samples);
        let end = if format == Format::OpenMetrics { "# EOF\n" } else { "" };
        blocks.collect::<String>() + end
    }
}

impl Scrapable for Several {
    fn fill(&self, page: &mut Page, wants: &dyn Fn(&str) -> bool) {
        for (name, registry) in &*self.all {
            page.add(Some((self.label, name)), |snapshot| registry.snapshot_into(snapshot, wants));
        }
    }
}

fn lossy(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn assert_no_violation(text: &str, syntax: Syntax) {
    let mut faults = check(text, syntax);
    faults.retain(|finding| finding.severity == Severity::Violation);
    assert!(faults.is_empty(), "{faults:?}\n{text}");
    families(text, syntax).unwrap_or_else(|error| panic!("{error}\n{text}"));
}

fn alone(registry: &Registry, format: Format) -> String {
    let mut scraper = registry.scraper();
    scraper.format(format, Escaping::AllowUtf8);
    String::from_utf8(scraper.scrape().to_vec()).unwrap()
}

/// The lines of one family in a text.
struct Block<'a> {
    /// As samples have it.
    name: String,
    about: String,
    samples: Vec<&'a str>,
}

fn blocks(text: &str, format: Format) -> Vec<Block<'_>> {
    let mut blocks: Vec<Block<'_>> = Vec::new();
    for line in text.lines().filter(|line| *line != "# EOF") {
        let mut words = line.splitn(4, ' ');
        if words.next() != Some("#") {
            blocks.last_mut().unwrap().samples.push(line);
            continue;
        }
        let (word, name) = (words.next().unwrap(), words.next().unwrap().to_owned());
        let first = if format == Format::OpenMetrics { "TYPE" } else { "HELP" };
        if word == first {
            let ending = match (format, words.next()) {
                (Format::OpenMetrics, Some("counter")) => "_total",
                (Format::OpenMetrics, Some("info")) => "_info",
                _ => "",
            };
            let name = format!("{name}{ending}");
            blocks.push(Block { name, about: String::new(), samples: Vec::new() });
        }
        blocks.last_mut().unwrap().about += &format!("{line}\n");
    }
    blocks
}

/// The line of a sample with another label before its own.
fn with_label(line: &str, name: &str, value: &str) -> String {
    let at = line.find(['{', ' ']).unwrap();
    let (metric, rest) = line.split_at(at);
    match rest.strip_prefix('{') {
        Some(rest) => format!("{metric}{{{name}=\"{value}\",{rest}"),
        None => format!("{metric}{{{name}=\"{value}\"}}{rest}"),
    }
}

#[derive(Labels)]
struct By<'a> {
    user: &'a str,
}

#[derive(LabelValue)]
#[allow(dead_code)]
enum Circuit {
    Closed,
    Open,
}

/// A registry with a metric of each kind, whose values identify it.
fn one_of_each(n: u64) -> Registry {
    let registry = Registry::for_test().unwrap();
    let calls: Family<By<'static>, Counter> =
        registry.register(Opts::new("calls", "Calls.").limit(2)).unwrap();
    calls.with(By { user: "a\"b\\c\nd" }).add(n);
    let bob = calls.with(By { user: "bob" });
    bob.add_with_exemplar(2, &[("trace_id", &format!("0af{n}"))]).unwrap();
    // There is no room for these.
    (0..n).for_each(|n| calls.with(By { user: &n.to_string() }).inc());
    let all: Counter = registry.register(Opts::new("all", "All calls.")).unwrap();
    all.add(100 * n);
    let depth = Opts::new("depth", "Of each process.").combine(Combine::Each);
    registry.register::<Gauge>(depth).unwrap().set(-(n as i64));
    let fill: FloatGauge = registry.register(Opts::new("fill_ratio", "How full.")).unwrap();
    fill.set(1.0 / (n + 1) as f64);
    let opts = Opts::new("wait", "Time to wait.").buckets(&[0.1, 1.0]).quantiles(&[0.5, 0.99]);
    let wait: Family<By<'static>, Histogram<Seconds>> = registry.register(opts).unwrap();
    wait.with(By { user: "ann" }).observe(Duration::from_millis(50 * n));
    wait.with(By { user: "ann" })
        .observe_with_exemplar(Duration::from_secs(n), &[("trace_id", "beef")])
        .unwrap();
    let opts = Opts::new("bare", "A histogram without labels.").buckets(&[1.0, 10.0]);
    registry.register::<Histogram<Count>>(opts).unwrap().observe(n);
    let opts = Opts::new("size", "A summary.").quantiles(&[0.5, 1.0]);
    registry.register::<Summary<Count>>(opts).unwrap().observe(7 * n);
    let build: Info<By<'static>> = registry.register(Opts::new("build", "By whom.")).unwrap();
    build.set(By { user: "ci" });
    let circuit: StateSet<Circuit> = registry.register(Opts::new("circuit", "Its state.")).unwrap();
    circuit.set(if n % 2 == 0 { Circuit::Open } else { Circuit::Closed });
    registry
}

fn counter(name: &str, value: u64) -> Registry {
    with_counter(Registry::for_test().unwrap(), name, value)
}

fn with_counter(registry: Registry, name: &str, value: u64) -> Registry {
    registry.register::<Counter>(Opts::new(name, "Some.")).unwrap().add(value);
    registry
}

fn gauge(name: &str, value: i64) -> Registry {
    let registry = Registry::for_test().unwrap();
    registry.register::<Gauge>(Opts::new(name, "Some.")).unwrap().set(value);
    registry
}

#[test]
fn a_page_is_what_each_registry_shows_family_by_family_with_its_label_first() {
    let several =
        Several::new([("b", one_of_each(1)), ("a", one_of_each(2)), ("c", one_of_each(3))]);
    assert_eq!(several.conflicts(), []);
    for (format, _) in TEXTS {
        let text = several.text(format);
        assert_eq!(text, several.expected(format, |_, _| false));
    }
    let text = several.text(Format::Text);
    for line in [
        "calls_total{region=\"a\",user=\"a\\\"b\\\\c\\nd\"} 2\n",
        "calls_total{region=\"c\",otel_metric_overflow=\"true\"} 3\n",
        "talea_series_dropped_total{region=\"c\",family=\"calls_total\"} 3\n",
        "all_total{region=\"b\"} 100\nall_total{region=\"a\"} 200\nall_total{region=\"c\"} 300\n",
        "wait_seconds_bucket{region=\"a\",user=\"ann\",le=\"0.1\"} 1\n",
        "bare_bucket{region=\"a\",le=\"1\"} 0\n",
        "wait_recent_seconds{region=\"b\",user=\"ann\",quantile=\"0.5\"} ",
        "size{region=\"b\",quantile=\"1\"} 7.0",
        "size_sum{region=\"b\"} 7\n",
        "build_info{region=\"a\",user=\"ci\"} 1\n",
        "circuit{region=\"a\",circuit=\"open\"} 1\n",
        "circuit{region=\"b\",circuit=\"open\"} 0\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let pid = std::process::id();
    assert!(text.contains(&format!("depth{{region=\"c\",pid=\"{pid}\"}} -3\n")), "{text}");
    let text = several.text(Format::OpenMetrics);
    assert!(text.contains("calls_total{region=\"c\",user=\"bob\"} 2 # {trace_id=\"0af3\"} 2 "));
    assert!(text.contains("calls_created{region=\"c\",user=\"bob\"} "));
    assert!(text.contains("bare_created{region=\"a\"} "));
}

#[test]
fn in_protobuf_each_series_is_what_its_registry_shows_with_the_label_first() {
    let all = [("b", one_of_each(1)), ("a", one_of_each(2)), ("c", one_of_each(3))];
    let several = Several::new(all.clone());
    let found = protobuf::families(&several.page(Format::Protobuf).0);
    let mut expected: BTreeMap<String, protobuf::MetricFamily> = BTreeMap::new();
    for (region, registry) in &all {
        let mut scraper = registry.scraper();
        scraper.format(Format::Protobuf, Escaping::AllowUtf8);
        for mut family in protobuf::families(scraper.scrape()) {
            for metric in &mut family.metric {
                let label = protobuf::LabelPair { name: "region".into(), value: (*region).into() };
                metric.label.insert(0, label);
            }
            match expected.get_mut(&family.name) {
                Some(there) => there.metric.append(&mut family.metric),
                None => _ = expected.insert(family.name.clone(), family),
            }
        }
    }
    assert_eq!(found, expected.into_values().collect::<Vec<_>>());
    // There was something to lose.
    let wait = found.iter().find(|family| family.name == "wait_seconds").unwrap();
    assert_eq!(wait.metric.len(), 3);
    for metric in &wait.metric {
        let wait = metric.histogram.as_ref().unwrap();
        assert!(wait.created.is_some() && wait.in_native() == 2 && !wait.exemplars.is_empty());
    }
}

#[test]
fn names_that_stand_in_quotes_or_are_renamed_have_the_label_too() {
    let registry = |n: i64| {
        let registry = Registry::for_test().unwrap();
        let size = Opts::new("größe", "Size.").utf8_names(true);
        registry.register::<Gauge>(size).unwrap().set(n);
        let opts = Opts::new("http.requests", "Requests.").utf8_names(true);
        let family: Family<DynamicLabels, Counter> =
            registry.family(opts, &["http.route"]).unwrap();
        family.with_values(&["/a"]).inc();
        registry
    };
    let several = Several::new([("a", registry(1)), ("b", registry(2))]);
    let text = several.text(Format::OpenMetrics);
    for line in [
        "{\"größe\",region=\"a\"} 1\n{\"größe\",region=\"b\"} 2\n",
        "{\"http.requests_total\",region=\"b\",\"http.route\"=\"/a\"} 1\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let text = several.escaped(Format::Text, Escaping::Dots).0;
    let text = String::from_utf8(text).unwrap();
    assert_no_violation(&text, Syntax::Text);
    let line = "http_dot_requests__total{region=\"b\",http_dot_route=\"/a\"} 1\n";
    assert!(text.contains(line), "{text}");
}

#[test]
fn any_name_of_a_registry_makes_a_readable_label() {
    let names = ["a\"b", "a\\", "a\nb", "", "größe", "a,b=\"c\"} 7 # {"];
    let several = Several::new(names.map(|name| (name, one_of_each(1))));
    for (format, syntax) in TEXTS {
        let text = several.text(format);
        let families = families(&text, syntax).unwrap();
        let all = families.iter().find(|family| family.name.starts_with("all")).unwrap();
        let totals = all.samples.iter().filter(|sample| sample.name == "all_total");
        let found: Vec<_> = totals.map(|sample| sample.labels.get("region").unwrap()).collect();
        assert_eq!(found, names);
    }
}

#[test]
fn of_helps_that_differ_the_first_is_shown_and_nothing_is_left_out() {
    let registry = |help: &'static str| {
        let registry = Registry::for_test().unwrap();
        registry.register::<Counter>(Opts::new("calls", help)).unwrap().inc();
        registry
    };
    let several = Several::new([
        ("a", registry("Old words.")),
        ("b", registry("New words.")),
        ("c", registry("New words.")),
    ]);
    assert_eq!(several.conflicts(), []);
    assert_eq!(
        several.text(Format::Text),
        "# HELP calls_total Old words.\n# TYPE calls_total counter\n\
         calls_total{region=\"a\"} 1\ncalls_total{region=\"b\"} 1\ncalls_total{region=\"c\"} 1\n"
    );
}

#[test]
fn whole_numbers_and_floats_of_one_name_are_one_family() {
    let float = Registry::for_test().unwrap();
    float.register::<FloatCounter>(Opts::new("calls", "Some.")).unwrap().add(0.5);
    let several = Several::new([("a", counter("calls", 3)), ("b", float)]);
    assert_eq!(several.conflicts(), []);
    let text = several.text(Format::Text);
    assert!(
        text.ends_with("calls_total{region=\"a\"} 3\ncalls_total{region=\"b\"} 0.5\n"),
        "{text}"
    );
}

/// A registry where a family is registered in one way or another.
type Way = fn(&Registry) -> Result<(), talea::Error>;

fn so(way: Way) -> Registry {
    let registry = Registry::for_test().unwrap();
    way(&registry).unwrap();
    // What is beside it is always served.
    with_counter(registry, "beside", 1)
}

#[derive(LabelValue)]
#[allow(dead_code)]
enum Gate {
    Closed,
    Ajar,
}

#[test]
fn each_difference_of_definitions_is_reported_and_that_of_most_is_shown() {
    let ways: [(&str, &str, Way, Way); 9] = [
        (
            "a gauge here, and a histogram",
            "x",
            |r| r.register::<Histogram<Count>>(Opts::new("x", "X.")).map(|h| h.observe(1)),
            |r| r.register::<Gauge>(Opts::new("x", "X.")).map(|g| g.set(1)),
        ),
        (
            "kept in 1 parts here, and one in 1000000000",
            "x_seconds",
            |r| {
                let opts = Opts::new("x_seconds", "X.");
                r.register::<Histogram<Seconds>>(opts).map(|h| h.observe(Duration::from_secs(1)))
            },
            |r| r.register::<Histogram<Count>>(Opts::new("x_seconds", "X.")).map(|h| h.observe(1)),
        ),
        (
            "the labels [\"b\"] here, and [\"a\"]",
            "x_total",
            |r| {
                r.family::<Counter>(Opts::new("x", "X."), &["a"])
                    .map(|f| f.with_values(&["1"]).inc())
            },
            |r| {
                r.family::<Counter>(Opts::new("x", "X."), &["b"])
                    .map(|f| f.with_values(&["1"]).inc())
            },
        ),
        (
            "the labels [\"a\"] here, and []",
            "x_total",
            |r| r.register::<Counter>(Opts::new("x", "X.")).map(|c| c.inc()),
            |r| {
                r.family::<Counter>(Opts::new("x", "X."), &["a"])
                    .map(|f| f.with_values(&["1"]).inc())
            },
        ),
        (
            "the buckets [1.0, 2.0] here, and [1.0]",
            "x",
            |r| {
                r.register::<Histogram<Count>>(Opts::new("x", "X.").buckets(&[1.0]))
                    .map(|h| h.observe(1))
            },
            |r| {
                let opts = Opts::new("x", "X.").buckets(&[1.0, 2.0]);
                r.register::<Histogram<Count>>(opts).map(|h| h.observe(1))
            },
        ),
        (
            "native bucketing of schema 2",
            "x",
            |r| {
                r.register::<Histogram<Count>>(Opts::new("x", "X.").schema(3)).map(|h| h.observe(1))
            },
            |r| {
                r.register::<Histogram<Count>>(Opts::new("x", "X.").schema(2)).map(|h| h.observe(1))
            },
        ),
        (
            "the quantiles",
            "x",
            |r| {
                r.register::<Summary<Count>>(Opts::new("x", "X.").quantiles(&[0.5]))
                    .map(|h| h.observe(1))
            },
            |r| {
                r.register::<Summary<Count>>(Opts::new("x", "X.").quantiles(&[0.9]))
                    .map(|h| h.observe(1))
            },
        ),
        (
            "the states [\"closed\", \"ajar\"] here, and [\"closed\", \"open\"]",
            "x",
            |r| r.register::<StateSet<Circuit>>(Opts::new("x", "X.")).map(|s| s.set(Circuit::Open)),
            |r| r.register::<StateSet<Gate>>(Opts::new("x", "X.")).map(|s| s.set(Gate::Ajar)),
        ),
        (
            "most others have \"x_total\", and in OpenMetrics the two would have one name",
            "x",
            |r| r.register::<Counter>(Opts::new("x", "X.")).map(|c| c.inc()),
            |r| r.register::<Gauge>(Opts::new("x", "X.")).map(|g| g.set(1)),
        ),
    ];
    for (reason, family, most, one) in ways {
        let several = Several::new([("a", so(most)), ("b", so(one)), ("c", so(most))]);
        let conflicts = several.conflicts();
        assert!(!conflicts.is_empty(), "{reason}");
        for conflict in &conflicts {
            assert_eq!(conflict.part, "b", "{conflict:?}");
            let message = conflict.to_string();
            assert!(message.starts_with(&format!("the family {} is left out: ", conflict.family)));
        }
        let found = conflicts.iter().find(|conflict| conflict.family == family);
        let found = found.unwrap_or_else(|| panic!("{reason}: {conflicts:?}"));
        assert!(found.reason.contains(reason), "{reason}: {found}");
        let out: BTreeSet<&str> = conflicts.iter().map(|found| found.family.as_str()).collect();
        for (format, _) in TEXTS {
            let expected = several.expected(format, |part, name| part == "b" && out.contains(name));
            assert_eq!(several.text(format), expected, "{reason}");
        }
        assert!(several.text(Format::Text).contains("beside_total{region=\"b\"} 1\n"));
    }
}

#[test]
fn of_as_many_the_newest_is_shown() {
    let older = counter("x", 1);
    std::thread::sleep(Duration::from_millis(2));
    let labelled = || {
        let registry = Registry::for_test().unwrap();
        let family = registry.family::<Counter>(Opts::new("x", "Some."), &["a"]).unwrap();
        family.with_values(&["1"]).inc();
        registry
    };
    let newer = labelled();
    for all in [[("old", &older), ("new", &newer)], [("new", &newer), ("old", &older)]] {
        let several = Several::new(all.map(|(name, registry)| (name, registry.clone())));
        let conflicts = several.conflicts();
        assert_eq!((conflicts.len(), conflicts[0].part.as_str()), (1, "old"));
        assert!(several.text(Format::Text).ends_with("\nx_total{region=\"new\",a=\"1\"} 1\n"));
    }
    // Each newcomer counts for what it says, and two say more than one that is new.
    std::thread::sleep(Duration::from_millis(2));
    let newest = labelled();
    let several = Several::new([("a", older.clone()), ("b", counter("x", 2)), ("c", newest)]);
    let conflicts = several.conflicts();
    assert_eq!((conflicts.len(), conflicts[0].part.as_str()), (1, "c"));
}

#[test]
fn a_counter_and_a_gauge_that_openmetrics_would_call_the_same_are_not_both_shown() {
    let info = Registry::for_test().unwrap();
    info.register::<Info<By<'static>>>(Opts::new("x", "X.")).unwrap().set(By { user: "u" });
    let between = || with_counter(gauge("x_a", 1), "x_b", 1);
    let several = Several::new([
        ("a", gauge("x", 1)),
        ("b", counter("x", 2)),
        ("c", info),
        ("d", counter("x", 3)),
        ("e", between()),
    ]);
    let conflicts: Vec<_> = several.conflicts().into_iter().map(|c| (c.part, c.family)).collect();
    assert_eq!(conflicts, [("a".into(), "x".into()), ("c".into(), "x_info".into())]);
    let text = several.text(Format::OpenMetrics);
    let samples: Vec<&str> =
        text.lines().filter(|line| !line.contains("_created") && !line.starts_with('#')).collect();
    assert_eq!(
        samples,
        [
            "x_a{region=\"e\"} 1",
            "x_b_total{region=\"e\"} 1",
            "x_total{region=\"b\"} 2",
            "x_total{region=\"d\"} 3",
        ]
    );
}

#[test]
fn a_family_with_a_label_of_that_name_is_left_out_and_outvotes_none_that_can_be_shown() {
    let own = |name: &'static str| {
        let registry = Registry::for_test().unwrap();
        let family = registry.family::<Counter>(Opts::new("x", "Some."), &[name]).unwrap();
        family.with_values(&["mine"]).inc();
        with_counter(registry, "beside", 1)
    };
    let several =
        Several::new([("a", own("region")), ("b", counter("x", 7)), ("c", own("region"))]);
    let conflicts = several.conflicts();
    let parts: Vec<&str> = conflicts.iter().map(|conflict| conflict.part.as_str()).collect();
    assert_eq!(parts, ["a", "c"]);
    for conflict in &conflicts {
        assert!(conflict.reason.contains("it has a label \"region\" of its own"), "{conflict}");
    }
    let text = several.text(Format::Text);
    assert!(text.contains("\nx_total{region=\"b\"} 7\n"), "{text}");
    assert!(text.contains("\nbeside_total{region=\"c\"} 1\n") && !text.contains("mine"), "{text}");
    // By another label all are shown that agree.
    let several = Several::by("instance", [("a", own("region")), ("c", own("region"))]);
    assert_eq!(several.conflicts(), []);
    let text = several.text(Format::Text);
    assert!(text.contains("\nx_total{instance=\"c\",region=\"mine\"} 1\n"), "{text}");
    // A state set's own name is a label of it.
    let states = Registry::for_test().unwrap();
    states.register::<StateSet<Circuit>>(Opts::new("region", "Its.")).unwrap().set(Circuit::Open);
    let several = Several::new([("a", states), ("b", counter("x", 7))]);
    let conflicts = several.conflicts();
    assert_eq!((conflicts.len(), conflicts[0].family.as_str()), (1, "region"));
}

#[test]
fn a_part_without_a_label_is_shown_unchanged_beside_the_others() {
    #[derive(Clone)]
    struct Mixed(Registry, Registry);

    impl Scrapable for Mixed {
        fn fill(&self, page: &mut Page, wants: &dyn Fn(&str) -> bool) {
            page.add(None, |snapshot| self.0.snapshot_into(snapshot, wants));
            page.add(Some(("region", "b")), |snapshot| self.1.snapshot_into(snapshot, wants));
        }
    }

    // It says itself which region it is of.
    let agent = Registry::for_test().unwrap();
    let family = agent.family::<Gauge>(Opts::new("up", "Whether."), &["region"]).unwrap();
    family.with_values(&["b"]).set(1);
    let agent = with_counter(agent, "calls", 1);
    let mut scraper = Scraper::new(&Mixed(agent, counter("calls", 2)));
    let text = String::from_utf8(scraper.scrape().to_vec()).unwrap();
    assert_no_violation(&text, Syntax::Text);
    assert!(text.contains("\nup{region=\"b\"} 1\n"), "{text}");
    assert!(text.contains("\ncalls_total 1\ncalls_total{region=\"b\"} 2\n"), "{text}");
    assert_eq!(scraper.page().conflicts(), []);
}

#[test]
fn a_part_that_fails_is_left_out_and_comes_back() {
    let mut page = Page::new();
    for fails in [true, false, true] {
        page.clear();
        let registries = [counter("x", 1), gauge("y", 2), counter("x", 3)];
        for (n, registry) in registries.iter().enumerate() {
            let taken = page.try_add(Some(("region", &n.to_string())), |snapshot| {
                registry.snapshot_into(snapshot, |_| true);
                // It fails when something was copied already.
                if n == 1 && fails { Err("cut") } else { Ok(()) }
            });
            match taken {
                Ok(snapshot) => assert_eq!(snapshot.families().len(), 1),
                Err(error) => assert_eq!((error, n), ("cut", 1)),
            }
        }
        let names = |part: &talea::Snapshot| part.families().next().unwrap().name().to_owned();
        let found: Vec<String> = page.parts().map(names).collect();
        match fails {
            true => assert_eq!(found, ["x_total", "x_total"]),
            false => assert_eq!(found, ["x_total", "y", "x_total"]),
        }
    }
}

/// A hand-written label set, which writes arbitrary text.
struct Wild(&'static str);

impl Labels for Wild {
    type Static = Self;
    const NAMES: &'static [&'static str] = &["user"];
    fn write(&self, out: &mut talea::LabelText) {
        out.push_raw(self.0);
    }
}

#[test]
fn a_family_from_outside_whose_labels_cannot_be_read_is_left_out_and_reported() {
    for text in [
        "user=\"a\",user=\"b\"",
        "user=\"a\",region=\"another\"",
        "user=\"a\"} 1\nall_total{region=\"other\"} 0 #",
        "user=\"a",
        "user",
    ] {
        let wild = with_counter(Registry::for_test().unwrap(), "beside", 1);
        let family: Family<Wild, Counter> = wild.register(Opts::new("x", "Some.")).unwrap();
        family.with(&Wild("user=\"good\"")).inc();
        family.with(&Wild(text)).inc();
        let other = Registry::for_test().unwrap();
        let family: Family<By<'static>, Counter> = other.register(Opts::new("x", "Some.")).unwrap();
        family.with(By { user: "a" }).add(5);
        let mut scraper = Scraper::new(&Foreign([("wild", wild), ("other", other)]));
        let page = String::from_utf8(scraper.scrape().to_vec()).unwrap();
        assert_no_violation(&page, Syntax::Text);
        assert_eq!(
            page,
            "# HELP beside_total Some.\n# TYPE beside_total counter\n\
             beside_total{region=\"wild\"} 1\n\
             # HELP x_total Some.\n# TYPE x_total counter\nx_total{region=\"other\",user=\"a\"} 5\n"
        );
        let [conflict] = scraper.page().conflicts() else { panic!("{text}") };
        assert_eq!((conflict.part.as_str(), conflict.family.as_str()), ("wild", "x_total"));
        assert!(conflict.reason.starts_with("the labels of a series cannot be read"), "{conflict}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_counter_from_outside_that_no_format_can_show_is_left_out_and_reported() {
    use std::os::unix::fs::FileExt;
    for total in [f64::NAN, -1.0, f64::NEG_INFINITY] {
        let shm = stage::processes::Shm::new("page-counters");
        let damaged = Registry::open_with(shm.file(), Config::with_len(4 << 20)).unwrap();
        let opts = Opts::new("spent", "Some.").striped(false);
        let spent: FloatCounter = damaged.register(opts).unwrap();
        spent.add(12_345.678);
        let bytes = std::fs::read(shm.file()).unwrap();
        let cell = 12_345.678_f64.to_le_bytes();
        let file = std::fs::File::options().write(true).open(shm.file()).unwrap();
        let at = bytes.chunks(8).position(|word| word == cell).unwrap() as u64 * 8;
        file.write_all_at(&total.to_le_bytes(), at).unwrap();
        let other = with_counter(Registry::for_test().unwrap(), "beside", 1);
        let mut scraper = Scraper::new(&Foreign([("damaged", damaged), ("other", other)]));
        scraper.format(Format::OpenMetrics, Escaping::default());
        let page = String::from_utf8(scraper.scrape().to_vec()).unwrap();
        assert_no_violation(&page, Syntax::OpenMetrics);
        assert!(page.contains("beside_total{") && !page.contains("spent"), "{page}");
        let [conflict] = scraper.page().conflicts() else { panic!("{total}") };
        assert!(conflict.reason.starts_with("a counter's total is below 0"), "{conflict}");
    }
}

/// Registries that are looked at with suspicion.
#[derive(Clone)]
struct Foreign([(&'static str, Registry); 2]);

impl Scrapable for Foreign {
    fn fill(&self, page: &mut Page, wants: &dyn Fn(&str) -> bool) {
        for (name, registry) in &self.0 {
            let take = |snapshot: &mut talea::Snapshot| {
                registry.snapshot_into(snapshot, wants);
                Ok::<_, std::convert::Infallible>(())
            };
            let Ok(_) = page.try_add(Some(("region", name)), take);
        }
    }
}

#[test]
fn parts_from_outside_do_not_outvote_others() {
    /// An agent of three, the first of which is its own.
    #[derive(Clone)]
    struct Agent(Registry, Foreign);

    impl Scrapable for Agent {
        fn fill(&self, page: &mut Page, wants: &dyn Fn(&str) -> bool) {
            self.1.fill(page, wants);
            page.add(None, |snapshot| self.0.snapshot_into(snapshot, wants));
        }
    }

    for name in ["up", "up_total"] {
        let other = || {
            if name == "up" {
                so(|r| r.family::<Gauge>(Opts::new("up", "Up."), &["x"]).map(drop))
            } else {
                counter("up", 1)
            }
        };
        let foreign = Foreign([("a", other()), ("b", other())]);
        let mut scraper = Scraper::new(&Agent(gauge("up", 1), foreign));
        let page = String::from_utf8(scraper.scrape().to_vec()).unwrap();
        assert!(page.contains("\nup 1\n"), "{page}");
        let conflicts = scraper.page().conflicts();
        let parts: Vec<&str> = conflicts.iter().map(|conflict| conflict.part.as_str()).collect();
        assert_eq!(parts, ["a", "b"], "{conflicts:?}");
    }
}

#[test]
fn series_of_every_type_of_family_are_sound() {
    let foreign = Foreign([("a", one_of_each(1)), ("b", one_of_each(2))]);
    let several = Several::new(foreign.0.clone());
    let mut scraper = Scraper::new(&foreign);
    for (format, _) in TEXTS {
        scraper.format(format, Escaping::AllowUtf8);
        assert_eq!(lossy(scraper.scrape()), several.text(format));
        assert_eq!(scraper.page().conflicts(), []);
    }
}

#[test]
fn unwanted_families_are_neither_shown_nor_reported() {
    let several =
        Several::new([("a", gauge("x", 1)), ("b", counter("x", 2)), ("c", gauge("y", 1))]);
    let mut scraper = Scraper::new(&several);
    for (wanted, expected) in [
        ("x", "# HELP x Some.\n# TYPE x gauge\nx{region=\"a\"} 1\n"),
        ("y", "# HELP y Some.\n# TYPE y gauge\ny{region=\"c\"} 1\n"),
        ("z", ""),
    ] {
        scraper.begin(|name| name == wanted);
        let mut text = Vec::new();
        while scraper.write_some(&mut text, 1) {}
        assert_eq!(lossy(&text), expected);
        assert_eq!(scraper.page().conflicts(), []);
    }
}

#[test]
fn a_family_that_is_empty_in_some_has_the_series_of_the_others() {
    let empty = Registry::for_test().unwrap();
    let _ = empty.family::<Counter>(Opts::new("x", "Some."), &["a"]).unwrap();
    let some = Registry::for_test().unwrap();
    some.family::<Counter>(Opts::new("x", "Some."), &["a"]).unwrap().with_values(&["1"]).inc();
    let several =
        Several::new([("a", empty.clone()), ("b", some), ("c", empty), ("d", counter("y", 1))]);
    let text = several.text(Format::Text);
    let begin = "# HELP x_total Some.\n# TYPE x_total counter\nx_total{region=\"b\",a=\"1\"} 1\n#";
    assert!(text.starts_with(begin), "{text}");
}

/// How a family of one of a few names is registered somewhere, and what it holds.
#[derive(Clone, Debug)]
struct Planned {
    name: usize,
    way: usize,
    values: Vec<u64>,
}

const NAMES: [&str; 4] = ["a", "b_seconds", "c", "d"];
const WAYS: usize = 7;

fn register(registry: &Registry, Planned { name, way, values }: &Planned) {
    let opts = Opts::new(NAMES[*name], "Some.").quantiles(&[0.5, 1.0]);
    let texts = ["", "x", "\"", "größe", "a,b"];
    let each = |count: &dyn Fn(&str, u64)| {
        values.iter().enumerate().for_each(|(n, value)| count(texts[n], *value));
    };
    // Of two families of one registry that clash the first is there.
    match way {
        0 => {
            let Ok(family) = registry.family::<Counter>(opts, &["u"]) else { return };
            each(&|text, value| family.with_values(&[text]).add(value));
        }
        1 => {
            let Ok(family) = registry.family::<Gauge>(opts, &["u"]) else { return };
            each(&|text, value| family.with_values(&[text]).set(-(value as i64)));
        }
        2 => {
            let Ok(family) = registry.family::<FloatGauge>(opts, &["u", "v"]) else { return };
            each(&|text, value| family.with_values(&[text, "v"]).set(value as f64 / 7.0));
        }
        3 => {
            let Ok(family) = registry.family::<Histogram<Count>>(opts, &["u"]) else { return };
            each(&|text, value| family.with_values(&[text]).observe(value));
        }
        4 => {
            let opts = opts.buckets(&[5.0, 100.0]);
            let Ok(family) = registry.family::<Histogram<Count>>(opts, &[""; 0]) else { return };
            each(&|_, value| family.with_values(&[""; 0]).observe(value));
        }
        5 => {
            let Ok(family) = registry.family::<Summary<Count>>(opts, &["region"]) else { return };
            each(&|text, value| family.with_values(&[text]).observe(value));
        }
        _ => {
            let Ok(info) = registry.register::<Info<By<'static>>>(opts) else { return };
            values.iter().for_each(|value| info.set(By { user: &value.to_string() }));
        }
    }
}

fn filled(plan: &[Planned]) -> Registry {
    let registry = Registry::with_config(Config::with_len(1 << 20)).unwrap();
    plan.iter().for_each(|family| register(&registry, family));
    registry
}

fn any_family() -> impl Strategy<Value = Planned> {
    (0..NAMES.len(), 0..WAYS, vec(0..1_000_u64, 0..5)).prop_map(|(name, way, values)| Planned {
        name,
        way,
        values,
    })
}

/// The name of a family in OpenMetrics.
fn bare(name: &str) -> &str {
    name.strip_suffix("_total").or(name.strip_suffix("_info")).unwrap_or(name)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..Default::default() })]

    #[test]
    fn the_page_is_the_union_of_what_the_registries_show(
        plans in vec(vec(any_family(), 0..5), 1..5),
        agree in any::<bool>(),
    ) {
        let names = ["a", "b", "c", "d"];
        let plans = plans.into_iter().map(|mut plan| {
            // Where all agree, a family's name says how it is registered.
            plan.iter_mut().filter(|_| agree).for_each(|family| family.way = family.name);
            plan
        });
        let several = Several::new(names.into_iter().zip(plans.map(|plan| filled(&plan))));
        let conflicts = several.conflicts();
        prop_assert!(!agree || conflicts.is_empty(), "{conflicts:?}");
        let out: BTreeSet<(&str, &str)> =
            conflicts.iter().map(|c| (c.part.as_str(), c.family.as_str())).collect();
        prop_assert_eq!(out.len(), conflicts.len());
        for (format, _) in TEXTS {
            let expected = several.expected(format, |part, name| out.contains(&(part, name)));
            prop_assert_eq!(several.text(format), expected);
        }
        // No family vanishes altogether, unless it cannot be shown anywhere.
        let page = several.text(Format::Text);
        for (part, registry) in &*several.all {
            for family in registry.snapshot().families() {
                let is_out = out.contains(&(part.as_str(), family.name()));
                let others = || several.all.iter().filter(|(other, _)| other != part);
                let is_elsewhere = others().any(|(other, registry)| {
                    registry.snapshot().families().any(|other_family| {
                        bare(other_family.name()) == bare(family.name())
                            && !out.contains(&(other.as_str(), other_family.name()))
                    })
                });
                let has_it = conflicts.iter().any(|conflict| {
                    conflict.family == family.name() && conflict.reason.contains("of its own")
                });
                prop_assert!(!is_out || is_elsewhere || has_it, "{} {}\n{}", part, family.name(), page);
            }
        }
    }
}
