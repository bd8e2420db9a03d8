//! Planes: the copies of the striped cells, one a CPU, and the atomic ones that
//! everybody else shares.
//!
//! Threading. A plane beyond the atomic ones belongs to one CPU for the life of
//! the region: the table entry, once set, never changes. Its pages are backed
//! before the entry is published. Whoever makes new striped cells first moves
//! the mark of used bytes, then reads how many planes are claimed; whoever
//! claims a plane first moves that count, then reads the mark. Both are
//! sequentially consistent, so at least one of the two sees the other and backs
//! the new cells' pages in the new plane. Who backs pages for cells to come moves a mark
//! of its own before, in the same way.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use crate::cells::add_float_atomically;
use crate::layout::{ATOMIC_PLANES, M_AHEAD, M_PLANES, M_STRIPED, PAGE, WORD};
use crate::primitive::AtomicU64;
use crate::region::Region;
use crate::restartable::{self, Done};
use crate::snapshot;
use crate::threads::thread_number;

/// An integer add that found no plane: claims one for this CPU, or adds to an
/// atomic plane.
#[inline(never)]
pub(crate) fn add_slowly(region: &'static Region, cell: &'static AtomicU64, n: u64) {
    if claim_plane(region) && restartable::add(cell, region.cpu_table(), n) {
        return;
    }
    atomic_copy(region, cell).fetch_add(n, Relaxed);
}

/// What is not done yet of adding 1 to one cell and `n` to another.
#[cold]
#[inline(never)]
pub(crate) fn count_rest(
    region: &'static Region,
    one: &'static AtomicU64,
    other: &'static AtomicU64,
    n: u64,
    done: Done,
) {
    if done == Done::NEITHER {
        add_slowly(region, one, 1);
    }
    if done != Done::BOTH {
        add_slowly(region, other, n);
    }
}

/// As [`add_slowly`] for a float cell.
#[inline(never)]
pub(crate) fn add_float_slowly(region: &'static Region, cell: &'static AtomicU64, x: f64) {
    if claim_plane(region) && restartable::add_float(cell, region.cpu_table(), x) {
        return;
    }
    add_float_atomically(atomic_copy(region, cell), x);
}

/// Gives the running CPU a plane if there is one left; true where it has one
/// now.
#[inline]
fn claim_plane(region: &'static Region) -> bool {
    match restartable::cpu() {
        Some(cpu) => claim_plane_for(region, cpu),
        None => false,
    }
}

#[cold]
fn claim_plane_for(region: &'static Region, cpu: u64) -> bool {
    let entry = &region.cpu_table()[cpu as usize];
    if entry.load(Acquire) != 0 {
        return true;
    }
    let claimed = region.mark(M_PLANES);
    let Ok(plane) =
        claimed.fetch_update(SeqCst, SeqCst, |n| (n < region.s.plane_count).then(|| n + 1))
    else {
        return false;
    };
    let ahead = region.mark(M_AHEAD).load(SeqCst);
    let end = chunk_up(region, region.mark(M_STRIPED).load(SeqCst).max(ahead));
    let backed = region.map.back(region.s.plane(plane), end).is_ok();
    let delta = plane * region.s.striped.len;
    if backed && entry.compare_exchange(0, delta, Release, Relaxed).is_ok() {
        return true;
    }
    // No memory, or another thread of this CPU was first. If nobody claimed
    // since, the plane goes back.
    let _ = claimed.compare_exchange(plane + 1, plane, SeqCst, Relaxed);
    entry.load(Acquire) != 0
}

/// Says that cells up to `end` will be backed in every plane.
pub(crate) fn announce(region: &Region, end: u64) {
    region.mark(M_AHEAD).fetch_max(end, SeqCst);
}

/// Backs every plane up to `end` at least; returns up to where.
pub(crate) fn back(region: &Region, end: u64) -> Option<u64> {
    let end = chunk_up(region, end);
    for plane in 0..region.mark(M_PLANES).load(SeqCst).min(region.s.plane_count) {
        region.map.back(region.s.plane(plane), end).ok()?;
    }
    Some(end)
}

/// Planes are backed in chunks, by those who make cells and by those who claim
/// a plane alike: so what is backed in one is backed in all.
fn chunk_up(region: &Region, end: u64) -> u64 {
    end.clamp(1, region.s.striped.len).next_multiple_of(4 * PAGE).min(region.s.striped.len)
}

/// The copy of a striped cell that this thread may add to atomically.
#[inline]
fn atomic_copy(region: &'static Region, cell: &'static AtomicU64) -> &'static AtomicU64 {
    let plane = thread_number() % ATOMIC_PLANES;
    let words = (plane * region.s.striped.len / WORD) as usize;
    // SAFETY: only striped cells come here, each as its copy in plane 0, which
    // was checked to lie inside that plane. The atomic planes follow each other,
    // so the same distance into this thread's is inside the mapping, which is
    // never unmapped.
    unsafe { &*std::ptr::from_ref(cell).add(words) }
}

/// Every copy of a striped cell that somebody may have added to, in a fixed
/// order: the atomic planes, then the CPUs' by CPU id.
pub(crate) fn copies(
    region: &'static Region,
    cell: &'static AtomicU64,
) -> impl Iterator<Item = &'static AtomicU64> {
    snapshot::planes(region).filter_map(move |delta| region.word_after(cell, delta))
}
