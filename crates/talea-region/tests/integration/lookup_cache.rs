//! Claims about lookup caches: a cached look-up never finds another series than a look-up by text.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::support::region::{self, records, region, series, sweep};
use talea_region::{Config, Family, FamilySpec, Key, LookupCache, Region, SeriesGuard};

fn family(region: &'static Region) -> Family {
    let spec = FamilySpec { limit: 2000, idle_minutes: 1, ..FamilySpec::default() };
    region::family(region, "f", spec)
}

fn cached() -> (&'static Region, Family, LookupCache) {
    let region = region(4 << 20);
    let family = family(region);
    (region, family, LookupCache::of(family))
}

fn key(n: u64) -> Key {
    Key::new(n as u16, 1, 0, [n, 0, 0])
}

fn text(n: u64) -> Vec<u8> {
    format!("n=\"{n}\"").into_bytes()
}

fn look_up(cache: &LookupCache, n: u64) -> SeriesGuard {
    look_up_by(cache, key(n), &text(n))
}

fn look_up_by(cache: &LookupCache, key: Key, text: &[u8]) -> SeriesGuard {
    cache.get(key).unwrap_or_else(|miss| miss.get_or_insert(text).unwrap())
}

fn add(cache: &LookupCache, n: u64, amount: u64) {
    look_up(cache, n).at(0).add(amount);
}

fn is_remembered(cache: &LookupCache, n: u64) -> bool {
    cache.get(key(n)).is_ok()
}

/// Looks a series up until it is remembered.
fn remember(cache: &LookupCache, n: u64) {
    for _ in 0..3 {
        add(cache, n, 1);
    }
    assert!(is_remembered(cache, n));
}

/// The value that is shown of a series.
fn value(region: &'static Region, n: u64) -> Option<u64> {
    let snapshot = region.snapshot();
    let all = series(&snapshot, "f");
    all.iter().find(|series| series.text == text(n)).map(|series| series.values[0])
}

fn value_of(cache: &LookupCache, n: u64) -> u64 {
    look_up(cache, n).at(0).get()
}

#[test]
fn a_series_is_remembered_once_it_is_found_and_not_when_it_is_made() {
    let (_, _, cache) = cached();
    add(&cache, 1, 1);
    assert!(!is_remembered(&cache, 1), "many are made and never looked up again");
    add(&cache, 2, 1);
    add(&cache, 1, 1);
    add(&cache, 1, 1);
    assert!(is_remembered(&cache, 1));
    assert_eq!(look_up(&cache, 1).at(0).get(), 3);
}

#[test]
fn after_a_removal_a_cache_finds_the_others_alone() {
    let (region, family, cache) = cached();
    remember(&cache, 1);
    remember(&cache, 2);
    assert!(family.remove(&text(1)));
    assert!(!is_remembered(&cache, 1));
    assert!(is_remembered(&cache, 2), "found again by its record");
    add(&cache, 1, 7);
    add(&cache, 2, 1);
    assert_eq!((value(region, 1), value(region, 2)), (Some(7), Some(4)));
}

#[test]
fn a_series_whose_record_is_used_again_or_that_expired_is_not_found_by_a_memo() {
    type End = fn(&'static Region, Family);
    let ends: [(&str, End); 2] = [
        ("removed", |region, family| {
            assert!(family.remove(&text(1)));
            region.sweep();
        }),
        ("expired", |region, _| sweep(region, 4)),
    ];
    for (end, end_series) in ends {
        let (region, family, cache) = cached();
        remember(&cache, 1);
        end_series(region, family);
        assert_eq!((value(region, 1), records(region)), (None, 0), "{end}");
        family.series(&text(2)).unwrap().at(0).add(10);
        assert!(!is_remembered(&cache, 1), "{end}");
        add(&cache, 1, 1);
        assert_eq!((value(region, 1), value(region, 2)), (Some(1), Some(10)), "{end}");
    }
}

#[test]
fn a_series_that_is_only_looked_up_by_a_memo_does_not_expire() {
    let (region, _, cache) = cached();
    remember(&cache, 1);
    for _ in 0..10 {
        region.sweep();
        assert!(is_remembered(&cache, 1));
    }
    assert_eq!(value(region, 1), Some(3));
}

#[test]
fn a_wiped_series_and_one_of_a_family_that_ended_count_anew() {
    let (region, f, cache) = cached();
    remember(&cache, 1);
    assert!(f.wipe());
    add(&cache, 1, 5);
    assert_eq!(value(region, 1), Some(5));
    remember(&cache, 1);
    assert_eq!(f.remove_where(|_| true), 1);
    assert!(!is_remembered(&cache, 1));
    remember(&cache, 1);
    assert!(region.end_families(b"f"));
    add(&cache, 1, 5);
    assert_eq!(value(region, 1), None, "it goes nowhere");
    family(region);
    assert_eq!(value(region, 1).unwrap_or(0), 0, "what came between does not count");
    add(&cache, 1, 6);
    assert_eq!(value(region, 1), Some(6));
}

#[test]
fn a_series_that_is_kept_is_the_same_after_it_was_removed() {
    let (region, family, cache) = cached();
    remember(&cache, 1);
    let kept = look_up(&cache, 1).keep().unwrap();
    assert!(family.remove(&text(1)));
    add(&cache, 1, 4);
    kept.at(0).add(1);
    assert_eq!(kept.at(0).get(), 5);
    region.sweep();
    assert_eq!(value(region, 1), Some(5));
}

#[test]
fn keys_that_share_places_keep_their_own_series() {
    let (_, _, cache) = cached();
    // Until the cache has grown, they are many more than it has places.
    for round in 0..5 {
        for n in 0..2000 {
            add(&cache, n, n + round);
        }
    }
    for n in 0..2000 {
        assert_eq!(value_of(&cache, n), 5 * n + 10);
    }
    let remembered = (0..2000).filter(|&n| is_remembered(&cache, n)).count();
    assert!(remembered > 1900, "{remembered}");
}

/// Keys of some texts that each have so many fixed combinations.
fn rows(texts: u64, combinations: u16) -> impl Iterator<Item = (Key, Vec<u8>, u64)> {
    (0..texts).flat_map(move |n| {
        (0..combinations).map(move |number| {
            let amount = n * u64::from(combinations) + u64::from(number) + 1;
            let text = format!("n=\"{n}\",number=\"{number}\"").into_bytes();
            (Key::new(number, u32::from(combinations), 7, [n, n, n]), text, amount)
        })
    })
}

#[test]
fn keys_that_differ_in_their_number_alone_keep_their_own_series() {
    for combinations in [1, 2, 3, 18, 64, 65, 200] {
        let (_, _, cache) = cached();
        let texts = 1600 / u64::from(combinations);
        for _ in 0..5 {
            for (key, text, amount) in rows(texts, combinations) {
                look_up_by(&cache, key, &text).at(0).add(amount);
            }
        }
        let remembered = rows(texts, combinations).filter(|(key, ..)| cache.get(*key).is_ok());
        let (remembered, all) = (remembered.count() as u64, texts * u64::from(combinations));
        assert!(remembered > all * 9 / 10, "{remembered} of {all}");
        for (key, text, amount) in rows(texts, combinations) {
            assert_eq!(look_up_by(&cache, key, &text).at(0).get(), 5 * amount);
        }
    }
}

#[test]
fn removed_series_are_not_found_once_their_neighbours_were_checked() {
    let (_, family, cache) = cached();
    let all: Vec<_> = rows(1, 3).collect();
    for _ in 0..3 {
        for (key, text, _) in &all {
            look_up_by(&cache, *key, text).at(0).add(1);
        }
    }
    assert!(all.iter().all(|(key, ..)| cache.get(*key).is_ok()));
    let [(first, ..), (second, text, _), (third, ..)] = &all[..] else { unreachable!() };
    assert!(family.remove(text));
    for _ in 0..2 {
        assert_eq!(cache.get(*first).unwrap().at(0).get(), 3);
        assert!(cache.get(*second).is_err(), "it was removed");
        assert_eq!(cache.get(*third).unwrap().at(0).get(), 3);
    }
    assert_eq!(look_up_by(&cache, *second, text).at(0).get(), 0);
}

#[test]
fn a_number_beyond_its_combinations_is_looked_up_by_its_text() {
    let (_, _, cache) = cached();
    let key = |number| Key::new(number, 3, 0, [1, 0, 0]);
    for _ in 0..3 {
        for number in 0..5 {
            look_up_by(&cache, key(number), &text(number.into())).at(0).add(1);
        }
    }
    assert!((0..3).all(|number| cache.get(key(number)).is_ok()));
    assert!((3..5).all(|number| cache.get(key(number)).is_err()));
}

/// Each thread has a label set that no other thread adds to or removes, and reuses memory that
/// others have just freed.
#[test]
fn additions_after_a_removal_are_all_in_the_new_series_whatever_others_remove() {
    // Room for all that are ever made: a thread that is not let run may hold up their reuse.
    let config = Config { series: 16_384, ..Config::with_len(16 << 20) };
    let region = Region::anonymous(config).unwrap();
    // None is idle, however seldom its thread is let run.
    let family = region::family(region, "f", FamilySpec::default());
    let cache = &LookupCache::of(family);
    let rounds = if cfg!(miri) { 5 } else { 3_000 };
    let done = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while !done.load(Relaxed) {
                region.sweep();
                std::thread::yield_now();
            }
        });
        // A series that no thread removes and all add to.
        family.series(&text(0)).unwrap().keep().unwrap();
        let own: Vec<_> = (1..=4)
            .map(|n| {
                scope.spawn(move || {
                    for round in 1..=rounds {
                        for _ in 0..round % 7 {
                            add(cache, n, 1);
                            add(cache, 0, 1);
                        }
                        let expected = round % 7;
                        let counted = look_up(cache, n).at(0).get();
                        assert_eq!(counted, expected, "series {n}, round {round}");
                        assert!(family.remove(&text(n)));
                    }
                })
            })
            .collect();
        let ended: Vec<_> = own.into_iter().map(|thread| thread.join()).collect();
        done.store(true, Relaxed);
        ended.into_iter().for_each(|ended| ended.unwrap());
    });
    let all: u64 = (1..=rounds).map(|round| round % 7).sum();
    assert_eq!(value_of(cache, 0), 4 * all);
}

#[cfg(target_os = "linux")]
#[test]
fn a_child_uses_what_its_parent_remembered_and_sees_what_its_parent_removes() {
    let (region, family, cache) = cached();
    remember(&cache, 1);
    remember(&cache, 2);
    let [mut ready, mut heard] = [[0; 2]; 2];
    // SAFETY: both have room for two descriptors.
    unsafe {
        assert_eq!((libc::pipe(ready.as_mut_ptr()), libc::pipe(heard.as_mut_ptr())), (0, 0));
    }
    let mut byte = 0_u8;
    let byte = (&raw mut byte).cast::<libc::c_void>();
    // SAFETY: the child adds to cells, reads and writes pipes, and ends.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let as_expected = is_remembered(&cache, 1);
        add(&cache, 1, 10);
        // SAFETY: one byte each, from and to a byte of this function.
        unsafe {
            libc::write(heard[1], byte, 1);
            libc::read(ready[0], byte, 1);
        }
        let gone = !is_remembered(&cache, 1) && is_remembered(&cache, 2);
        add(&cache, 1, 100);
        add(&cache, 2, 100);
        // SAFETY: it ends the child at once.
        unsafe { libc::_exit(i32::from(!(as_expected && gone))) };
    }
    let mut status = -1;
    // SAFETY: as above; the child is ours.
    unsafe {
        assert_eq!(libc::read(heard[0], byte, 1), 1);
        assert_eq!(value(region, 1), Some(13));
        assert!(family.remove(&text(1)));
        assert_eq!(libc::write(ready[1], byte, 1), 1);
        assert_eq!(libc::waitpid(pid, &mut status, 0), pid);
    }
    assert_eq!(status, 0);
    assert_eq!((value(region, 1), value(region, 2)), (Some(100), Some(103)));
}
