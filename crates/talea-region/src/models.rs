//! Claims that a model checker tries against every order of events: publication,
//! removal, expiry and reuse, by the code that ships, in a region of a few words.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p talea-region --lib` runs them.
//! `LOOM_MAX_PREEMPTIONS` bounds how often a thread is interrupted.

mod pools;

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use loom::thread;

use crate::config::Config;
use crate::hash::hash;
use crate::layout::*;
use crate::lookup::cache::{Key, LookupCache};
use crate::lookup::register::FamilySpec;
use crate::lookup::series::SeriesGuard;
use crate::memory::mapping::Mapping;
use crate::memory::restartable::MODEL_CPU;
use crate::region::Region;
use crate::series::cell::{Cell, Cells};
use crate::series::family::Family;
use crate::series::record::Head;
use crate::threads::MODEL_THREAD;
use crate::values::Storage;

const LEN: u64 = 16 * PAGE;

/// Runs a model, with a fresh region for every order of events.
fn check(model: impl Fn(&'static Region, Family) + Send + Sync + 'static) {
    check_by(LEN, None, 1, idle_soon(), model);
}

/// Runs a model with one interruption fewer than the others: with as many it takes most of a minute.
fn check_longest(model: impl Fn(&'static Region, Family) + Send + Sync + 'static) {
    let most = std::env::var("LOOM_MAX_PREEMPTIONS").ok().and_then(|most| most.parse().ok());
    check_by(
        LEN,
        Some(most.map_or(1, |most: usize| most.saturating_sub(1))),
        1,
        idle_soon(),
        model,
    );
}

/// Runs a model with at most one interruption, if more take many minutes.
fn check_briefly(model: impl Fn(&'static Region, Family) + Send + Sync + 'static) {
    check_by(LEN, Some(1), 1, idle_soon(), model);
}

/// Runs a model with a striped cell of a region with `planes` planes beside the shared one.
fn with_striped(planes: u64, preemptions: usize, model: impl Fn(Cell) + Send + Sync + 'static) {
    let spec = FamilySpec { storage: Storage::Striped, ..FamilySpec::default() };
    check_by(LEN, Some(preemptions), planes, spec, move |_, family| {
        model(family.permanent_series(b"a").unwrap().at(0));
    });
}

fn idle_soon() -> FamilySpec<'static> {
    FamilySpec { idle_minutes: 1, ..FamilySpec::default() }
}

fn check_by(
    len: u64,
    preemptions: Option<usize>,
    planes: u64,
    spec: FamilySpec<'static>,
    model: impl Fn(&'static Region, Family) + Send + Sync + 'static,
) {
    let config = Config { series: 4, planes, ..Config::with_len(len) };
    check_with(config, preemptions, spec, model);
}

fn check_with(
    config: Config,
    preemptions: Option<usize>,
    spec: FamilySpec<'static>,
    model: impl Fn(&'static Region, Family) + Send + Sync + 'static,
) {
    let mut checker = loom::model::Builder::new();
    checker.preemption_bound = preemptions.or(checker.preemption_bound);
    // Sweeps read a great many words; each read is an event.
    checker.max_branches = 20_000;
    let orders = Arc::new(AtomicU64::new(0));
    let counted = orders.clone();
    checker.check(move || {
        counted.fetch_add(1, Relaxed);
        let region = Region::anonymous(config).unwrap();
        model(region, region.family(spec).unwrap().family);
        let region = std::ptr::from_ref(region).cast_mut();
        // SAFETY: the model has joined its threads, and no other thread has the region.
        unsafe { free(Box::from_raw(region)) };
    });
    println!("{} orders of events", orders.load(Relaxed));
}

/// A process never gives a region back; the checker makes too many.
unsafe fn free(region: Box<Region>) {
    let words = region.memory.map.words(0, region.memory.map.len() / WORD).unwrap();
    let (first, len) = (words.as_ptr().cast_mut(), words.len());
    let region = ManuallyDrop::new(*region);
    let _: &Mapping = &region.memory.map;
    // SAFETY: the words were leaked from a vector of this length.
    drop(unsafe { Vec::from_raw_parts(first, len, len) });
}

fn spawn(number: u64, work: impl FnOnce() + 'static) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        MODEL_THREAD.with(|own| own.set(number));
        work();
    })
}

/// Does something in a thread of its own beside something else.
fn beside(other: impl FnOnce() + 'static, own: impl FnOnce()) {
    let other = spawn(1, other);
    own();
    other.join().unwrap();
}

fn add(family: Family, text: &[u8], n: u64) {
    family.series(text).unwrap().at(0).add(n);
}

/// A cache of a model, which gives its memory back.
struct Remembering(LookupCache);

impl Remembering {
    fn of(family: Family) -> Self {
        let cache = LookupCache::of(family);
        // The checker does not know that a table is whole when another thread finds it.
        assert!(cache.table_for(2).is_some());
        Self(cache)
    }

    /// `a` by its key.
    fn find(&self) -> SeriesGuard {
        self.find_by(Self::KEY, b"a")
    }

    const KEY: Key = Key::new(1, 2, 0, [1, 0, 0]);

    fn find_by(&self, key: Key, text: &[u8]) -> SeriesGuard {
        self.0.get(key).unwrap_or_else(|miss| miss.get_or_insert(text).unwrap())
    }

    fn add(&self, n: u64) {
        self.find().at(0).add(n);
    }

    /// Two keys of one entry, which may take that of `a`.
    fn rivals(&self) -> [Key; 2] {
        let table = self.0.table_for(2).unwrap();
        let first = |key: &Key| table.first(&table.parts(key));
        let mut others = (2..).map(|n| [0, 1].map(|number| Key::new(number, 2, 0, [n, 0, 0])));
        others.find(|[key, _]| first(key) == first(&Self::KEY)).unwrap()
    }
}

impl Drop for Remembering {
    fn drop(&mut self) {
        let Some(table) = self.0.table.get() else { return };
        for lines in [table.entries, table.rows, table.creations] {
            // SAFETY: they were leaked from a vector of this length, and this cache alone
            // has them.
            unsafe {
                drop(Vec::from_raw_parts(lines.as_ptr().cast_mut(), lines.len(), lines.len()));
            }
        }
    }
}

fn value(region: &'static Region, text: &[u8]) -> Option<u64> {
    let snapshot = region.snapshot();
    let family = &snapshot.families()[0];
    let mut found = snapshot.series(family).filter(|series| series.text == text);
    let value = found.next().map(|series| series.values[0]);
    assert!(found.next().is_none(), "a series is there twice");
    value
}

fn records(region: &'static Region) -> u64 {
    region.usage().records.taken / RECORD_LEN
}

/// Texts that share a bucket.
fn neighbours<const N: usize>(region: &'static Region, family: Family) -> [[u8; 1]; N] {
    let bucket = |text: u8| {
        hash(region.seed, u64::from(family.id), &[text]) % region.memory.sections.index_len
    };
    let mut found = (0..=u8::MAX).filter(|&text| bucket(text) == bucket(0));
    std::array::from_fn(|_| [found.next().unwrap()])
}

#[test]
fn two_that_bring_the_same_labels_get_one_series() {
    check_longest(|region, family| {
        beside(move || add(family, b"a", 1), || add(family, b"a", 2));
        assert_eq!(value(region, b"a"), Some(3));
        assert_eq!(records(region), 1);
    });
}

#[test]
fn a_record_that_a_sweep_finds_while_it_is_taken_counts_as_taken() {
    check(|region, family| {
        // The record is in the part that sweeps look at.
        add(family, b"a", 1);
        assert!(family.remove(b"a"));
        region.sweep();
        assert_eq!(records(region), 0);
        beside(move || region.sweep_chunk(&region.memory.enter(), 0), || add(family, b"b", 2));
        region.sweep_chunk(&region.memory.enter(), 0);
        assert_eq!((value(region, b"b"), records(region)), (Some(2), 1));
    });
}

#[test]
fn two_that_bring_labels_of_one_bucket_both_stay() {
    check(|region, family| {
        let [a, b] = neighbours(region, family);
        beside(move || add(family, &a, 1), || add(family, &b, 2));
        assert_eq!((value(region, &a), value(region, &b)), (Some(1), Some(2)));
    });
}

#[test]
fn neighbours_that_are_removed_at_once_take_no_other_series_with_them() {
    check_longest(|region, family| {
        let [a, b, c] = neighbours(region, family);
        for text in [&a, &b, &c] {
            add(family, text, 1);
        }
        // The chain begins with the latest.
        beside(move || assert!(family.remove(&c)), || assert!(family.remove(&b)));
        // Their records become free: no chain may lead through them any more. (Both may have noted
        // a stamp, which takes another round.)
        region.sweep();
        add(family, &a, 1);
        region.sweep();
        assert_eq!(records(region), 1);
        add(family, &a, 1);
        assert_eq!(value(region, &a), Some(3));
        assert_eq!((value(region, &b), value(region, &c)), (None, None));
    });
}

#[test]
fn a_look_up_beside_a_removal_finds_its_own_series_or_makes_one() {
    check(|region, family| {
        let [a, b] = neighbours(region, family);
        add(family, &a, 1);
        add(family, &b, 1);
        beside(move || assert!(family.remove(&b)), || add(family, &a, 1));
        assert_eq!(value(region, &a), Some(2));
    });
}

#[test]
fn an_add_beside_an_expiry_is_not_lost() {
    check(|region, family| {
        add(family, b"a", 1);
        let other = spawn(1, move || {
            region.sweep();
            // Now it is idle, unless a thread looked it up.
            region.sweep();
        });
        let looked = family.series(b"a").unwrap();
        looked.at(0).add(1);
        let value = value(region, b"a");
        assert!(matches!(value, Some(1 | 2)), "{value:?}");
        drop(looked);
        other.join().unwrap();
    });
}

#[test]
fn an_add_is_not_lost_where_one_begins_the_sweep_and_another_does_it() {
    check(|region, family| {
        add(family, b"a", 1);
        let beginner = spawn(1, move || {
            region.begin_sweep(1);
            region.begin_sweep(2);
        });
        let sweeper = spawn(2, move || region.sweep_chunk(&region.memory.enter(), 0));
        let looked = family.series(b"a").unwrap();
        looked.at(0).add(1);
        let value = value(region, b"a");
        assert!(matches!(value, Some(1 | 2)), "{value:?}");
        drop(looked);
        beginner.join().unwrap();
        sweeper.join().unwrap();
    });
}

#[test]
fn a_series_that_was_looked_up_is_not_reused() {
    check(|region, family| {
        add(family, b"a", 1);
        let other = spawn(1, move || {
            family.remove(b"a");
            region.sweep();
            add(family, b"b", 10);
        });
        // Made again, or found before it was removed; in either case not the cells of `b`.
        add(family, b"a", 1);
        other.join().unwrap();
        assert_eq!(value(region, b"b"), Some(10));
    });
}

#[test]
fn a_series_from_the_cache_is_not_reused() {
    check_briefly(|region, family| {
        let cache = Remembering::of(family);
        cache.add(1);
        cache.add(1);
        beside(
            move || {
                family.remove(b"a");
                region.sweep();
                add(family, b"b", 10);
            },
            || cache.add(1),
        );
        assert_eq!(value(region, b"b"), Some(10));
    });
}

#[test]
fn a_cache_filled_during_a_removal_does_not_find_the_removed_series() {
    check_briefly(|region, family| {
        let cache = Remembering::of(family);
        add(family, b"a", 1);
        let other = spawn(1, move || assert!(family.remove(b"a")));
        // It may find the series that is being removed, and must not cache it.
        cache.add(2);
        other.join().unwrap();
        let before = value(region, b"a").unwrap_or(0);
        cache.add(4);
        cache.add(8);
        assert_eq!(value(region, b"a"), Some(before + 12));
    });
}

#[test]
fn a_series_that_a_killed_remover_left_marked_goes_from_a_memo_with_the_next_removal() {
    check(|region, family| {
        let cache = Remembering::of(family);
        add(family, b"a", 1);
        beside(
            move || {
                // So far the one that is killed got.
                let marked = Head { removing: true, ..Head::unpack(0) }.pack(0);
                region.series(0).word(SERIES_HEAD).fetch_or(marked, Relaxed);
                assert!(region.series(0).remove(&region.memory.enter()));
            },
            || cache.add(2),
        );
        let before = value(region, b"a").unwrap_or(0);
        cache.add(4);
        assert_eq!(value(region, b"a"), Some(before + 4));
    });
}

#[test]
fn an_add_by_a_memo_beside_an_expiry_is_not_lost() {
    check(|region, family| {
        let cache = Remembering::of(family);
        cache.add(1);
        cache.add(1);
        let other = spawn(1, move || {
            region.sweep();
            region.sweep();
        });
        let looked = cache.find();
        looked.at(0).add(1);
        let value = value(region, b"a");
        assert!(matches!(value, Some(1 | 3)), "{value:?}");
        drop(looked);
        other.join().unwrap();
    });
}

#[test]
fn two_that_note_at_once_read_whole_notes() {
    check_briefly(|region, family| {
        let cache = Arc::new(Remembering::of(family));
        add(family, b"a", 1);
        let others = cache.clone();
        let other = spawn(1, move || others.add(1));
        cache.add(1);
        cache.add(1);
        other.join().unwrap();
        assert_eq!(value(region, b"a"), Some(4));
    });
}

#[test]
#[ignore = "most of a minute: make test-long runs it"]
fn a_cache_finds_the_right_series_while_another_takes_the_entry() {
    check_briefly(|region, family| {
        let cache = Arc::new(Remembering::of(family));
        let [b, c] = cache.rivals();
        add(family, b"b", 10);
        add(family, b"c", 100);
        cache.add(1);
        cache.add(1);
        // From now on the entry may be taken.
        region.begin_sweep(1);
        let others = cache.clone();
        // A thread that looks up an existing series, and so caches it.
        let other = spawn(2, move || {
            others.find_by(b, b"b").at(0).add(10);
            others.find_by(c, b"c").at(0).add(100);
        });
        cache.add(1);
        other.join().unwrap();
        cache.add(1);
        cache.find_by(b, b"b").at(0).add(10);
        cache.find_by(c, b"c").at(0).add(100);
        let values = [b"a", b"b", b"c"].map(|text| value(region, text));
        assert_eq!(values, [Some(4), Some(30), Some(300)]);
    });
}

#[test]
fn a_series_that_is_kept_does_not_expire() {
    check(|region, family| {
        add(family, b"a", 1);
        let other = spawn(1, move || {
            region.sweep();
            region.sweep();
        });
        let kept = family.series(b"a").unwrap().keep().unwrap();
        kept.at(0).add(1);
        other.join().unwrap();
        region.sweep();
        region.sweep();
        // Were it free, this would get its cells.
        add(family, b"b", 10);
        kept.at(0).add(1);
        let value = value(region, b"a");
        assert!(matches!(value, Some(2 | 3)), "{value:?}");
    });
}

#[test]
fn two_that_wipe_at_once_take_nothing_away_twice() {
    check(|region, family| {
        let cell = family.permanent_series(b"a").unwrap().at(0);
        cell.add(5);
        let other = spawn(1, move || {
            let _guard = region.memory.enter();
            assert!(region.series(0).reset());
            cell.add(3);
            assert!(cell.get() <= 3, "what came after its own wiping is what is left");
        });
        {
            let _guard = region.memory.enter();
            assert!(region.series(0).reset());
            assert!(cell.get() <= 3);
        }
        other.join().unwrap();
        let left = cell.get();
        assert!(left == 3 || left == 0, "{left}");
        cell.add(2);
        assert_eq!(value(region, b"a"), Some(left + 2));
        let singles = region.usage().single_cells.taken / WORD;
        assert_eq!(singles, 1 + EXTENSION_REST + 1, "the cell, and one base");
    });
}

#[test]
fn two_that_make_a_segment_at_once_count_in_one() {
    check(|region, _| {
        let spec = FamilySpec { name: b"s", segments: 2, ..FamilySpec::default() };
        let cells = region.family(spec).unwrap().family.permanent_series(b"a").unwrap();
        let before = region.usage().single_cells.taken;
        let count = move |n: u64| {
            let segments = cells.segments().unwrap();
            let segment = segments.get(1).or_else(|| segments.make(1, 2, 3)).unwrap();
            segments.cell(segment, 1).unwrap().count(cells.at(0), n);
        };
        beside(move || count(1), || count(2));
        let snapshot = region.snapshot();
        let series = snapshot.series(&snapshot.families()[1]).next().unwrap();
        let found: Vec<_> = series.segments().map(|s| (s.n, s.tag, s.values.to_vec())).collect();
        assert_eq!((series.values, found), (&[3][..], vec![(1, 3, vec![0, 2])]));
        // The second segment's entry is in a block.
        let made = (2 + TABLE_BLOCK) * WORD;
        assert_eq!(region.usage().single_cells.taken - before, made, "the loser's came back");
    });
}

/// Says that this thread adds in restartable sequences on a CPU.
fn run_sequences_on(cpu: u64) {
    MODEL_CPU.with(|own| own.set(Some(cpu)));
}

#[test]
fn plain_and_atomic_adds_on_one_cpu_never_meet_in_a_cell() {
    // Planes for both kinds, for one of them, and for none.
    for planes in [2, 1] {
        with_striped(planes, 2, |cell| {
            let plain = spawn(2, move || {
                run_sequences_on(0);
                cell.add(1);
                cell.add(1);
            });
            cell.add(4);
            cell.add(4);
            plain.join().unwrap();
            assert_eq!(cell.get(), 10);
        });
    }
}

#[test]
fn threads_that_claim_a_plane_of_one_cpu_at_once_lose_no_add() {
    // With three threads, more interruptions take many minutes.
    with_striped(2, 1, |cell| {
        let others = [2, 4].map(|number| {
            spawn(number, move || {
                run_sequences_on(0);
                cell.add(number);
            })
        });
        cell.add(1);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(cell.get(), 7);
    });
}

/// Two threads make a segment each, which fills a page of the two of the lazy part, and count in
/// those that they find.
fn count_in_segments_of_a_page(len: u64, planes: u64, prepare: fn(Cells)) {
    let spec = FamilySpec { segments: 2, cells: 2, storage: Storage::Striped, ..idle_soon() };
    check_by(len, Some(2), planes, spec, move |region, family| {
        assert_eq!(region.memory.sections.lazy.len, 2 * PAGE);
        let series = family.permanent_series(b"a").unwrap();
        prepare(series);
        let count = move |n| {
            let segments = series.segments().unwrap();
            segments.make(n, (PAGE / WORD) as usize, 0).unwrap();
            for (n, segment) in segments.made() {
                assert!(segments.cell(segment, n).unwrap().count(series.last(), 3));
            }
        };
        beside(move || count(0), || count(1));
        let snapshot = region.snapshot();
        let found = snapshot.series(&snapshot.families()[0]).next().unwrap();
        let counts: u64 = found.segments().flat_map(|one| one.values).sum();
        assert!((2..=4).contains(&counts) && found.values[1] == 3 * counts, "{counts}");
    });
}

#[test]
fn segments_made_while_plane_0_is_completed_have_pages_there() {
    count_in_segments_of_a_page(2 * LEN, 1, |series| {
        // Another CPU gets the one plane.
        let plain = spawn(2, move || {
            run_sequences_on(0);
            series.at(0).add(1);
        });
        plain.join().unwrap();
    });
}

#[test]
fn segments_made_while_a_cpu_gets_its_plane_have_pages_there() {
    count_in_segments_of_a_page(3 * LEN, 2, |_| {});
}

/// Runs a model with a striped family of a region with this number of planes to lend.
fn check_lending(
    planes: u64,
    preemptions: usize,
    model: impl Fn(&'static Region, Family) + Send + Sync + 'static,
) {
    let spec = FamilySpec { storage: Storage::Striped, ..FamilySpec::default() };
    let config = Config { series: 4, planes: 1, lent_planes: planes, ..Config::with_len(LEN) };
    check_with(config, Some(preemptions), spec, model);
}

/// Borrows a plane if one is left, adds to a cell as its only writer, and gives it back.
fn borrow_and_add(region: &'static Region, cell: Cell, n: u64) {
    match region.lend_plane() {
        Some(plane) => {
            let word = &plane.words()[plane.index_of(cell).unwrap()];
            region.memory.map.assert_backed(word);
            word.store(word.load(Relaxed) + n, Relaxed);
        }
        None => cell.add(n),
    }
}

#[test]
fn threads_that_borrow_planes_at_once_lose_no_add() {
    for planes in [1, 2] {
        check_lending(planes, 3, |region, family| {
            let cell = family.permanent_series(b"a").unwrap().at(0);
            beside(
                move || borrow_and_add(region, cell, 1),
                move || borrow_and_add(region, cell, 2),
            );
            assert_eq!(cell.get(), 3);
            // Both gave back what they had.
            assert!(region.lend_plane().is_some());
            borrow_and_add(region, cell, 4);
            assert_eq!(cell.get(), 7);
        });
    }
}

#[test]
fn series_made_while_a_plane_is_lent_have_pages_there() {
    // Two take a minute.
    check_lending(1, 1, |region, family| {
        let other = spawn(1, move || _ = family.permanent_series(b"a").unwrap());
        let lent = region.lend_plane().unwrap();
        let cell = family.permanent_series(b"a").unwrap().at(0);
        let word = &lent.words()[lent.index_of(cell).unwrap()];
        region.memory.map.assert_backed(word);
        word.store(5, Relaxed);
        other.join().unwrap();
        assert_eq!(cell.get(), 5);
    });
}
