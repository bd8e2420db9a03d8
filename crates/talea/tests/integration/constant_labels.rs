//! Claims about labels that every series of a registry is shown with.
#![cfg(not(miri))]

use crate::support::metrics::{Users, message_of, opts, reason, register, registry};
use crate::support::pages::{
    Several, TEXTS, alone, assert_no_violation, counter, one_of_each, scraped, with_label,
};
use crate::support::protobuf;
use talea::{Counter, Escaping, Format, Registry, StateSet};

const LABELS: [(&str, &str); 2] = [("zone", "eu \"1\"\\\n"), ("version", "1.4")];

fn with_constants(registry: Registry) -> Registry {
    registry.set_constant_labels(&LABELS).unwrap();
    registry
}

/// A page in which each sample has other labels before its own.
fn with_labels(page: &str, labels: &[(&str, &str)]) -> String {
    let mut labelled = String::new();
    for line in page.lines() {
        let labels = labels.iter().rev().filter(|_| !line.starts_with('#'));
        let line = line.to_owned();
        labelled += &labels.fold(line, |line, (name, value)| with_label(&line, name, value));
        labelled.push('\n');
    }
    labelled
}

#[test]
fn every_sample_is_shown_with_them_before_its_own_labels() {
    let shown = [("zone", "eu \\\"1\\\"\\\\\\n"), LABELS[1]];
    let registry = one_of_each(1);
    let before = TEXTS.map(|(format, _)| alone(&registry, format));
    registry.set_constant_labels(&LABELS).unwrap();
    for ((format, _), before) in TEXTS.into_iter().zip(before) {
        assert_eq!(alone(&registry, format), with_labels(&before, &shown));
    }
    let families = protobuf::families(&scraped(&registry, Format::Protobuf, Escaping::AllowUtf8));
    assert!(families.len() > 10);
    for metric in families.iter().flat_map(|family| &family.metric) {
        let first = metric.label.iter().take(2);
        let first: Vec<_> = first.map(|label| (&*label.name, &*label.value)).collect();
        assert_eq!(first, LABELS);
    }
}

#[test]
fn snapshots_are_queried_without_them() {
    let registry = with_constants(counter("orders", 3));
    let snapshot = registry.snapshot();
    assert_eq!(snapshot.value("orders_total", &[]), Some(3.0));
    let labels = LABELS.map(|(name, value)| (name, value.to_owned()));
    assert_eq!(snapshot.constant_labels(), labels);
    assert_eq!(counter("orders", 3).snapshot().constant_labels(), []);
}

#[test]
fn they_stay_whatever_is_wiped_removed_or_expired() {
    let registry = with_constants(counter("orders", 3));
    registry.wipe(|_| true);
    registry.expire(Some(std::time::Duration::ZERO), |_, _| true);
    registry.sweep();
    assert_eq!(registry.unregister_where(|_| true), 1);
    let _: Counter = register(&registry, "orders");
    let shown = registry.snapshot_of(|name| name == "orders_total");
    assert_eq!(shown.constant_labels().len(), 2);
}

#[test]
fn on_a_page_of_several_they_follow_the_label_of_the_part_which_wins() {
    let one = counter("orders", 1);
    one.set_constant_labels(&[("zone", "a"), ("region", "x")]).unwrap();
    let two = counter("orders", 2);
    two.set_constant_labels(&[("version", "2")]).unwrap();
    let three = counter("orders", 3);
    let page = Several::new([("b", one), ("c", two), ("d", three)]).text(Format::Text);
    for line in [
        "orders_total{region=\"b\",zone=\"a\"} 1\n",
        "orders_total{region=\"c\",version=\"2\"} 2\n",
        "orders_total{region=\"d\"} 3\n",
    ] {
        assert!(page.contains(line), "{line}\n{page}");
    }
}

#[test]
fn names_that_cannot_be_shown_are_refused() {
    for (labels, expected) in [
        (&[("le", "1")][..], "the name \"le\" cannot be used"),
        (&[("pid", "1")], "the name \"pid\" cannot be used"),
        (&[("", "1")], "the name \"\" cannot be used"),
        (&[("a b", "1")], "the name \"a b\" cannot be used"),
        (&[("__a", "1")], "the name \"__a\" cannot be used"),
        (&[("a", "1"), ("a", "2")], "the label \"a\" is given twice"),
    ] {
        let registry = registry();
        let message = message_of(registry.set_constant_labels(labels));
        let expected = format!("cannot set the constant labels: {expected}");
        assert!(message.starts_with(&expected), "{message}");
        assert_eq!(registry.snapshot().constant_labels(), []);
    }
}

#[test]
fn others_than_the_first_are_refused() {
    let registry = with_constants(registry());
    with_constants(registry.clone());
    for labels in [&LABELS[..1], &[("zone", "us"), ("version", "1.4")], &[]] {
        let message = message_of(registry.set_constant_labels(labels));
        assert!(message.contains("this process has set others already"), "{message}");
    }
    assert_eq!(registry.snapshot().constant_labels().len(), 2);
}

#[test]
fn a_label_of_a_metric_cannot_be_constant_whichever_comes_first() {
    let registry = registry();
    let _: Users<Counter> = register(&registry, "orders");
    let _: StateSet<bool> = register(&registry, "open");
    for (label, metric) in [("user", "orders_total"), ("open", "open")] {
        let message = message_of(registry.set_constant_labels(&[("zone", "eu"), (label, "x")]));
        let expected =
            format!("the metric \"{metric}\" has a label \"{label}\" of its own; rename one");
        assert!(message.contains(&expected), "{message}");
    }
    registry.set_constant_labels(&[("zone", "eu"), ("kind", "x")]).unwrap();
    let fault = reason(registry.family::<Counter>(opts("calls"), &["zone"]));
    assert!(fault.contains("its label \"zone\" is a constant label of the registry"), "{fault}");
    let fault = reason(registry.register::<StateSet<bool>>(opts("kind")));
    assert!(fault.contains("its label \"kind\" is a constant label of the registry"), "{fault}");
    let _ = registry.family::<Counter>(opts("calls"), &["region"]).unwrap();
}

/// Registries of one file, as those of several processes.
#[cfg(target_os = "linux")]
mod shared {
    use super::*;
    use crate::support::tmpfs::Shm;

    /// The page of a reader outside.
    fn agent(shm: &Shm) -> String {
        let look = talea::outside::Reader::open(shm.file()).unwrap().look().unwrap();
        assert_eq!(look.families_unreadable, 0);
        shm.outside(|name| name.ends_with("_total")).to_text()
    }

    #[test]
    fn a_metric_of_another_process_with_such_a_label_keeps_its_own() {
        let shm = Shm::new("constants-taken");
        let old = Registry::open(shm.file()).unwrap();
        let calls = old.family::<Counter>(opts("calls"), &["zone"]).unwrap();
        calls.with_values(&["us"]).inc();
        let new = Registry::open(shm.file()).unwrap();
        new.set_constant_labels(&[("zone", "eu"), ("version", "2")]).unwrap();
        register::<Counter>(&new, "orders").inc();
        for page in [agent(&shm), old.snapshot().to_text(), alone(&new, Format::Text)] {
            assert!(page.contains("calls_total{zone=\"us\"} 1\n"), "{page}");
            assert!(page.contains("orders_total{zone=\"eu\",version=\"2\"} 1\n"), "{page}");
        }
        let page = Several::by("host", [("a", new)]).text(Format::Text);
        assert!(page.contains("calls_total{host=\"a\",zone=\"us\"} 1\n"), "{page}");
        assert!(page.contains("orders_total{host=\"a\",zone=\"eu\",version=\"2\"} 1\n"), "{page}");
    }
}

#[test]
fn labels_that_are_named_late_are_shown_once() {
    let facts = |fact| {
        let registry = registry();
        let info = registry.info(opts("build"), &[""; 0]).unwrap();
        info.set_pairs(&[""; 0], &[("version", "1"), (fact, "2")]);
        registry
    };
    let own = with_constants(facts("zone"));
    for (format, syntax) in TEXTS {
        let text = alone(&own, format);
        assert_no_violation(&text, syntax);
        assert!(text.contains("\nbuild_info{version=\"1\",zone=\"2\"} 1\n"), "{text}");
    }
    // One that has the name of the label by which parts are distinguished gets another name.
    let page = Several::new([("a", facts("region")), ("b", facts("zone"))]);
    assert_eq!(page.conflicts(), []);
    let text = page.text(Format::Text);
    let line = "build_info{region=\"a\",version=\"1\",exported_region=\"2\"} 1\n";
    assert!(text.contains(line) && text.contains("build_info{region=\"b\",version="), "{text}");
}
