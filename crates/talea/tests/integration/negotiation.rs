//! Whatever stands in an Accept header, some format is chosen, and soon.
#![cfg(not(miri))]

use proptest::collection::vec;
use proptest::prelude::*;
use talea::{Escaping, Format};

/// Parts of headers, sound and not, one after the other.
fn any_header() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "text/plain",
        "application/openmetrics-text",
        "application/vnd.google.protobuf",
        "proto=io.prometheus.client.MetricFamily;encoding=delimited",
        "*/*",
        "*",
        "text/*",
        "version=1.0.0",
        "version=\"0.0.4\"",
        "escaping=allow-utf-8",
        "q=0",
        "q=0.5",
        "q=NaN",
        "\"",
        "\\",
        "=",
        "/",
        "é",
        " ",
    ]);
    let joint = prop_oneof![4 => Just(";"), 4 => Just(","), 1 => Just("")];
    let joined = vec((part, joint), 0..12)
        .prop_map(|parts| parts.into_iter().map(|(part, joint)| part.to_owned() + joint).collect());
    prop_oneof![4 => joined, 1 => any::<String>(), 1 => "[ -~]{0,80}"]
}

/// A weight in thousandths, often none.
fn any_weight() -> impl Strategy<Value = u16> {
    prop_oneof![Just(0), Just(1000), 0_u16..=1000]
}

fn shown(weight: u16) -> String {
    format!(";q={}", f64::from(weight) / 1000.0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_header_is_answered(header in any_header()) {
        let (format, escaping) = Format::negotiate(&header);
        prop_assert!(format.content_type(escaping).contains(escaping.as_str()));
    }

    #[test]
    fn the_greatest_weight_wins_and_what_is_refused_is_not_chosen(
        own in vec(proptest::option::of(any_weight()), 5),
        others in proptest::option::of(any_weight()),
        turn in 0_usize..6,
    ) {
        let formats = [
            Format::Text,
            Format::OpenMetrics,
            Format::OpenMetricsDraft,
            Format::Protobuf,
            Format::OpenMetrics2,
        ];
        let own_entries = formats.iter().zip(&own).filter_map(|(format, own)| {
            Some(format.content_type(Escaping::default()) + &shown((*own)?))
        });
        let mut entries: Vec<String> =
            own_entries.chain(others.map(|others| "*/*".to_owned() + &shown(others))).collect();
        let turn = turn.min(entries.len());
        entries.rotate_left(turn);
        let header = entries.join(", ");
        let chosen = Format::negotiate(&header).0;
        // The weight of one format precedes that of all.
        let weight = |at: usize| own[at].or(others).unwrap_or(0);
        let most = (0..5).map(weight).max().unwrap();
        let at = formats.iter().position(|format| *format == chosen).unwrap();
        match most {
            0 => prop_assert_eq!(chosen, Format::Text, "{}", header),
            most => prop_assert_eq!(weight(at), most, "{}", header),
        }
    }
}

/// A megabyte of entries, as no server lets through: a sort that goes over all of them for each
/// takes hours for it.
#[test]
fn a_long_header_is_read_once() {
    for entry in
        ["*,", "text/html;q=0.1,", ",", ";", "\"", "a/b;\\\",", "text/plain;q=0,*/*;q=0.5,"]
    {
        let header = entry.repeat((1 << 20) / entry.len());
        let (format, _) = Format::negotiate(&header);
        let expected =
            if entry.starts_with("text/plain") { Format::OpenMetrics } else { Format::Text };
        assert_eq!(format, expected, "{entry}");
    }
    // Weights that rise: each entry goes before all those before it.
    let rising: String = (0..50_000).map(|n| format!("a/b;q=0.{n:05},")).collect();
    assert_eq!(Format::negotiate(&rising).0, Format::Text);
}
