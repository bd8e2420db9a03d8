//! Updates of metrics that are not installed: they are discarded, and counted by the place in
//! the program where their metric was made.
//!
//! An update that is discarded takes no lock and no memory: places are entries of a table of
//! a fixed size, and counts have a copy for each of a few groups of threads.

use std::cell::Cell;
use std::panic::Location;
use std::process;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};

use talea_region::AtomicRef;

/// The place in the program at which a metric was made.
pub(crate) type Origin = &'static Location<'static>;

/// Places with a count of their own. All others share one more count, which is never forgotten.
const PLACES: usize = if cfg!(test) { 2 } else { 256 };
/// Groups of threads with counts of their own.
const SHARDS: usize = 8;

/// The counts of one group of threads, one for each place, on cache lines of their own.
#[repr(align(64))]
struct Shard([AtomicU64; PLACES + 1]);

/// The id of the process that counts; 0 before [`start`].
static COUNTING: AtomicU32 = AtomicU32::new(0);
/// Whether any update was discarded.
static ANY: AtomicBool = AtomicBool::new(false);
static ORIGINS: [AtomicRef<Location<'static>>; PLACES] = [const { AtomicRef::new() }; PLACES];
static DISCARDED: [Shard; SHARDS] =
    [const { Shard([const { AtomicU64::new(0) }; PLACES + 1]) }; SHARDS];
/// How many updates of a place were taken or forgotten.
static SETTLED: [AtomicU64; PLACES + 1] = [const { AtomicU64::new(0) }; PLACES + 1];
/// Whether [`take`] returned the place.
static NAMED: [AtomicBool; PLACES + 1] = [const { AtomicBool::new(false) }; PLACES + 1];

/// Starts to count. Until then nothing is counted, since no registry will report it.
pub(crate) fn start() {
    let _ = COUNTING.compare_exchange(0, process::id(), Relaxed, Relaxed);
}

/// Counts as a process with this id would.
#[cfg(test)]
pub(crate) fn count_in(process: u32) {
    COUNTING.store(process, Relaxed);
}

/// The updates that were discarded since the last call.
pub(crate) struct Discarded {
    pub(crate) updates: u64,
    /// Places that no earlier call returned; `None` stands for all beyond the table.
    pub(crate) new_places: Vec<Option<Origin>>,
}

/// Takes the counts so far; `None` if there are none.
pub(crate) fn take() -> Option<Discarded> {
    if !ANY.load(Relaxed) {
        return None;
    }
    let own = process::id();
    if COUNTING.swap(own, Relaxed) != own {
        // After a fork: the counts so far are the parent's, which reports them.
        (0..=PLACES).for_each(|place| _ = settle(place));
    }
    let (mut updates, mut new_places) = (0, Vec::new());
    for (place, is_named) in NAMED.iter().enumerate() {
        let new = settle(place);
        updates += new;
        if new > 0 && !is_named.swap(true, Relaxed) {
            new_places.push(ORIGINS.get(place).and_then(AtomicRef::get));
        }
    }
    (updates > 0).then_some(Discarded { updates, new_places })
}

/// Counts an update of a metric that was made at this place.
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
    // Written once only: each write would take the cache line from all other threads.
    if !ANY.load(Relaxed) {
        ANY.store(true, Relaxed);
    }
}

/// Forgets the updates of a place, since a metric that was made there is installed.
pub(crate) fn forget(origin: Origin) {
    if !ANY.load(Relaxed) {
        return;
    }
    if let Some(place) = from_first(origin)
        .find(|&n: &usize| ORIGINS[n].get().is_some_and(|found| std::ptr::eq(found, origin)))
    {
        settle(place);
    }
}

/// All places, in the order in which an origin looks for its own.
fn from_first(origin: Origin) -> impl Iterator<Item = usize> {
    // Origins lie some words from each other.
    let first = std::ptr::from_ref(origin).addr() / size_of::<Location<'_>>();
    (0..PLACES).map(move |n| (first + n) % PLACES)
}

/// Takes the count of a place: the updates since the last call.
fn settle(place: usize) -> u64 {
    let all = DISCARDED.iter().map(|shard| shard.0[place].load(Relaxed)).sum();
    // If several threads call it at once, each update is counted for one of them.
    let before = SETTLED[place].fetch_max(all, Relaxed);
    all.saturating_sub(before)
}

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
    // The thread is ending.
    known.unwrap_or(0)
}
