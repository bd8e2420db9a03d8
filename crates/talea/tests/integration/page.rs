//! Claims about pages: several registries that are shown as one.
#![cfg(not(miri))]

use std::collections::{BTreeMap, BTreeSet};

use crate::support::descriptors::raise_limit;
use crate::support::metrics::{By, opts, register, registry};
use crate::support::pages::{
    Circuit, Foreign, Several, TEXTS, assert_no_violation, assert_nothing_is_lost, counter,
    escaped, gauge, lossy, one_of_each, scraped, with_counter,
};
use crate::support::protobuf;
use proptest::collection::vec;
use proptest::prelude::*;
use talea::{
    Bucketing, Count, Counter, Escaping, FloatCounter, FloatGauge, Floats, Format, Gauge,
    Histogram, Info, Metric, Opts, Page, Registry, Scrapable, Scraper, StateSet, Summary,
};
use talea_parse::{Syntax, families};

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
        "bare_bucket{region=\"a\",le=\"1.0\"} 0\n",
        "wait_recent_seconds{region=\"b\",user=\"ann\",quantile=\"0.5\"} ",
        "size{region=\"b\",quantile=\"1.0\"} 7.0",
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
        let families = scraped(registry, Format::Protobuf, Escaping::AllowUtf8);
        for mut family in protobuf::families(&families) {
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
    let requests = |n: i64| {
        let registry = registry();
        registry.register::<Gauge>(opts("größe").utf8_names(true)).unwrap().set(n);
        let requests = opts("http.requests").utf8_names(true);
        let family = registry.family::<Counter>(requests, &["http.route"]).unwrap();
        family.with_values(&["/a"]).inc();
        registry
    };
    let several = Several::new([("a", requests(1)), ("b", requests(2))]);
    let text = several.text(Format::OpenMetrics);
    for line in [
        "{\"größe\",region=\"a\"} 1\n{\"größe\",region=\"b\"} 2\n",
        "{\"http.requests_total\",region=\"b\",\"http.route\"=\"/a\"} 1\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let text = escaped(&several, Format::Text, Escaping::Dots);
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
    let [old, new, newer] = ["Old words.", "New words.", "New words."].map(|help: &'static str| {
        let registry = registry();
        registry.register::<Counter>(Opts::new("calls", help)).unwrap().inc();
        registry
    });
    let several = Several::new([("a", old), ("b", new), ("c", newer)]);
    assert_eq!(several.conflicts(), []);
    assert_eq!(
        several.text(Format::Text),
        "# HELP calls_total Old words.\n# TYPE calls_total counter\n\
         calls_total{region=\"a\"} 1\ncalls_total{region=\"b\"} 1\ncalls_total{region=\"c\"} 1\n"
    );
}

#[test]
fn whole_numbers_and_floats_of_one_name_are_one_family() {
    let float = registry();
    register::<FloatCounter>(&float, "calls").add(0.5);
    let several = Several::new([("a", counter("calls", 3)), ("b", float)]);
    assert_eq!(several.conflicts(), []);
    let text = several.text(Format::Text);
    let expected = "calls_total{region=\"a\"} 3\ncalls_total{region=\"b\"} 0.5\n";
    assert!(text.ends_with(expected), "{text}");
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
    let agent = registry();
    let family = agent.family::<Gauge>(opts("up"), &["region"]).unwrap();
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
        let found: Vec<String> = page
            .parts()
            .map(|part: &talea::Snapshot| part.families().next().unwrap().name().to_owned())
            .collect();
        match fails {
            true => assert_eq!(found, ["x_total", "x_total"]),
            false => assert_eq!(found, ["x_total", "y", "x_total"]),
        }
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
    let of = |values: &[&str]| {
        let registry = registry();
        let family = registry.family::<Counter>(opts("x"), &["a"]).unwrap();
        values.iter().for_each(|value| family.with_values(&[value]).inc());
        registry
    };
    let (empty, some) = (of(&[]), of(&["1"]));
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

const NAMES: [&str; 5] = ["a", "b_seconds", "a_count", "a_total", "größe"];
const WAYS: usize = 12;

/// Registers a family, and updates the series of each text; nothing if the name is taken.
fn fill<M: Metric>(
    (registry, opts): (&Registry, Opts<'_>),
    labels: &[&str],
    values: &[u64],
    update: fn(&M, u64),
) {
    let Ok(family) = registry.family::<M>(opts, labels) else { return };
    for (text, value) in ["", "x", "\"", "größe", "a,b"].into_iter().zip(values) {
        let texts = [text, "v"];
        update(&family.with_values(&texts[..labels.len()]), *value);
    }
}

fn plan_in(registry: &Registry, Planned { name, way, values }: &Planned) {
    let opts = opts(NAMES[*name]).lenient_names(true).utf8_names(true).quantiles(&[0.5, 1.0]);
    let of = (registry, opts);
    let classic = (registry, opts.buckets(&[5.0, 100.0]));
    // Of two families of one registry that clash the first is there.
    match way {
        0 => fill(of, &["u"], values, |counter: &Counter, n| counter.add(n)),
        1 => fill(of, &["u"], values, |gauge: &Gauge, n| gauge.set(-(n as i64))),
        2 => fill(of, &["u", "v"], values, |gauge: &FloatGauge, n| gauge.set(n as f64 / 7.0)),
        3 => fill(of, &["u"], values, |counts: &Histogram<Count>, n| counts.observe(n)),
        4 => fill(classic, &[], values, |counts: &Histogram<Count>, n| counts.observe(n)),
        5 => fill(of, &["region"], values, |counts: &Summary<Count>, n| counts.observe(n)),
        6 => fill(
            (registry, opts.buckets(&[0.5, 7.0]).bucketing(Bucketing::Dual)),
            &["u"],
            values,
            |counts: &Histogram<Count>, n| counts.observe(n),
        ),
        7 => fill(
            (registry, opts.buckets(&[-5.0, 5.0])),
            &["v"],
            values,
            |counts: &Histogram<Floats>, n| counts.observe(n as f64 - 500.0),
        ),
        8 => fill(
            (registry, opts.buckets(&[5.0])),
            &["v"],
            values,
            |counts: &Histogram<Floats>, n| {
                counts.observe(n as f64 - 500.0);
            },
        ),
        9 => fill((registry, opts.quantiles(&[0.9])), &[], values, |counts: &Summary<Count>, n| {
            counts.observe(n);
        }),
        10 => {
            let Ok(states) = registry.register::<StateSet<Circuit>>(opts) else { return };
            states.set(Circuit::Open);
        }
        _ => {
            let Ok(info) = registry.register::<Info<By<'static>>>(opts) else { return };
            values.iter().for_each(|value| info.set(By { user: &value.to_string() }));
        }
    }
}

fn filled(plan: &[Planned]) -> Registry {
    raise_limit();
    // Others report the discarded updates of tests that run beside this one.
    let registry = Registry::for_test().unwrap();
    plan.iter().for_each(|family| plan_in(&registry, family));
    registry
}

fn any_family() -> impl Strategy<Value = Planned> {
    (0..NAMES.len(), 0..WAYS, vec(0..1_000_u64, 0..5)).prop_map(|(name, way, values)| Planned {
        name,
        way,
        values,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..Default::default() })]

    #[test]
    fn the_page_is_the_union_of_what_the_registries_show(
        plans in vec(vec(any_family(), 0..5), 1..5),
    ) {
        let names = ["a", "b", "c", "d"];
        let several = Several::new(names.into_iter().zip(plans.iter().map(|plan| filled(plan))));
        let conflicts = assert_nothing_is_lost(&several);
        let out: BTreeSet<(&str, &str)> =
            conflicts.iter().map(|c| (c.part.as_str(), c.family.as_str())).collect();
        prop_assert_eq!(out.len(), conflicts.len());
        // Where the names are escaped, each sample has a name and labels of its own too.
        for (format, syntax) in TEXTS {
            let count = |text: &str| {
                let all = families(text, syntax).unwrap();
                let samples = all.iter().flat_map(|family| &family.samples);
                samples.map(|it: &talea_parse::SampleRef<'_>| {
                    let labels = it.labels.iter().map(|(name, value)| format!("{name} {value}"));
                    (it.name.clone().into_owned(), labels.collect::<BTreeSet<_>>())
                }).collect::<BTreeSet<_>>().len()
            };
            for escaping in [Escaping::Underscores, Escaping::Dots, Escaping::Values] {
                let text = escaped(&several, format, escaping);
                assert_no_violation(&text, syntax);
                prop_assert_eq!(count(&text), count(&several.text(format)), "{}", text);
            }
        }
        // From outside it is the same.
        if let [(one, a), (two, b)] = &several.all[..] {
            let foreign = Foreign([("a", a.clone()), ("b", b.clone())]);
            prop_assert_eq!((one.as_str(), two.as_str()), ("a", "b"));
            for (format, _) in TEXTS {
                prop_assert_eq!(scraped(&foreign, format, Escaping::AllowUtf8), several.page(format).0);
            }
        }
        // Where each family has its type and no name stands in quotes, the text is put together
        // from theirs.
        if conflicts.is_empty() && !plans.iter().flatten().any(|it: &Planned| matches!(it.way, 5 | 7 | 8) || it.name == 4) {
            for (format, _) in TEXTS {
                prop_assert_eq!(several.text(format), several.expected(format, |_, _| false));
            }
        }
    }
}
