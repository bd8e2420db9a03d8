//! Claims about pages: families that are left out, and why.
#![cfg(not(miri))]

use std::collections::BTreeSet;
use std::time::Duration;

use crate::support::metrics::{By, Users, opts, register, registry};
use crate::support::pages::{
    Circuit, Foreign, Several, TEXTS, assert_no_violation, counter, gauge, with_counter,
};
#[cfg(target_os = "linux")]
use crate::support::tmpfs::Shm;
use talea::{
    Count, Counter, Escaping, Family, FloatCounter, Format, Gauge, Histogram, Info, LabelValue,
    Labels, Page, Registry, Scrapable, Scraper, Seconds, StateSet, Summary,
};
use talea_parse::Syntax;

/// A registry where a family is registered in one way or another.
type Way = fn(&Registry);

fn so(way: Way) -> Registry {
    let registry = registry();
    way(&registry);
    // A family beside it is always shown.
    with_counter(registry, "beside", 1)
}

/// A metric that is registered and updated.
macro_rules! way {
    ($type:ty, $opts:expr, $update:ident($($value:expr)?)) => {
        |registry| registry.register::<$type>($opts).unwrap().$update($($value)?)
    };
    ($label:literal) => {
        |registry| {
            registry.family::<Counter>(opts("x"), &[$label]).unwrap().with_values(&["1"]).inc()
        }
    };
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
            way!(Histogram<Count>, opts("x"), observe(1)),
            way!(Gauge, opts("x"), set(1)),
        ),
        (
            "kept in 1 parts here, and one in 1000000000",
            "x_seconds",
            way!(Histogram<Seconds>, opts("x_seconds"), observe(Duration::from_secs(1))),
            way!(Histogram<Count>, opts("x_seconds"), observe(1)),
        ),
        ("the labels [\"b\"] here, and [\"a\"]", "x_total", way!("a"), way!("b")),
        ("the labels [\"a\"] here, and []", "x_total", way!(Counter, opts("x"), inc()), way!("a")),
        (
            "the buckets [1.0, 2.0] here, and [1.0]",
            "x",
            way!(Histogram<Count>, opts("x").buckets(&[1.0]), observe(1)),
            way!(Histogram<Count>, opts("x").buckets(&[1.0, 2.0]), observe(1)),
        ),
        (
            "native bucketing of schema 2",
            "x",
            way!(Histogram<Count>, opts("x").schema(3), observe(1)),
            way!(Histogram<Count>, opts("x").schema(2), observe(1)),
        ),
        (
            "the quantiles",
            "x",
            way!(Summary<Count>, opts("x").quantiles(&[0.5]), observe(1)),
            way!(Summary<Count>, opts("x").quantiles(&[0.9]), observe(1)),
        ),
        (
            "the states [\"closed\", \"ajar\"] here, and [\"closed\", \"open\"]",
            "x",
            way!(StateSet<Circuit>, opts("x"), set(Circuit::Open)),
            way!(StateSet<Gate>, opts("x"), set(Gate::Ajar)),
        ),
        (
            "most others have \"x_total\", and in OpenMetrics the two would have one name",
            "x",
            way!(Counter, opts("x"), inc()),
            way!(Gauge, opts("x"), set(1)),
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
    let newer = so(way!("a"));
    for all in [[("old", &older), ("new", &newer)], [("new", &newer), ("old", &older)]] {
        let several = Several::new(all.map(|(name, registry)| (name, registry.clone())));
        let conflicts = several.conflicts();
        assert_eq!((conflicts.len(), conflicts[0].part.as_str()), (1, "old"));
        let text = several.text(Format::Text);
        assert!(text.ends_with("\nx_total{region=\"new\",a=\"1\"} 1\n"), "{text}");
    }
    // Each newcomer counts for what it says, and two say more than one that is new.
    let several =
        Several::new([("a", older.clone()), ("b", counter("x", 2)), ("c", so(way!("a")))]);
    let conflicts = several.conflicts();
    assert_eq!((conflicts.len(), conflicts[0].part.as_str()), (1, "c"));
}

#[test]
fn a_counter_and_a_gauge_that_openmetrics_would_call_the_same_are_not_both_shown() {
    let info = registry();
    register::<Info<By<'static>>>(&info, "x").set(By { user: "u" });
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
    let samples = text.lines().filter(|line| !line.contains("_created") && !line.starts_with('#'));
    let expected = "x_a{region=\"e\"} 1\nx_b_total{region=\"e\"} 1\n\
                    x_total{region=\"b\"} 2\nx_total{region=\"d\"} 3";
    assert_eq!(samples.collect::<Vec<_>>().join("\n"), expected);
}

#[test]
fn a_family_with_a_label_of_that_name_is_left_out_and_outvotes_none_that_can_be_shown() {
    let own = |name: &'static str| {
        let registry = registry();
        let family = registry.family::<Counter>(opts("x"), &[name]).unwrap();
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
    let states = registry();
    register::<StateSet<Circuit>>(&states, "region").set(Circuit::Open);
    let several = Several::new([("a", states), ("b", counter("x", 7))]);
    let conflicts = several.conflicts();
    assert_eq!((conflicts.len(), conflicts[0].family.as_str()), (1, "region"));
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
        let wild = counter("beside", 1);
        let family: Family<Wild, Counter> = register(&wild, "x");
        family.with(&Wild("user=\"good\"")).inc();
        family.with(&Wild(text)).inc();
        let other = registry();
        register::<Users<Counter>>(&other, "x").with(By { user: "a" }).add(5);
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

#[test]
fn a_family_from_outside_is_shown_though_it_has_a_hundred_labels() {
    let facts: Vec<(String, String)> = (0..100).map(|n| (format!("f{n}"), n.to_string())).collect();
    let facts: Vec<_> = facts.iter().map(|(name, value)| (&**name, &**value)).collect();
    let settings = registry();
    settings.info(opts("settings"), &[""; 0]).unwrap().set_pairs(&[""; 0], &facts);
    let other = counter("beside", 1);
    let mut scraper = Scraper::new(&Foreign([("one", settings), ("other", other)]));
    let page = String::from_utf8(scraper.scrape().to_vec()).unwrap();
    assert_no_violation(&page, Syntax::Text);
    assert!(page.contains("\nsettings_info{region=\"one\",f0=\"0\""), "{page}");
    assert_eq!(scraper.page().conflicts(), []);
}

#[cfg(target_os = "linux")]
#[test]
fn a_counter_from_outside_that_no_format_can_show_is_left_out_and_reported() {
    use std::os::unix::fs::FileExt;
    for total in [f64::NAN, -1.0, f64::NEG_INFINITY] {
        let shm = Shm::new("page-counters");
        let damaged = shm.opened();
        let opts = opts("spent").striped(false);
        damaged.register::<FloatCounter>(opts).unwrap().add(12_345.678);
        let bytes = std::fs::read(shm.file()).unwrap();
        let cell = 12_345.678_f64.to_le_bytes();
        let file = std::fs::File::options().write(true).open(shm.file()).unwrap();
        let at = bytes.chunks(8).position(|word| word == cell).unwrap() as u64 * 8;
        file.write_all_at(&total.to_le_bytes(), at).unwrap();
        let other = counter("beside", 1);
        let mut scraper = Scraper::new(&Foreign([("damaged", damaged), ("other", other)]));
        scraper.format(Format::OpenMetrics, Escaping::default());
        let page = String::from_utf8(scraper.scrape().to_vec()).unwrap();
        assert_no_violation(&page, Syntax::OpenMetrics);
        assert!(page.contains("beside_total{") && !page.contains("spent"), "{page}");
        let [conflict] = scraper.page().conflicts() else { panic!("{total}") };
        assert!(conflict.reason.starts_with("a counter's total is below 0"), "{conflict}");
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
        let other = || match name {
            "up" => so(|r| drop(r.family::<Gauge>(opts("up"), &["x"]).unwrap())),
            _ => counter("up", 1),
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
