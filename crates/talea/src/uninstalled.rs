//! Updates of metrics that are not installed: they are discarded, and reported.
//!
//! To update a metric before it is installed is no fault, as at the start of a program. So
//! updates are counted by the place in the program where their metric was made; when a metric
//! of that place is installed, those so far are forgotten. What is left when a registry of the
//! process next refreshes its values (before a snapshot, or in the thread that keeps them
//! fresh) is added to [`NAME`] there, and told once for each place on standard error.
//!
//! An update that is discarded takes no lock and no memory: places are entries of a table that
//! is as large as it gets, and counts have a copy for each of a few groups of threads.

use std::cell::Cell;
use std::panic::Location;
use std::process;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};

use talea_region::{AtomicRef, Region};

use crate::error::counted;
use crate::metric::Counter;
use crate::opts::Opts;
use crate::registry::Registry;

/// Where in the program a metric was made.
pub(crate) type Origin = &'static Location<'static>;

/// The name of what is counted, without its ending.
const NAME: &str = "talea_uninstalled_updates";
const HELP: &str = "Updates that were discarded, since their metric was not installed.";

/// Places that are told apart; all others count together, behind these, and are not forgotten.
const PLACES: usize = if cfg!(test) { 2 } else { 256 };
/// Threads that count apart.
const SHARDS: usize = 8;
/// Places that a line names.
const NAMED: usize = 5;

/// Counts of some threads, one for each place, on lines of the cache of their own.
#[repr(align(64))]
struct Shard([AtomicU64; PLACES + 1]);

/// The process that counts, where somebody will ask; 0 where nobody will.
static COUNTING: AtomicU32 = AtomicU32::new(0);
/// Whether anything was discarded.
static ANY: AtomicBool = AtomicBool::new(false);
static ORIGINS: [AtomicRef<Location<'static>>; PLACES] = [const { AtomicRef::new() }; PLACES];
static DISCARDED: [Shard; SHARDS] =
    [const { Shard([const { AtomicU64::new(0) }; PLACES + 1]) }; SHARDS];
/// How many of those of a place were shown or forgotten.
static SETTLED: [AtomicU64; PLACES + 1] = [const { AtomicU64::new(0) }; PLACES + 1];
/// Whether a line named the place.
static TOLD: [AtomicBool; PLACES + 1] = [const { AtomicBool::new(false) }; PLACES + 1];

/// Has what is discarded from now on be reported by a registry. It must be the process's own:
/// tests run side by side in one, and each would see what others discard.
pub(crate) fn report_in(registry: &Registry) {
    let _ = COUNTING.compare_exchange(0, process::id(), Relaxed, Relaxed);
    let (region, counter) = (registry.region, OnceLock::new());
    registry.on_snapshot(move || report(region, &counter));
}

/// Counts an update of a metric that was made there.
#[cold]
pub(crate) fn note(origin: Origin) {
    if COUNTING.load(Relaxed) == 0 {
        return;
    }
    let place = from_first(origin).find(|&n| {
        let found = ORIGINS[n].get().unwrap_or_else(|| ORIGINS[n].get_or_set(origin));
        std::ptr::eq(found, origin)
    });
    DISCARDED[shard()].0[place.unwrap_or(PLACES)].fetch_add(1, Relaxed);
    // Each thread would fetch the line if it were written each time.
    if !ANY.load(Relaxed) {
        ANY.store(true, Relaxed);
    }
}

/// Forgets what was discarded of metrics that were made there, since one is installed.
pub(crate) fn forget(origin: Origin) {
    if !ANY.load(Relaxed) {
        return;
    }
    let is_it = |&n: &usize| ORIGINS[n].get().is_some_and(|found| std::ptr::eq(found, origin));
    if let Some(place) = from_first(origin).find(is_it) {
        settle(place);
    }
}

/// All places, from the first where an origin is looked for.
fn from_first(origin: Origin) -> impl Iterator<Item = usize> {
    // Origins lie some words from each other.
    let first = std::ptr::from_ref(origin).addr() / size_of::<Location<'_>>();
    (0..PLACES).map(move |n| (first + n) % PLACES)
}

/// How many were discarded at a place since this was last asked.
fn settle(place: usize) -> u64 {
    let all = DISCARDED.iter().map(|shard| shard.0[place].load(Relaxed)).sum();
    // Of several who ask at once, one is told of each.
    let before = SETTLED[place].fetch_max(all, Relaxed);
    all.saturating_sub(before)
}

/// Which of the shards this thread counts in.
fn shard() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static SHARD: Cell<usize> = const { Cell::new(SHARDS) };
    }
    let known = SHARD.try_with(|shard| {
        if shard.get() == SHARDS {
            shard.set(NEXT.fetch_add(1, Relaxed) % SHARDS);
        }
        shard.get()
    });
    // Of a thread that is ending.
    known.unwrap_or(0)
}

fn report(region: &'static Region, counter: &OnceLock<Counter>) {
    if !ANY.load(Relaxed) {
        return;
    }
    let own = process::id();
    if COUNTING.swap(own, Relaxed) != own {
        // Those of the parent are the parent's to report.
        (0..=PLACES).for_each(|place| _ = settle(place));
    }
    let (mut discarded, mut places) = (0, Vec::new());
    for (place, is_told) in TOLD.iter().enumerate() {
        let new = settle(place);
        discarded += new;
        if new > 0 && !is_told.swap(true, Relaxed) {
            places.push(ORIGINS.get(place).and_then(AtomicRef::get));
        }
    }
    if discarded == 0 {
        return;
    }
    if counter.get().is_none() {
        // One that shows nothing of its own, so that this one lives no longer than it would.
        if let Ok(registered) = Registry::of(region).register(Opts::new(NAME, HELP)) {
            let _ = counter.set(registered);
        }
    }
    if let Some(counter) = counter.get() {
        counter.add(discarded);
    }
    if !places.is_empty() {
        tell(discarded, &places);
    }
}

/// Prints the line.
fn tell(discarded: u64, places: &[Option<Origin>]) {
    let mut known: Vec<Origin> = places.iter().copied().flatten().collect();
    known.sort();
    known.truncate(NAMED);
    let mut made: Vec<String> = known.iter().map(ToString::to_string).collect();
    if places.len() > known.len() {
        made.push(counted(places.len() - known.len(), "further place"));
    }
    let updates = counted(discarded as usize, "update");
    let were = if discarded == 1 { "was" } else { "were" };
    eprintln!(
        "talea: {updates} {were} discarded, since the metrics are not installed that are made at \
         {}; install their set by talea::install, or register them, and keep handles of a family \
         after that. {NAME}_total counts further updates",
        made.join(", ")
    );
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, PoisonError};

    use super::*;

    /// The counts are those of the process.
    static ALONE: Mutex<()> = Mutex::new(());

    #[track_caller]
    fn here() -> Origin {
        Location::caller()
    }

    #[test]
    fn what_a_parent_discarded_is_not_reported_by_its_child() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let registry = Registry::for_test().unwrap();
        let (origin, counter) = (here(), OnceLock::new());
        // As after a fork: the memory is that of another process.
        COUNTING.store(process::id() ^ 1, Relaxed);
        (0..3).for_each(|_| note(origin));
        report(registry.region, &counter);
        assert!(counter.get().is_none());
        (0..2).for_each(|_| note(origin));
        report(registry.region, &counter);
        assert_eq!(counter.get().map(Counter::get), Some(2));
        registry.snapshot().assert_value("talea_uninstalled_updates_total", &[], 2.0);
    }

    #[test]
    fn where_there_are_more_places_than_are_told_apart_each_update_counts() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let registry = Registry::for_test().unwrap();
        let (origins, counter) = ([here(), here(), here(), here()], OnceLock::new());
        COUNTING.store(process::id(), Relaxed);
        origins.iter().zip(1..).for_each(|(origin, n)| (0..n).for_each(|_| note(origin)));
        report(registry.region, &counter);
        assert_eq!(counter.get().map(Counter::get), Some(1 + 2 + 3 + 4));
        // Whichever is told apart can be forgotten, and nothing else is.
        origins.iter().for_each(|origin| note(origin));
        origins.iter().for_each(|origin| forget(origin));
        report(registry.region, &counter);
        let left = counter.get().map_or(0, Counter::get) - 10;
        assert!((2..4).contains(&left), "{left}");
    }
}
