//! Claims about series that are removed on demand because they were idle for long enough.

use std::time::Duration;

use talea_region::{Config, Family, FamilySpec, Region, Storage};

const MINUTE: Duration = Duration::from_secs(60);

fn region() -> &'static Region {
    Region::anonymous(Config::with_len(2 << 20)).unwrap()
}

fn family(region: &'static Region, name: &str, idle_minutes: u32) -> Family {
    let spec = FamilySpec { name: name.as_bytes(), idle_minutes, ..FamilySpec::default() };
    region.family(spec).unwrap().family
}

/// The label texts of a family.
fn texts(region: &'static Region, name: &str) -> Vec<String> {
    let snapshot = region.snapshot();
    let family = snapshot.families().iter().find(|family| family.name == name.as_bytes()).unwrap();
    let text = |text: &[u8]| String::from_utf8(text.to_vec()).unwrap();
    let mut texts: Vec<_> = snapshot.series(family).map(|series| text(series.text)).collect();
    texts.sort();
    texts
}

#[test]
fn idle_series_expire_and_series_looked_up_since_stay() {
    let region = region();
    let f = family(region, "f", 60);
    f.series(b"old").unwrap().at(0).add(1);
    f.series(b"used").unwrap().at(0).add(1);
    // Each counts as a minute.
    (0..3).for_each(|_| region.sweep());
    f.series(b"used").unwrap().at(0).add(1);
    f.series(b"new").unwrap().at(0).add(1);
    // The first of them may have come right after it was looked up.
    assert_eq!(region.expire(Some(3 * MINUTE), |_, _| true), 0);
    assert_eq!(region.expire(None, |_, _| true), 0, "the family's time is an hour");
    assert_eq!(texts(region, "f"), ["new", "old", "used"]);
    assert_eq!(region.expire(Some(2 * MINUTE), |_, _| true), 1);
    assert_eq!(texts(region, "f"), ["new", "used"]);
    assert_eq!(region.expire(Some(2 * MINUTE), |_, _| true), 0);
}

#[test]
fn without_a_time_each_family_has_its_own_and_one_without_keeps_all() {
    let region = region();
    for (name, minutes) in [("short", 2), ("long", 30), ("never", 0)] {
        family(region, name, minutes).series(b"a").unwrap().at(0).add(1);
    }
    // As many as do not yet have the sweeps themselves remove it.
    (0..2).for_each(|_| region.sweep());
    let mut seen = Vec::new();
    region.expire(None, |name, minutes| {
        seen.push((String::from_utf8(name.to_vec()).unwrap(), minutes));
        true
    });
    seen.sort();
    let expected = [("long", 30), ("never", 0), ("short", 2)];
    assert_eq!(seen, expected.map(|(name, minutes)| (name.to_owned(), minutes)));
    (0..2).for_each(|_| region.sweep());
    region.expire(None, |_, _| true);
    assert_eq!([texts(region, "short").len(), texts(region, "long").len()], [0, 1]);
    assert_eq!(texts(region, "never"), ["a"]);
    // It is asked for by a time.
    assert_eq!(region.expire(Some(MINUTE), |name, _| name == b"never"), 1);
    assert_eq!([texts(region, "never").len(), texts(region, "long").len()], [0, 1]);
}

#[test]
fn permanent_kept_and_in_flight_series_do_not_expire() {
    let region = region();
    let f = family(region, "f", 60);
    f.permanent_series(b"lasting").unwrap().at(0).add(1);
    let kept = f.series(b"kept").unwrap().keep().unwrap().at(0);
    kept.add(1);
    f.series(b"idle").unwrap().at(0).add(1);
    let spec = FamilySpec {
        name: b"held",
        storage: Storage::Owned,
        idle_minutes: 60,
        ..FamilySpec::default()
    };
    let held = region.family(spec).unwrap().family;
    held.series(b"in flight").unwrap().at(0).add(1);
    held.series(b"done").unwrap().at(0).add(0);
    (0..5).for_each(|_| region.sweep());
    assert_eq!(region.expire(Some(MINUTE), |_, _| true), 2);
    assert_eq!(texts(region, "f"), ["kept", "lasting"]);
    assert_eq!(texts(region, "held"), ["in flight"]);
}

#[test]
fn an_expired_series_comes_back_from_zero_and_its_memory_is_reused() {
    let region = region();
    let f = family(region, "f", 60);
    for round in 0..20 {
        for n in 0..200 {
            let cell = f.series(format!("{n}").as_bytes()).unwrap().at(0);
            cell.add(1);
            assert_eq!(cell.get(), 1, "round {round}");
        }
        (0..2).for_each(|_| region.sweep());
        assert_eq!(region.expire(Some(MINUTE), |_, _| true), 200, "round {round}");
    }
    // A record has 64 bytes.
    let reached = region.usage().records.reached / 64;
    assert!((200..400).contains(&reached), "{reached} records");
}
