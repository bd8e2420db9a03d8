//! Claims about series that are removed, and the reuse of their memory. `TALEA_TURNOVER` sets how
//! many label sets the longest of them brings; 300,000 by default.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
#[cfg(target_os = "linux")]
use std::time::Duration;

#[cfg(target_os = "linux")]
use crate::support::calls::cpu_time;
use crate::support::region::{family, records, region, series, shown, sweep};
use talea_region::{Config, Family, FamilySpec, Region, Storage, Usage};

fn spec() -> FamilySpec<'static> {
    FamilySpec { limit: 2000, idle_minutes: 1, ..FamilySpec::default() }
}

/// A region with a family whose series are idle after a minute.
fn with_family(spec: FamilySpec<'_>) -> (&'static Region, Family) {
    let region = region(4 << 20);
    (region, family(region, "f", spec))
}

fn values(region: &'static Region, family: &str) -> HashMap<Vec<u8>, u64> {
    let snapshot = region.snapshot();
    series(&snapshot, family).iter().map(|s| (s.text.to_vec(), s.values[0])).collect()
}

/// How often; under Miri a two-hundredth.
const fn times(n: u64) -> u64 {
    if cfg!(miri) { n / 200 } else { n }
}

/// Random enough, and the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn text(&mut self) -> Vec<u8> {
        let len = 1 + self.below(200);
        (0..len).map(|_| b'a' + self.below(26) as u8).collect()
    }
}

#[test]
fn a_removed_series_is_gone_and_starts_anew() {
    let (region, family) = with_family(spec());
    family.series(b"a").unwrap().at(0).add(5);
    family.series(b"b").unwrap().at(0).add(7);
    assert!(family.remove(b"a"));
    assert!(!family.remove(b"a") && !family.remove(b"c"));
    assert_eq!(shown(region, "f"), ["b=7"]);
    family.series(b"a").unwrap().at(0).add(1);
    assert_eq!(shown(region, "f"), ["a=1", "b=7"]);
}

#[test]
fn a_removed_series_makes_room_under_the_limit() {
    let (_, family) = with_family(FamilySpec { limit: 2, ..spec() });
    family.series(b"a").unwrap();
    family.series(b"b").unwrap();
    assert!(family.series(b"c").is_err());
    assert!(family.remove(b"a"));
    family.series(b"c").unwrap();
    assert!(family.series(b"a").is_err());
}

#[test]
fn series_of_every_storage_come_back_as_zero() {
    let region = region(4 << 20);
    for storage in [Storage::Single, Storage::Striped, Storage::Owned, Storage::Stripes] {
        let name = format!("{storage:?}");
        let family = family(region, &name, FamilySpec { storage, cells: 3, ..spec() });
        for round in 0..times(200).max(10) {
            let text = round.to_le_bytes();
            let series = family.series(&text).unwrap();
            for cell in 0..3 {
                assert_eq!(series.at(cell).get(), 0, "{name} {round}");
                series.at(cell).add(u64::MAX / 7);
            }
            drop(series);
            assert!(family.remove(&text));
        }
        region.sweep();
    }
    // Four overflow nowhere: the memory in use is that of a few rounds.
    assert_eq!(records(region), 0);
    assert!(region.usage().striped_cells.reached < 100 * 3 * 8);
}

#[test]
fn an_idle_series_goes_and_one_that_is_looked_up_stays() {
    let (region, family) = with_family(FamilySpec { idle_minutes: 3, ..spec() });
    family.series(b"idle").unwrap().at(0).add(1);
    for _ in 0..10 {
        family.series(b"busy").unwrap().at(0).add(1);
        region.sweep();
    }
    assert_eq!(shown(region, "f"), ["busy=10"]);
    sweep(region, 2);
    assert_eq!(values(region, "f").len(), 1, "three sweeps must pass");
    region.sweep();
    assert!(shown(region, "f").is_empty());
    region.sweep();
    assert_eq!(records(region), 0);
}

#[test]
fn series_of_a_family_that_does_not_expire_stay_and_so_do_lasting_ones() {
    let region = region(4 << 20);
    let stays = family(region, "stays", FamilySpec { idle_minutes: 0, ..spec() });
    let goes = family(region, "goes", spec());
    stays.series(b"a").unwrap().at(0).add(1);
    goes.permanent_series(b"b").unwrap().at(0).add(1);
    goes.series_beyond_limit(b"c").unwrap().at(0).add(1);
    sweep(region, 5);
    assert_eq!(values(region, "stays").len(), 1);
    assert_eq!(values(region, "goes").len(), 2);
    assert!(!goes.remove(b"b"), "somebody may hold it for good");
}

#[test]
fn a_look_up_that_is_under_way_holds_its_series() {
    let (region, family) = with_family(spec());
    let held = family.series(b"held").unwrap();
    held.at(0).add(1);
    for n in 0..times(2_000) {
        region.sweep();
        let text = n.to_le_bytes();
        family.series(&text).unwrap().at(0).add(1);
        family.remove(&text);
    }
    held.at(0).add(1);
    assert_eq!(shown(region, "f"), ["held=2"]);
    drop(held);
    sweep(region, 3);
    assert!(shown(region, "f").is_empty());
    assert_eq!(records(region), 0);
}

#[test]
fn a_series_removed_during_a_look_up_is_not_reused() {
    let (region, family) = with_family(spec());
    let held = family.series(b"held").unwrap();
    assert!(family.remove(b"held"));
    for n in 0..times(2_000) {
        family.series(&n.to_le_bytes()).unwrap();
        held.at(0).add(1);
        region.sweep();
    }
    assert!(values(region, "f").values().all(|&value| value == 0));
}

#[test]
fn a_kept_series_is_hidden_while_idle_and_comes_back_with_its_next_add() {
    let (region, family) = with_family(FamilySpec { accumulates: true, ..spec() });
    let kept = family.series(b"kept").unwrap().keep().unwrap();
    kept.at(0).add(3);
    sweep(region, 4);
    assert!(shown(region, "f").is_empty());
    kept.at(0).add(1);
    assert_eq!(shown(region, "f"), ["kept=4"]);
    region.sweep();
    assert_eq!(values(region, "f").len(), 1);
    sweep(region, 4);
    assert!(shown(region, "f").is_empty());
    // A look-up finds the same.
    family.series(b"kept").unwrap().at(0).add(1);
    assert_eq!(kept.at(0).get(), 5);
    assert_eq!(values(region, "f").len(), 1);
}

#[test]
fn a_kept_gauge_is_shown_however_long_it_stands_still() {
    let (region, family) = with_family(FamilySpec { accumulates: false, ..spec() });
    family.series(b"kept").unwrap().keep().unwrap().at(0).set(3);
    sweep(region, 5);
    assert_eq!(values(region, "f").len(), 1);
}

#[test]
fn values_in_flight_do_not_expire() {
    let (region, family) = with_family(FamilySpec { storage: Storage::Owned, ..spec() });
    family.series(b"a").unwrap().at(0).add(1);
    sweep(region, 5);
    assert_eq!(shown(region, "f"), ["a=1"]);
    family.series(b"a").unwrap().at(0).add(1_u64.wrapping_neg());
    sweep(region, 3);
    assert!(shown(region, "f").is_empty());
}

/// A hundred times over, every one of 2,000 series is replaced by another.
fn turn_over(next: impl Fn(u64, &mut Random) -> u64) -> (Usage, u64) {
    let (region, family) = with_family(spec());
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut live: Vec<Vec<u8>> = Vec::new();
    for n in 0..200_000 {
        let text = random.text();
        if live.len() < 2_000 {
            family.series(&text).unwrap().at(0).add(1);
            live.push(text);
            continue;
        }
        let at = next(n, &mut random) as usize;
        // Two random texts of a byte or two can be the same.
        family.remove(&live[at]);
        family.series(&text).unwrap().at(0).add(1);
        live[at] = text;
    }
    let seen = values(region, "f");
    let mut distinct = live.clone();
    distinct.sort();
    distinct.dedup();
    assert!(seen.len() <= distinct.len() && seen.len() > 1_900, "{}", seen.len());
    let bytes = seen.keys().map(|text| text.len() as u64).sum();
    (region.usage(), bytes)
}

#[test]
#[cfg_attr(miri, ignore = "it takes hours")]
fn label_space_comes_back() {
    type Next = fn(u64, &mut Random) -> u64;
    let orders: [(&str, Next); 2] =
        [("the oldest first", |n, _| n % 2_000), ("any", |_, random| random.below(2_000))];
    for (order, next) in orders {
        let (usage, bytes) = turn_over(next);
        let ratio = usage.text.reached as f64 / bytes as f64;
        println!(
            "{order}: {bytes} bytes of live text in {} of arena, {ratio:.3}; {} records",
            usage.text.reached,
            usage.records.reached / usage.record_len
        );
        assert!(ratio <= 1.25, "{order}: {usage:?}");
        assert!(usage.records.reached <= 2_200 * usage.record_len, "{order}: {usage:?}");
        assert!(usage.single_cells.reached <= 2_200 * 8, "{order}: {usage:?}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "it takes hours")]
fn label_space_comes_back_where_all_go_at_once() {
    let (region, family) = with_family(spec());
    let mut random = Random(7);
    for _ in 0..100 {
        let live: Vec<Vec<u8>> = (0..2_000).map(|_| random.text()).collect();
        for text in &live {
            family.series(text).unwrap();
        }
        let bytes: usize = values(region, "f").keys().map(Vec::len).sum();
        let reached = region.usage().text.reached;
        assert!(reached as f64 <= 1.25 * bytes as f64, "{reached} for {bytes}");
        for text in &live {
            family.remove(text);
        }
    }
}

/// Bytes that this process has in memory of the region in a file, and that the file
/// has.
#[cfg(target_os = "linux")]
fn memory(file: &std::path::Path) -> [u64; 2] {
    use std::os::unix::fs::MetadataExt;
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let file = std::fs::metadata(file).unwrap();
    // It had no name yet when it was mapped.
    let (_, mapping) = maps.split_once(&format!(" {} ", file.ino())).unwrap();
    let resident = mapping.lines().find_map(|line| line.strip_prefix("Rss:")).unwrap();
    let kilobytes: u64 = resident.trim().split(' ').next().unwrap().parse().unwrap();
    [kilobytes * 1024, file.blocks() * 512]
}

#[cfg(target_os = "linux")]
#[test]
fn label_sets_without_end_leave_everything_flat() {
    let all: u64 = std::env::var("TALEA_TURNOVER").map_or(300_000, |n| n.parse().unwrap());
    const LIVE: u64 = 2_000;
    let shm = crate::support::tmpfs::Shm::new("flat");
    let region = Region::open(shm.file(), Config::with_len(4 << 20)).unwrap().region;
    let family = family(region, "f", spec());
    let text = |n: u64| format!("user=\"{n}\",session=\"{:x}\"", n.wrapping_mul(0x9E37_79B9));
    let mut times = Vec::new();
    let mut seen = Vec::new();
    let mut began = cpu_time();
    for n in 0..all {
        if n >= LIVE {
            assert!(family.remove(text(n - LIVE).as_bytes()));
        }
        family.series(text(n).as_bytes()).unwrap().at(0).add(n);
        if (n + 1) % (all / 10) == 0 {
            times.push(cpu_time() - began);
            let usage = region.usage();
            let [records, text, cells] =
                [usage.records, usage.text, usage.single_cells].map(|part| part.reached);
            let [resident, file] = memory(&shm.file());
            seen.push([records, text, cells, resident, file]);
            began = cpu_time();
        }
    }
    let nanos = |time: &Duration| time.as_nanos() as u64 / (all / 10);
    println!(
        "{} ns a removal and an insert at first, {} at last; bytes of records, text, cells, \
         resident memory and file: {:?} at first, {:?} at last",
        nanos(&times[1]),
        nanos(&times[9]),
        seen[1],
        seen[9]
    );
    assert!(
        seen[1].iter().zip(seen[9]).all(|(early, late)| late <= early + early / 10),
        "{seen:?}"
    );
    // The least of each half: the machine's caches are shared with other programs.
    let [early, late] = [&times[1..5], &times[5..]].map(|half| half.iter().min());
    assert!(late < early.map(|early| *early * 3).as_ref(), "{times:?}");
    let seen = values(region, "f");
    assert_eq!(seen.len() as u64, LIVE);
    assert!((all - LIVE..all).all(|n| seen[text(n).as_bytes()] == n));
}

/// The values that a reader from outside sees of a series are its own, whatever is made and removed
/// while it reads.
#[cfg(target_os = "linux")]
#[test]
fn a_reader_outside_never_takes_one_series_for_another() {
    let shm = crate::support::tmpfs::Shm::new("mixed");
    let region = Region::open(shm.file(), Config::with_len(2 << 20)).unwrap().region;
    let family = family(region, "f", FamilySpec { cells: 3, ..spec() });
    let done = AtomicBool::new(false);
    let text = |n: u64| format!("{n}{}", "x".repeat((n % 60) as usize));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for n in 1..200_000 {
                let series = family.series(text(n).as_bytes()).unwrap();
                (0..3).for_each(|cell| series.at(cell).add(n));
                drop(series);
                family.remove(text(n.saturating_sub(100)).as_bytes());
            }
            done.store(true, Relaxed);
        });
        let reader = talea_region::Reader::open(shm.file()).unwrap();
        let (mut snapshots, mut series) = (0_u64, 0_u64);
        while !done.load(Relaxed) {
            let snapshot = reader.snapshot().unwrap();
            snapshots += 1;
            for seen in snapshot.series(&snapshot.families()[0]) {
                let text = std::str::from_utf8(seen.text).unwrap();
                let n: u64 = text.trim_end_matches('x').parse().unwrap();
                assert!(seen.values.iter().all(|&value| value == n || value == 0), "{seen:?}");
                series += 1;
            }
        }
        writer.join().unwrap();
        assert!(series > 100, "{series} series in {snapshots} snapshots");
    });
}

#[test]
fn nothing_is_lost_or_misplaced_while_series_come_and_go_under_many_threads() {
    // Room for memory that cannot be reused while one of the threads is not scheduled.
    let config = Config { series: 32_768, ..Config::with_len(32 << 20) };
    let region = Region::anonymous(config).unwrap();
    // Texts that are never removed, and texts that are removed when they are idle.
    let lasting = family(region, "lasting", FamilySpec { idle_minutes: 0, ..spec() });
    let passing = family(region, "passing", spec());
    let done = AtomicBool::new(false);
    let added = AtomicU64::new(0);
    let removed = AtomicU64::new(0);
    let text_of = |name: u64| format!("{}{name}", "x".repeat((name % 90) as usize));
    let add = |family: Family, name| {
        family.series(text_of(name).as_bytes()).unwrap().at(0).add(1);
    };
    std::thread::scope(|scope| {
        for seed in 1..=3 {
            let (done, added, removed) = (&done, &added, &removed);
            scope.spawn(move || {
                let mut random = Random(seed);
                for _ in 0..times(100_000) {
                    add(lasting, random.below(50));
                    added.fetch_add(1, Relaxed);
                    let name = random.below(400);
                    add(passing, name);
                    if random.below(4) == 0 {
                        let is_removed = passing.remove(text_of(name).as_bytes());
                        removed.fetch_add(u64::from(is_removed), Relaxed);
                    }
                }
                done.store(true, Relaxed);
            });
        }
        scope.spawn(|| {
            while !done.load(Relaxed) {
                region.sweep();
                for (text, _) in values(region, "passing") {
                    let name: u64 =
                        String::from_utf8(text).unwrap().replace('x', "").parse().unwrap();
                    assert!(name < 400);
                }
            }
        });
    });
    assert!(removed.load(Relaxed) > times(10_000));
    assert_eq!(values(region, "lasting").values().sum::<u64>(), added.load(Relaxed));
    sweep(region, 4);
    assert!(shown(region, "passing").is_empty());
    assert_eq!(records(region), 50);
}

#[test]
fn a_series_that_is_looked_up_in_every_sweep_never_goes() {
    let (region, family) = with_family(spec());
    let add = |sweep_every: u64| {
        for n in 0..times(100_000) {
            family.series(b"busy").unwrap().at(0).add(1);
            if n % 16 == 0 {
                family.series(&(n % 1_000).to_le_bytes()).unwrap().at(0).add(1);
            }
            if n % sweep_every == sweep_every - 1 {
                region.sweep();
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| add(times(1_000).max(20)));
        scope.spawn(|| add(u64::MAX));
    });
    assert_eq!(values(region, "f")[&b"busy"[..]], 2 * times(100_000));
}
