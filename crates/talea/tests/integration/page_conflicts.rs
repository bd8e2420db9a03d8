//! Claims about pages: families that parts define otherwise, and those that are left out.
#![cfg(not(miri))]

use std::time::Duration;

use crate::support::metrics::{By, Users, opts, register, registry};
use crate::support::pages::{
    Circuit, Foreign, Several, assert_no_violation, assert_nothing_is_lost, counter, gauge,
    with_counter,
};
#[cfg(target_os = "linux")]
use crate::support::tmpfs::Shm;
use talea::{
    Bucketing, Count, Counter, Escaping, Family, FloatCounter, Floats, Format, Gauge, Histogram,
    Info, LabelValue, Labels, Loss, Page, Registry, Scrapable, Scraper, Seconds, StateSet, Summary,
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
fn families_of_one_name_and_type_are_all_shown_whatever_else_differs() {
    let labelled = |label: &'static str| -> Registry {
        let registry = registry();
        registry.family::<Counter>(opts("x"), &[label]).unwrap().with_values(&["1"]).inc();
        registry
    };
    let observed: [(&str, Way, Way); 9] = [
        (
            "the unit",
            way!(Histogram<Seconds>, opts("x_seconds"), observe(Duration::from_secs(1))),
            way!(Histogram<Count>, opts("x_seconds"), observe(1)),
        ),
        ("the labels", way!("a"), way!("b")),
        ("whether there are labels", way!(Counter, opts("x"), inc()), way!("a")),
        (
            "the buckets",
            way!(Histogram<Count>, opts("x").buckets(&[1.0]), observe(1)),
            way!(Histogram<Count>, opts("x").buckets(&[1.0, 2.0, 4.0]), observe(2)),
        ),
        (
            "the resolution",
            way!(Histogram<Count>, opts("x").schema(3), observe(1)),
            way!(Histogram<Count>, opts("x").schema(2), observe(1)),
        ),
        (
            "whether there are native buckets",
            way!(Histogram<Count>, opts("x").bucketing(Bucketing::Dual), observe(1)),
            way!(Histogram<Count>, opts("x").bucketing(Bucketing::Classic), observe(1)),
        ),
        (
            "whether thresholds are below zero",
            way!(Histogram<Floats>, opts("x").buckets(&[-1.0, 1.0]), observe(0.5)),
            way!(Histogram<Floats>, opts("x").buckets(&[1.0]), observe(-0.5)),
        ),
        (
            "the quantiles",
            way!(Summary<Count>, opts("x").quantiles(&[0.5]), observe(1)),
            way!(Summary<Count>, opts("x").quantiles(&[0.9, 1.0]), observe(1)),
        ),
        (
            "the states",
            way!(StateSet<Circuit>, opts("x"), set(Circuit::Open)),
            way!(StateSet<Gate>, opts("x"), set(Gate::Ajar)),
        ),
    ];
    for (what, one, other) in observed {
        // Whichever came first, and however many there are of each.
        for all in [[one, other, one], [other, one, other], [one, one, other], [other, one, one]] {
            let parts = ["a", "b", "c"].into_iter().zip(all.map(so));
            let several = Several::new(parts);
            assert_eq!(assert_nothing_is_lost(&several), [], "{what}");
        }
    }
    let constants = |label| {
        let registry = counter("x", 1);
        registry.set_constant_labels(&[(label, "1")]).unwrap();
        registry
    };
    let text = Several::new([("a", constants("zone")), ("b", constants("version"))]);
    let text = text.text(Format::Text);
    let shown = "x_total{region=\"a\",zone=\"1\"} 1\nx_total{region=\"b\",version=\"1\"} 1\n";
    assert!(text.ends_with(shown), "{text}");
    // Each name of a label is shown by a name of its own.
    let odd = Several::new([("a", labelled("ab")), ("b", labelled("a_b"))]);
    assert_eq!(assert_nothing_is_lost(&odd), []);
}

#[test]
fn of_two_types_of_one_name_all_samples_are_shown_and_the_loss_is_reported() {
    let info: Way = |registry| register::<Info<By<'static>>>(registry, "x").set(By { user: "u" });
    let states: Way = way!(StateSet<Circuit>, opts("x"), set(Circuit::Open));
    let histogram: Way = way!(Histogram<Count>, opts("x").buckets(&[1.0]), observe(1));
    let summary: Way = way!(Summary<Count>, opts("x").quantiles(&[0.5]), observe(1));
    let gauge: Way = way!(Gauge, opts("x"), set(1));
    let counter: Way = way!(Counter, opts("x"), inc());
    let of_samples: Way = way!(Gauge, opts("x_count").lenient_names(true), set(1));
    let [types, openmetrics] = [Loss::TypeInTexts, Loss::TypeInOpenMetrics];
    let cases: [(Way, Way, Loss, &[&str]); 10] = [
        (gauge, histogram, types, &["# TYPE x gauge", "# TYPE x_bucket untyped"]),
        (gauge, summary, types, &["# TYPE x untyped", "# TYPE x_sum untyped"]),
        (gauge, states, types, &["# TYPE x gauge"]),
        (gauge, counter, openmetrics, &["# TYPE x gauge", "# TYPE x_total counter"]),
        (gauge, info, openmetrics, &["# TYPE x gauge", "# TYPE x_info gauge"]),
        (counter, info, openmetrics, &["# TYPE x_total counter", "# TYPE x_info gauge"]),
        (counter, histogram, openmetrics, &["# TYPE x_total counter", "# TYPE x histogram"]),
        (histogram, summary, types, &["# TYPE x_bucket untyped", "# TYPE x_count untyped"]),
        (states, histogram, types, &["# TYPE x gauge", "# TYPE x_bucket untyped"]),
        (histogram, of_samples, types, &["# TYPE x_bucket untyped", "# TYPE x_count untyped"]),
    ];
    for (one, other, loss, lines) in cases {
        for all in [[one, other, one], [other, one, other]] {
            let several = Several::new(["a", "b", "c"].into_iter().zip(all.map(so)));
            let conflicts = assert_nothing_is_lost(&several);
            assert!(!conflicts.is_empty(), "{lines:?}");
            for conflict in &conflicts {
                assert_eq!(conflict.loss, loss, "{conflict}");
                assert!(conflict.family.starts_with('x'), "{conflict}");
            }
            let text = several.text(Format::Text);
            for line in lines {
                assert!(text.contains(&format!("{line}\n")), "{line}: {text}");
            }
        }
    }
    let several = Several::new([("a", so(gauge)), ("b", so(histogram))]);
    let expected = "the family x has no type in the text formats: it is a histogram here, and a \
                    gauge elsewhere; rename one";
    assert_eq!(several.conflicts()[0].to_string(), expected);
    let several = Several::new([("a", so(gauge)), ("b", so(counter))]);
    let expected = "the family x_total has no type in OpenMetrics: elsewhere there is the gauge \
                    \"x\", and in OpenMetrics the two would have one name; rename one";
    assert_eq!(several.conflicts()[0].to_string(), expected);
}

#[test]
fn a_clash_changes_the_types_of_no_other_families() {
    let between = with_counter(gauge("x_a", 1), "x_b", 1);
    let several = Several::new([("a", gauge("x", 1)), ("b", counter("x", 2)), ("c", between)]);
    let conflicts: Vec<_> = several.conflicts().into_iter().map(|c| (c.part, c.family)).collect();
    assert_eq!(conflicts, [("b".into(), "x_total".into())]);
    let text = several.text(Format::OpenMetrics);
    let types: Vec<_> = text.lines().filter(|line| line.starts_with("# TYPE")).collect();
    let expected = [
        "# TYPE x gauge",
        "# TYPE x_a gauge",
        "# TYPE x_b counter",
        "# TYPE x_created unknown",
        "# TYPE x_total unknown",
    ];
    assert_eq!(types, expected);
}

#[test]
fn a_label_that_has_the_name_of_the_parts_label_is_shown_by_another_name() {
    let own = |name: &'static str| {
        let registry = registry();
        let family = registry.family::<Counter>(opts("x"), &[name]).unwrap();
        family.with_values(&["mine"]).inc();
        with_counter(registry, "beside", 1)
    };
    let several =
        Several::new([("a", own("region")), ("b", counter("x", 7)), ("c", own("region"))]);
    assert_eq!(assert_nothing_is_lost(&several), []);
    let text = several.text(Format::Text);
    for line in [
        "x_total{region=\"a\",exported_region=\"mine\"} 1\n",
        "x_total{region=\"b\"} 7\n",
        "x_total{region=\"c\",exported_region=\"mine\"} 1\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    // That name may be taken too.
    let both = registry();
    let family = both.family::<Counter>(opts("x"), &["exported_region", "region"]).unwrap();
    family.with_values(&["1", "2"]).inc();
    let text = Several::new([("a", both)]).text(Format::Text);
    let line = "x_total{region=\"a\",exported_region=\"1\",exported_exported_region=\"2\"} 1\n";
    assert!(text.ends_with(line), "{text}");
    // From outside it is the same.
    let mut scraper = Scraper::new(&Foreign([("a", own("region")), ("b", own("region"))]));
    let text = String::from_utf8(scraper.scrape().to_vec()).unwrap();
    assert!(text.contains("x_total{region=\"b\",exported_region=\"mine\"} 1\n"), "{text}");
    assert_eq!(scraper.page().conflicts(), []);
    // By another label it stays as it is.
    let several = Several::by("instance", [("a", own("region")), ("c", own("region"))]);
    assert_eq!(assert_nothing_is_lost(&several), []);
    // A state set's own name is a label of it, which OpenMetrics does not let be another.
    let states = registry();
    register::<StateSet<Circuit>>(&states, "region").set(Circuit::Open);
    let several = Several::new([("a", states), ("b", counter("x", 7))]);
    let conflicts = several.conflicts();
    assert_eq!((conflicts.len(), conflicts[0].family.as_str()), (1, "region"));
    assert_eq!(conflicts[0].loss, Loss::Family);
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

/// Parts from outside, and one that is not, which has no label.
#[derive(Clone)]
struct Agent(Registry, Foreign);

impl Scrapable for Agent {
    fn fill(&self, page: &mut Page, wants: &dyn Fn(&str) -> bool) {
        self.1.fill(page, wants);
        page.add(None, |snapshot| self.0.snapshot_into(snapshot, wants));
    }
}

#[test]
fn parts_from_outside_displace_no_others() {
    let own = || {
        let registry = registry();
        let family = registry.family::<Gauge>(opts("up"), &["region"]).unwrap();
        family.with_values(&["a"]).set(1);
        registry
    };
    let labelled =
        || so(|r| r.family::<Gauge>(opts("up"), &["x"]).unwrap().with_values(&["1"]).set(7));
    // A series of the part a is one of the agent's own, or could be.
    let gauges = [("the same series", gauge("up", 7)), ("others", labelled())];
    for (what, other) in gauges {
        let foreign = Foreign([("a", other), ("b", counter("beside", 1))]);
        let mut scraper = Scraper::new(&Agent(own(), foreign));
        let page = String::from_utf8(scraper.scrape().to_vec()).unwrap();
        assert_no_violation(&page, Syntax::Text);
        assert!(page.contains("\nup{region=\"a\"} 1\n") && !page.contains("7\n"), "{page}");
        let [conflict] = scraper.page().conflicts() else { panic!("{what}: {page}") };
        assert_eq!((conflict.part.as_str(), conflict.loss), ("a", Loss::Family), "{conflict}");
    }
    // One of another type could have a series of the agent's own too.
    let lenient = registry();
    let odd = opts("ups_total").lenient_names(true);
    lenient.register::<Gauge>(odd).unwrap().set(7);
    let own_counter = registry();
    let family = own_counter.family::<Counter>(opts("ups"), &["region"]).unwrap();
    family.with_values(&["a"]).inc();
    let foreign = Foreign([("a", lenient), ("b", counter("beside", 1))]);
    let mut scraper = Scraper::new(&Agent(own_counter, foreign));
    let page = String::from_utf8(scraper.scrape().to_vec()).unwrap();
    assert_no_violation(&page, Syntax::Text);
    assert!(page.contains("# TYPE ups_total counter\nups_total{region=\"a\"} 1\n"), "{page}");
    // Where the labels of parts distinguish them, all are shown.
    let foreign = Foreign([("a", labelled()), ("b", labelled())]);
    let mut scraper = Scraper::new(&Agent(gauge("up", 1), foreign));
    let page = String::from_utf8(scraper.scrape().to_vec()).unwrap();
    assert_no_violation(&page, Syntax::Text);
    for line in ["\nup 1\n", "\nup{region=\"a\",x=\"1\"} 7\n", "\nup{region=\"b\",x=\"1\"} 7\n"] {
        assert!(page.contains(line), "{line}\n{page}");
    }
    assert_eq!(scraper.page().conflicts(), []);
}
