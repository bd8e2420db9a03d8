//! Claims about what Python's prometheus_client reads.

use std::time::{Duration, SystemTime};

use stage::{Parser, assert_same, escaped_by_underscores, hard_metrics, hard_texts, read, samples};
use talea::{Counter, DynamicLabels, Escaping, Family, Format, Gauge, Opts, Registry, Snapshot};

fn written(snapshot: &Snapshot, format: Format, escaping: Escaping) -> Vec<u8> {
    snapshot.chunks(format, escaping, usize::MAX).flatten().collect()
}

fn parsers() -> [(Parser, Format, bool); 2] {
    [(Parser::Text, Format::Text, false), (Parser::OpenMetrics, Format::OpenMetrics, true)]
}

#[test]
fn each_sample_is_read_as_it_is() {
    let snapshot = hard_metrics().unwrap().snapshot();
    for (parser, format, created) in parsers() {
        let expected = samples(&snapshot, created);
        assert!(expected.len() > hard_texts().len() + 50);
        let (found, _) = read(parser, &written(&snapshot, format, Escaping::AllowUtf8));
        assert_same(&found, &expected);
        let (found, _) = read(parser, &written(&snapshot, format, Escaping::Underscores));
        assert_same(&found, &escaped_by_underscores(&expected));
        for escaping in [Escaping::Dots, Escaping::Values] {
            let (found, _) = read(parser, &written(&snapshot, format, escaping));
            assert_eq!(found.len(), expected.len(), "{escaping:?}");
        }
    }
}

#[test]
fn exemplars_are_read_with_their_labels_and_times() {
    let snapshot = hard_metrics().unwrap().snapshot();
    let (_, mut found) =
        read(Parser::OpenMetrics, &written(&snapshot, Format::OpenMetrics, Escaping::AllowUtf8));
    found.sort_by_key(|exemplar| exemplar["value"].to_string());
    let expected = [
        ("wait_seconds_bucket", "0.07", "beef"),
        ("calls_total", "2.0", "0af7"),
        ("wait_seconds_bucket", "2097152.0", "cafe"),
    ];
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (exemplar, (name, value, trace)) in found.iter().zip(expected) {
        assert_eq!(exemplar["name"], name);
        assert_eq!(exemplar["value"], value);
        assert_eq!(exemplar["labels"]["trace_id"], trace);
        let seconds = exemplar["timestamp"].as_str().unwrap().parse::<f64>().unwrap();
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs_f64(seconds);
        assert!(time.elapsed().unwrap_or_default() < Duration::from_secs(60), "{exemplar}");
    }
    assert_eq!(found[1]["labels"]["note"], "\"a\" b\\c\nü");
}

#[test]
fn names_that_are_alike_once_they_are_escaped_are_read_apart() {
    let registry = Registry::for_test().unwrap();
    let opts = |name| Opts::new(name, "Some.").utf8_names(true).lenient_names(true);
    let labels = ["a b", "a_b", "a.b", "ü", " _x"];
    for name in ["a b", "a_b", "a.b", "x y_total"] {
        let family: Family<DynamicLabels, Gauge> = registry.family(opts(name), &labels).unwrap();
        family.with_values(&["1", "2", "3", "4", "5"]).set(1);
    }
    registry.register::<Counter>(opts("x y")).unwrap_err();
    registry.register::<Counter>(opts("x.y")).unwrap().inc();
    let snapshot = registry.snapshot();
    for (parser, format, created) in parsers() {
        let expected = samples(&snapshot, created);
        for escaping in [Escaping::Underscores, Escaping::Dots, Escaping::Values] {
            let (found, _) = read(parser, &written(&snapshot, format, escaping));
            assert_eq!(found.len(), expected.len(), "{escaping:?}");
            // Each label of each series is there.
            let count = found.keys().map(|(_, labels)| labels.len()).sum::<usize>();
            assert_eq!(count, 4 * labels.len(), "{escaping:?}: {found:?}");
        }
    }
}

#[test]
fn nothing_is_read_of_nothing() {
    let snapshot = Registry::for_test().unwrap().snapshot();
    for (parser, format, _) in parsers() {
        let (found, _) = read(parser, &written(&snapshot, format, Escaping::Underscores));
        assert!(found.is_empty());
    }
}
