//! Claims about series that are removed on demand because they were idle for long enough.

use std::time::Duration;

use crate::support::region::{self, region, shown, sweep};
use talea_region::{Family, FamilySpec, Region, Storage};

const MINUTE: Duration = Duration::from_secs(60);

fn family(region: &'static Region, name: &str, idle_minutes: u32) -> Family {
    region::family(region, name, FamilySpec { idle_minutes, ..FamilySpec::default() })
}

#[test]
fn idle_series_expire_and_series_looked_up_since_stay() {
    let region = region(2 << 20);
    let f = family(region, "f", 60);
    f.series(b"old").unwrap().at(0).add(1);
    f.series(b"used").unwrap().at(0).add(1);
    // Each counts as a minute.
    sweep(region, 3);
    f.series(b"used").unwrap().at(0).add(1);
    f.series(b"new").unwrap().at(0).add(1);
    // The first of them may have come right after it was looked up.
    assert_eq!(region.expire(Some(3 * MINUTE), |_, _| true), 0);
    assert_eq!(region.expire(None, |_, _| true), 0, "the family's time is an hour");
    assert_eq!(shown(region, "f"), ["new=1", "old=1", "used=2"]);
    assert_eq!(region.expire(Some(2 * MINUTE), |_, _| true), 1);
    assert_eq!(shown(region, "f"), ["new=1", "used=2"]);
    assert_eq!(region.expire(Some(2 * MINUTE), |_, _| true), 0);
}

#[test]
fn without_a_time_each_family_has_its_own_and_one_without_keeps_all() {
    let region = region(2 << 20);
    for (name, minutes) in [("short", 2), ("long", 30), ("never", 0)] {
        family(region, name, minutes).series(b"a").unwrap().at(0).add(1);
    }
    // As many as do not yet have the sweeps themselves remove it.
    sweep(region, 2);
    let mut seen = Vec::new();
    region.expire(None, |name, minutes| {
        seen.push(format!("{}: {minutes}", String::from_utf8_lossy(name)));
        true
    });
    seen.sort();
    assert_eq!(seen, ["long: 30", "never: 0", "short: 2"]);
    sweep(region, 2);
    region.expire(None, |_, _| true);
    let all = || ["short", "long", "never"].map(|name| shown(region, name).len());
    assert_eq!(all(), [0, 1, 1]);
    // It is asked for by a time.
    assert_eq!(region.expire(Some(MINUTE), |name, _| name == b"never"), 1);
    assert_eq!(all(), [0, 1, 0]);
}

#[test]
fn permanent_kept_and_in_flight_series_do_not_expire() {
    let region = region(2 << 20);
    let f = family(region, "f", 60);
    f.permanent_series(b"lasting").unwrap().at(0).add(1);
    let kept = f.series(b"kept").unwrap().keep().unwrap().at(0);
    kept.add(1);
    f.series(b"idle").unwrap().at(0).add(1);
    let spec = FamilySpec { storage: Storage::Owned, idle_minutes: 60, ..FamilySpec::default() };
    let held = region::family(region, "held", spec);
    held.series(b"in flight").unwrap().at(0).add(1);
    held.series(b"done").unwrap().at(0).add(0);
    sweep(region, 5);
    assert_eq!(region.expire(Some(MINUTE), |_, _| true), 2);
    assert_eq!(shown(region, "f"), ["kept=1", "lasting=1"]);
    assert_eq!(shown(region, "held"), ["in flight=1"]);
}

#[test]
fn an_expired_series_comes_back_from_zero_and_its_memory_is_reused() {
    let region = region(2 << 20);
    let f = family(region, "f", 60);
    for round in 0..20 {
        for n in 0..200 {
            let cell = f.series(format!("{n}").as_bytes()).unwrap().at(0);
            cell.add(1);
            assert_eq!(cell.get(), 1, "round {round}");
        }
        sweep(region, 2);
        assert_eq!(region.expire(Some(MINUTE), |_, _| true), 200, "round {round}");
    }
    let usage = region.usage();
    let reached = usage.records.reached / usage.record_len;
    assert!((200..400).contains(&reached), "{reached} records");
}

#[cfg(target_os = "linux")]
#[test]
fn a_hidden_series_of_a_process_that_ended_goes_and_does_not_count() {
    let shm = crate::support::tmpfs::Shm::new("expires");
    let [(region, f), (ending, g)] = [(); 2].map(|()| {
        let region = region::open(shm.file());
        (region, family(region, "f", 60))
    });
    for n in 0..5 {
        let text = format!("n=\"{n}\"");
        g.series(text.as_bytes()).unwrap().keep().unwrap();
        assert!(f.remove(text.as_bytes()));
    }
    f.series(b"shown").unwrap().at(0).add(1);
    sweep(region, 3);
    ending.close(false);
    assert_eq!(region.expire(Some(2 * MINUTE), |_, _| true), 1);
    sweep(region, 2);
    assert_eq!(region.usage().records.taken, 0);
}
