//! Names that not every scraper knows stay unique on every page.
#![cfg(not(miri))]

use std::collections::BTreeSet;

use crate::support::descriptors::raise_limit;
use crate::support::metrics;
use crate::support::pages::{Several, TEXTS, escaped as page, scraped};
use crate::support::protobuf;
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use talea::{
    Count, Counter, Escaping, Format, Gauge, Histogram, Metric, Opts, Registry, StateSet, Summary,
};
use talea_parse::{Severity, Syntax, check, families};

const ESCAPINGS: [Escaping; 4] =
    [Escaping::AllowUtf8, Escaping::Underscores, Escaping::Dots, Escaping::Values];

fn registry() -> Registry {
    raise_limit();
    metrics::registry()
}

fn opts(name: &str) -> Opts<'_> {
    metrics::opts(name).utf8_names(true).lenient_names(true)
}

fn set(registry: &Registry, name: &str, value: i64) {
    registry.register::<Gauge>(opts(name)).unwrap().set(value);
}

/// The types of a page of text by which an older scraper would know its families.
#[track_caller]
fn check_types(registry: &Registry, expected: &[&str]) {
    let text = page(registry, Format::Text, Escaping::Underscores);
    assert_eq!(types(&text)[..expected.len()], *expected, "{text}");
}

/// The names of the families of a page.
fn types(page: &str) -> Vec<&str> {
    let lines = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    lines.map(|line| line.rsplit_once(' ').unwrap().0).collect()
}

#[test]
fn a_name_keeps_its_short_form_unless_another_has_it() {
    let registry = registry();
    for name in ["a b", "a_b", "a.b", "x y", "x_y_total"] {
        set(&registry, name, 1);
    }
    // A counter's samples and its family have names of their own.
    registry.register::<Counter>(opts("x.y")).unwrap().inc();
    registry.register::<Histogram<Count>>(opts("h i")).unwrap().observe(1);
    set(&registry, "h_i_count", 1);
    for (escaping, expected) in [
        (
            Escaping::Underscores,
            "U__a_20_b U__a_2e_b a_b U__h_20_i h_i_count x_y U__x_2e_y__total x_y_total",
        ),
        (Escaping::Dots, "a__b a_dot_b a_b h__i h_i_count x__y x_dot_y__total x_y_total"),
        (
            Escaping::Values,
            "U__a_20_b U__a_2e_b a_b U__h_20_i h_i_count U__x_20_y U__x_2e_y__total x_y_total",
        ),
    ] {
        let text = page(&registry, Format::Text, escaping);
        assert_eq!(types(&text).join(" "), expected, "{escaping:?}");
    }
    // A name without a rival is as every scraper expects it.
    registry.unregister("a_b");
    check_types(&registry, &["a_b", "U__a_2e_b"]);
    // Also a name that looks like one that was escaped.
    set(&registry, "U__a_2e_b", 1);
    check_types(&registry, &["U__a_2e_b", "a_b", "U___a_2e_b"]);
}

#[test]
fn the_labels_of_a_family_stay_unique() {
    let registry = registry();
    let labels = ["a b", "a_b", "a:b", "é", " _name__", "le:", "otel.metric.overflow", "b"];
    let family = registry.family::<Gauge>(opts("x"), &labels).unwrap();
    family.with_values(&["1", "2", "3", "4", "5", "6", "7", "8"]).set(1);
    for (escaping, expected) in [
        (
            Escaping::Underscores,
            "U__a_20_b=\"1\",a_b=\"2\",U__a_3a_b=\"3\",_=\"4\",U___20___name____=\"5\",le_=\"6\",\
             U__otel_2e_metric_2e_overflow=\"7\",b=\"8\"",
        ),
        (
            Escaping::Dots,
            "a__b=\"1\",a_b=\"2\",U__a_3a_b=\"3\",U___e9_=\"4\",U___20___name____=\"5\",le__=\"6\",\
             otel_dot_metric_dot_overflow=\"7\",b=\"8\"",
        ),
    ] {
        let text = page(&registry, Format::Text, escaping);
        assert!(text.ends_with(&format!("\nx{{{expected}}} 1\n")), "{text}");
        let same = protobuf::families(&scraped(&registry, Format::Protobuf, escaping));
        let names: BTreeSet<_> =
            same[0].metric[0].label.iter().map(|label| label.name.as_str()).collect();
        assert_eq!(names.len(), labels.len());
        assert!(names.iter().all(|name| expected.contains(&format!("{name}=\""))), "{names:?}");
    }
}

/// Registries on one page, each with a label of its own.
fn several(registries: impl IntoIterator<Item = Registry>) -> Several {
    Several::by("part_of", ["a", "b", "c"].into_iter().zip(registries))
}

#[test]
fn names_of_several_registries_stay_unique_too() {
    let registries = ["a b", "a_b", "a.b"].map(|name| {
        let registry = registry();
        let family = registry.family::<Gauge>(opts(name), &["part.of", "x"]).unwrap();
        family.with_values(&["1", "2"]).set(1);
        registry
    });
    let text = page(&several(registries), Format::OpenMetrics, Escaping::Underscores);
    assert_eq!(types(&text), ["U__a_20_b", "U__a_2e_b", "a_b"], "{text}");
    let line = "\nU__a_20_b{part_of=\"a\",U__part_2e_of=\"1\",x=\"2\"} 1\n";
    assert!(text.contains(line), "{text}");
}

/// Few characters, so that many names are equal once they are escaped.
fn any_name() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        6 => "[ab._ :é]{1,3}",
        1 => Just("U__a".to_owned()),
        1 => Just("_20_".to_owned()),
        1 => "[^\"\\\\\n_]{1,6}z",
    ];
    let endings = vec!["_total", ".total", "_count", " sum", "_created", "_info", "_recent"];
    let ending = prop_oneof![1 => Just(""), 1 => proptest::sample::select(endings)];
    (part, ending).prop_map(|(part, ending)| format!("{part}{ending}"))
}

#[derive(Clone, Debug)]
struct Planned {
    name: String,
    kind: usize,
    labels: Vec<String>,
}

fn any_family() -> impl Strategy<Value = Planned> {
    (any_name(), 0_usize..7, btree_set(any_name(), 0..4)).prop_map(|(name, kind, labels)| {
        let labels = labels.into_iter().collect();
        Planned { name, kind, labels }
    })
}

/// Registers what can be, with one series each.
fn fill(registry: &Registry, Planned { name, kind, labels }: &Planned) {
    fn one<M: Metric>(registry: &Registry, opts: Opts<'_>, labels: &[String], update: fn(&M)) {
        let values: Vec<&str> = labels.iter().map(|_| "v").collect();
        let _ = registry.family(opts, labels).map(|family| update(&family.with_values(&values)));
    }
    let opts = opts(name);
    match kind {
        0 => one::<Counter>(registry, opts, labels, |it| it.inc()),
        1 => one::<Gauge>(registry, opts, labels, |it| it.set(1)),
        2 => one::<Histogram<Count>>(registry, opts, labels, |it| it.observe(1)),
        3 => one::<Summary<Count>>(registry, opts.quantiles(&[0.5]), labels, |it| it.observe(1)),
        4 => one::<Histogram<Count>>(registry, opts.quantiles(&[0.5]), labels, |it| it.observe(1)),
        5 => {
            let facts: Vec<_> = labels.iter().map(|label| (label.as_str(), "v")).collect();
            let _ = registry.info(opts, &[""; 0]).map(|it| it.set_pairs(&[""; 0], &facts));
        }
        _ => one::<StateSet<bool>>(registry, opts, labels, |it| it.set(true)),
    }
}

/// The violations of a page against the rules of all parsers.
fn faults(text: &str, syntax: Syntax) -> Vec<String> {
    // A name may begin with '_' once it is escaped, which parsers take.
    let tolerated = ["reserved-name", "reserved-label"];
    check(text, syntax)
        .into_iter()
        .filter(|found| found.severity == Severity::Violation && !tolerated.contains(&found.rule))
        .map(|found| format!("{}: {found}", found.rule))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn whatever_is_registered_a_page_has_each_family_once(
        plan in vec(any_family(), 1..8),
        more in vec(any_family(), 0..4),
    ) {
        let registries = [&plan, &more].map(|plan| {
            let registry = registry();
            plan.iter().for_each(|planned| fill(&registry, planned));
            registry
        });
        let one = &registries[0];
        let count = one.snapshot().families().len();
        let several = several(registries.clone());
        for escaping in ESCAPINGS {
            for (format, syntax) in TEXTS {
                let text = page(one, format, escaping);
                let names: BTreeSet<_> = types(&text).into_iter().collect();
                prop_assert_eq!(names.len(), count, "{:?}\n{}", escaping, text);
                let texts = [page(&several, format, escaping), text];
                for text in texts {
                    let found = families(&text, syntax);
                    prop_assert!(found.is_ok(), "{:?} {:?}\n{}", escaping, found, text);
                    let faults = faults(&text, syntax);
                    prop_assert!(faults.is_empty(), "{:?} {:#?}\n{}", escaping, faults, text);
                }
            }
            let found = protobuf::families(&scraped(one, Format::Protobuf, escaping));
            let names: BTreeSet<_> = found.iter().map(|family| family.name.clone()).collect();
            prop_assert_eq!(names.len(), count);
            for family in found {
                for metric in family.metric {
                    let labels: BTreeSet<_> = metric.label.iter().map(|l| &l.name).collect();
                    prop_assert_eq!(labels.len(), metric.label.len(), "{:?}", metric.label);
                }
            }
        }
    }
}

/// Processes of a shared region register what one process alone could not.
#[cfg(target_os = "linux")]
mod shared {
    use talea::outside::Reader;

    use super::*;
    use crate::support::tmpfs::Shm;

    const HIDDEN: &str = "talea_families_hidden";

    #[test]
    fn of_two_families_with_one_name_the_newer_is_shown_and_the_other_is_reported() {
        let shm = Shm::new("shown-names-clash");
        let (one, two) = (shm.opened(), shm.opened());
        for name in ["x", "y_count", "z"] {
            set(&one, name, 7);
        }
        assert_eq!(one.snapshot().select(HIDDEN, &[]).count(), 0);
        two.register::<Counter>(opts("x")).unwrap().inc();
        two.register::<Histogram<Count>>(opts("y")).unwrap().observe(1);
        // A scraper that saw the region before, and one that did not.
        let mut scraper = one.scraper();
        for _ in 0..3 {
            let text = String::from_utf8(scraper.scrape().to_vec()).unwrap();
            assert_eq!(types(&text), [HIDDEN, "x_total", "y", "z"], "{text}");
        }
        for registry in [&one, &two] {
            let snapshot = registry.snapshot();
            for family in ["x", "y_count"] {
                assert_eq!(snapshot.value(HIDDEN, &[("family", family)]), Some(1.0));
            }
            assert_eq!(snapshot.value(HIDDEN, &[("family", "z")]), None);
            for escaping in ESCAPINGS {
                let text = page(registry, Format::OpenMetrics, escaping);
                assert_eq!(faults(&text, Syntax::OpenMetrics), [""; 0], "{text}");
            }
        }
        let outside = Reader::open(shm.file()).unwrap().look().unwrap().snapshot;
        assert_eq!(outside.to_text(), one.snapshot().to_text());
        // Only what is asked for.
        let snapshot = one.snapshot_of(|name| name == "z");
        assert_eq!(types(&snapshot.to_text()), ["z"]);
        // Once the other has ended, it is there again.
        two.unregister("x_total");
        check_types(&one, &[HIDDEN, "x", "y", "z"]);
        two.unregister("y");
        check_types(&one, &["x", "y_count", "z"]);
    }

    #[test]
    fn names_that_are_equal_once_they_are_escaped_stay_unique() {
        let shm = Shm::new("shown-names-alike");
        let (one, two) = (shm.opened(), shm.opened());
        set(&one, "a b", 1);
        check_types(&one, &["a_b"]);
        set(&two, "a_b", 2);
        for registry in [&one, &two] {
            let text = page(registry, Format::Text, Escaping::Underscores);
            let expected = "\nU__a_20_b 1\n# HELP a_b Some.\n# TYPE a_b gauge\na_b 2\n";
            assert!(text.ends_with(expected), "{text}");
        }
    }
}
