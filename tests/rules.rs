//! Claims about the rules in `contrib/prometheus`, by promtool.

use std::collections::BTreeMap;

use stage::{assert_promtool, contrib};

/// The text after each `key`, up to the next one.
fn parts<'a>(text: &'a str, key: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
    text.split(key).skip(1).map(|part| part.split_once('\n').unwrap())
}

const FOLDER: &str = "contrib/prometheus";

#[test]
fn prometheus_takes_them() {
    assert_promtool(FOLDER, &["check", "rules", "--lint=all", "--lint-fatal", "rules.yml"]);
}

#[test]
fn alerts_fire_where_they_must_and_nowhere_else() {
    assert_promtool(FOLDER, &["test", "rules", "rules.test.yml"]);
}

#[test]
fn every_alert_is_tried_both_ways() {
    let rules = contrib("prometheus/rules.yml");
    let mut tried: BTreeMap<&str, [bool; 2]> =
        parts(&rules, "- alert: ").map(|(name, _)| (name, [false; 2])).collect();
    assert!(!tried.is_empty());
    let tests = contrib("prometheus/rules.test.yml");
    for (name, part) in parts(&tests, "- alertname: ") {
        let fires = !part.contains("exp_alerts: []");
        tried.get_mut(name).unwrap_or_else(|| panic!("there is no {name}"))[usize::from(fires)] =
            true;
    }
    for (name, [quiet, fires]) in tried {
        assert!(quiet, "nothing says where {name} must not fire");
        assert!(fires, "nothing says where {name} must fire");
    }
}

#[test]
fn every_alert_says_what_it_is_and_what_to_make_of_it() {
    for (name, part) in parts(&contrib("prometheus/rules.yml"), "- alert: ") {
        for said in ["severity: ", "summary: ", "description: "] {
            assert!(part.contains(said), "{name} has no {said}");
        }
    }
}
