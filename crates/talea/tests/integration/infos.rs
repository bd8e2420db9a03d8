//! Infos.

use std::sync::Barrier;
use std::thread;

use talea::{Escaping, Info, Kind, Labels};

use crate::support::metrics::{Fixed, alone, count, opts, registry};
use crate::support::pages::{TEXTS, assert_no_violation, escaped};

#[derive(Labels)]
struct Build<'a> {
    version: &'a str,
    revision: &'a str,
}

#[test]
fn an_info_is_one_and_has_its_labels_until_others_are_set() {
    let (registry, build) = alone::<Info<Build<'static>>>(opts("build"));
    assert_eq!(registry.snapshot().to_text(), "", "nothing was said yet");
    build.set(Build { version: "1.0", revision: "a\"b" });
    let expected = "# HELP build_info Some.\n# TYPE build_info gauge\n\
                    build_info{version=\"1.0\",revision=\"a\\\"b\"} 1\n";
    assert_eq!(registry.snapshot().to_text(), expected);
    assert_eq!(registry.snapshot().family("build_info").unwrap().kind(), Kind::Info);

    let other = build.clone();
    for version in ["1.1", "1.1", "1.0", "1.2"] {
        other.set(Build { version, revision: "" });
        let snapshot = registry.snapshot();
        assert_eq!(count(&snapshot, "build_info"), 1);
        let labels = [("version", version), ("revision", "")];
        assert_eq!(snapshot.value("build_info", &labels), Some(1.0));
    }
}

#[test]
fn an_info_with_fixed_labels_shows_one_combination_too() {
    let (registry, info) = alone::<Info<Fixed>>(opts("order_info"));
    info.set(Fixed { gift: false });
    info.set(Fixed { gift: true });
    let snapshot = registry.snapshot();
    assert_eq!(count(&snapshot, "order_info"), 1);
    assert_eq!(snapshot.value("order_info", &[("gift", "true")]), Some(1.0));
}

#[test]
fn an_info_never_expires() {
    let (registry, build) = alone::<Info<Build<'static>>>(opts("build"));
    build.set(Build { version: "1", revision: "" });
    (0..200).for_each(|_| registry.sweep());
    assert_eq!(count(&registry.snapshot(), "build_info"), 1);
}

#[test]
fn of_many_who_say_different_things_at_once_one_is_heard() {
    const ROUNDS: usize = if cfg!(miri) { 3 } else { 300 };
    let (registry, build) = alone::<Info<Build<'static>>>(opts("build"));
    let (begin, end) = (Barrier::new(5), Barrier::new(5));
    let heard = thread::scope(|scope| {
        for version in ["a", "b", "c", "d"] {
            let (build, begin, end) = (&build, &begin, &end);
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    begin.wait();
                    build.set(Build { version, revision: &round.to_string() });
                    end.wait();
                }
            });
        }
        let heard = (0..ROUNDS).map(|_| {
            begin.wait();
            end.wait();
            count(&registry.snapshot(), "build_info")
        });
        // All rounds are done before one is judged, else nobody would wait for the others.
        heard.collect::<Vec<_>>()
    });
    assert_eq!(heard, [1; ROUNDS]);
}

#[test]
fn facts_of_any_name_are_shown_as_a_scraper_reads_them() {
    let registry = registry();
    let info = registry.info(opts("app"), &["queue"]).unwrap();
    let facts = [
        ("git-commit", "f3a91c"),
        ("git_commit", "x\",\"y"),
        ("a\"\\b\n", "2"),
        ("a__b\t", "6"),
        ("a__b_", "7"),
        ("queue", "8"),
        ("", "3"),
    ];
    info.set_pairs(&["a"], &facts);
    info.set_pairs(&["b"], &[("größe", "4"), ("plain", "5")]);
    for (format, syntax) in TEXTS {
        for escaping in [Escaping::Underscores, Escaping::Values, Escaping::AllowUtf8] {
            assert_no_violation(&escaped(&registry, format, escaping), syntax);
        }
        let text = escaped(&registry, format, Escaping::Underscores);
        // A scraper that asks so knows no names in quotes.
        assert!(!text.contains("{\"") && !text.contains("f3a91c\",\""), "{text}");
        let names = r#"{queue="a",U__git_2d_commit="f3a91c",git_commit="x\",\"y",a__b_="2","#;
        assert!(text.contains(r#",a__b__="6",a__b___="7",queue_="8"} 1"#), "{text}");
        assert!(text.contains(names) && text.contains(r#",gr__e="4",plain="5"} 1"#), "{text}");
        let text = escaped(&registry, format, Escaping::AllowUtf8);
        assert!(text.contains(r#","git-commit"="f3a91c",git_commit="#), "{text}");
    }
}
