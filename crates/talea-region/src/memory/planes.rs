//! Planes: the copies of the striped cells.
//!
//! ```text
//!   plane 0    shared: any thread may add to it atomically
//!   others     of one CPU and one kind: plain adds in restartable sequences on that CPU, or atomic adds
//!              by any thread
//! ```
//!
//! A CPU gets a plane of a kind when a process first adds there in this way. So a host on which all
//! processes use the same path has one plane for each CPU, and one on which they use both has two. If
//! no plane is left, or no memory for one, adds go to plane 0.
//!
//! Invariants:
//!
//! 1. *A plane with plain adds gets no atomic ones.* A plain add is a load and a store, which an atomic
//!    add in between would be lost to. So a plane belongs to one entry of the CPU table for the life
//!    of the region, and an entry is of one kind.
//! 2. *Plain adds to one plane exclude each other.* A sequence commits only on the CPU whose entry it
//!    read, and starts over if the thread is moved, preempted or signalled before that.
//! 3. *An add never leaves the region.* An add turns a plane's distance into an address. It reads the
//!    distance from a table of this process (`Adds::table`), which no other process can write
//!    to. An entry is copied there from the region's table when this process first adds on that CPU,
//!    if it is the distance of a plane that is in use and that no other entry has. If it is anything
//!    else, the CPU uses plane 0.
//! 4. *New cells are backed in every plane that is in use.* A thread that makes striped cells first
//!    moves the mark of used bytes, then reads how many planes are claimed. A thread that claims a
//!    plane first moves that count, then reads the mark, and publishes the entry when the pages are
//!    backed. Both are sequentially consistent, so at least one of the two sees the other and backs
//!    the new cells' pages in the new plane. A thread that backs pages ahead of use first moves a mark
//!    of its own, in the same way.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use super::current_cpu::{current_cpu, known_cpu};
use super::path;
use super::restartable::{self, Done};
use super::words::Memory;
use crate::layout::*;
use crate::primitive::{AtomicU64, Word, add_float_atomically};
use crate::source;

/// The bit of an entry of this process's table for atomic adds that says that it is known. The rest is
/// the distance of the plane, 0 for plane 0.
const KNOWN: u64 = 1;

/// Completes an integer add that found no plane for plain adds: claims one for this CPU, or adds
/// atomically.
// The rare case is a tail call, so that nothing is saved on the stack for it: the atomic add waits for
// all stores before it.
#[inline(never)]
pub(crate) fn add_slowly(memory: &'static Memory, cell: Word, n: u64) {
    match known_atomic_plane(memory) {
        Some(plane) => {
            copy_at(cell, plane).fetch_add(n, Relaxed);
        }
        None => add_more_slowly(memory, cell, n),
    }
}

#[inline(never)]
fn add_more_slowly(memory: &'static Memory, cell: Word, n: u64) {
    if claim_plain(memory) && restartable::add(cell, &memory.adds.table, n) {
        return;
    }
    copy_at(cell, atomic_plane_of(memory, current_cpu())).fetch_add(n, Relaxed);
}

/// Completes an operation that adds 1 to one cell and `n` to another.
#[inline(never)]
pub(crate) fn count_rest(memory: &'static Memory, one: Word, other: Word, n: u64, done: Done) {
    match known_atomic_plane(memory) {
        Some(plane) if done == Done::NEITHER => {
            copy_at(one, plane).fetch_add(1, Relaxed);
            copy_at(other, plane).fetch_add(n, Relaxed);
        }
        _ => count_rest_slowly(memory, one, other, n, done),
    }
}

#[inline(never)]
fn count_rest_slowly(memory: &'static Memory, one: Word, other: Word, n: u64, done: Done) {
    if done == Done::NEITHER {
        add_more_slowly(memory, one, 1);
    }
    if done != Done::BOTH {
        add_more_slowly(memory, other, n);
    }
}

/// As [`add_slowly`] for a float cell.
#[inline(never)]
pub(crate) fn add_float_slowly(memory: &'static Memory, cell: Word, x: f64) {
    if claim_plain(memory) && restartable::add_float(cell, &memory.adds.table, x) {
        return;
    }
    add_float_atomically(copy_at(cell, atomic_plane_of(memory, current_cpu())), x);
}

/// Gives the running CPU a plane for plain adds if there is one left; true if it has one now.
#[inline]
fn claim_plain(memory: &'static Memory) -> bool {
    restartable::cpu().and_then(|cpu| claim(memory, cpu)).is_some_and(|delta| delta != 0)
}

/// The distance of the plane that this thread adds to atomically if the process has no restartable
/// sequences; `None` if it has, or if more is to be done to find the plane.
#[inline]
fn known_atomic_plane(memory: &'static Memory) -> Option<u64> {
    if restartable::enabled() {
        return None;
    }
    let entry = memory.atomic_entries.get(known_cpu()? as usize)?.load(Relaxed);
    (entry & KNOWN != 0).then_some(entry & !KNOWN)
}

/// The distance of the plane of a CPU for atomic adds.
#[inline]
fn atomic_plane_of(memory: &'static Memory, cpu: u64) -> u64 {
    match memory.atomic_entries.get(cpu as usize).map(|entry| entry.load(Relaxed)) {
        Some(known) if known & KNOWN != 0 => known & !KNOWN,
        Some(_) => claim_atomic(memory, cpu),
        None => 0,
    }
}

#[cold]
fn claim_atomic(memory: &'static Memory, cpu: u64) -> u64 {
    if path::is_single() {
        return 0;
    }
    let delta = claim(memory, CPUS + cpu);
    // If memory is refused, it is tried again.
    if let Some(delta) = delta {
        memory.atomic_entries[cpu as usize].store(delta | KNOWN, Release);
        memory.cpus_known[1].fetch_max(cpu + 1, Relaxed);
    }
    delta.unwrap_or(0)
}

/// The distance of the plane of an entry of the CPU table, which gets one if there is one left: 0 if
/// there is none for it, `None` if there is no memory for one just now.
#[cold]
fn claim(memory: &'static Memory, n: u64) -> Option<u64> {
    let entry = memory.cpu_entry(n);
    let is_refused = entry.load(Acquire) == 0 && !assign_plane(memory, entry);
    let delta = entry.load(Acquire);
    if delta == 0 && is_refused {
        return None;
    }
    let is_usable = is_in_use(memory, delta) && owners(memory, delta).all(|owner| owner == n);
    if is_usable && n < CPUS {
        memory.cpus_known[0].fetch_max(n + 1, Relaxed);
        memory.plain_entries()[n as usize].store(delta, Release);
    }
    Some(if is_usable { delta } else { 0 })
}

/// Publishes a plane that no entry has, if there is one left; false if there is no memory for it.
fn assign_plane(memory: &'static Memory, entry: &AtomicU64) -> bool {
    let claimed = memory.word_at(M_PLANES);
    let end = || {
        let ahead = memory.word_at(M_AHEAD).load(SeqCst);
        chunk_up(memory, memory.word_at(M_STRIPED).load(SeqCst).max(ahead))
    };
    if claimed.load(Relaxed) >= memory.sections.plane_count {
        return true;
    }
    if memory.refusal.is_about(end()) {
        return false;
    }
    // More than one is tried only if the count is damaged.
    for _ in 0..memory.sections.plane_count {
        let next = |n: u64| (n < memory.sections.plane_count).then(|| n + 1);
        let Ok(plane) = claimed.fetch_update(SeqCst, SeqCst, next) else { return true };
        let delta = plane * memory.sections.striped.len;
        if plane < SHARED_PLANES || owners(memory, delta).next().is_some() {
            continue;
        }
        // Read after the count has moved.
        let backed = memory.back_pages(memory.sections.plane(plane), end()).is_some();
        if !backed || entry.compare_exchange(0, delta, Release, Relaxed).is_err() {
            // No memory, or another thread of this CPU was first. If no thread has claimed one
            // since, the plane is given back.
            let _ = claimed.compare_exchange(plane + 1, plane, SeqCst, Relaxed);
        }
        return backed;
    }
    true
}

/// Whether a distance is that of a plane that an entry may have and that is backed.
fn is_in_use(memory: &Memory, delta: u64) -> bool {
    let claimed = memory.word_at(M_PLANES).load(SeqCst).min(memory.sections.plane_count);
    let len = memory.sections.striped.len;
    delta % len == 0 && (SHARED_PLANES * len..claimed * len).contains(&delta)
}

/// The entries that have a plane, by the tables of this process or of the region.
fn owners(memory: &Memory, delta: u64) -> impl Iterator<Item = u64> {
    (0..CPU_ENTRIES).filter(move |&n| {
        memory.own_entry(n) == delta || memory.cpu_entry(n).load(Relaxed) == delta
    })
}

impl Memory {
    /// The region's own entry of a CPU and a kind: the distance of its plane from plane 0, or 0. Any
    /// process that may write to the region can have changed it.
    fn cpu_entry(&self, n: u64) -> Word {
        self.word_at(CPU_TABLE + n * WORD)
    }

    /// This process's copy of an entry; 0 if it has none.
    fn own_entry(&self, n: u64) -> u64 {
        let (plain, atomic) = (self.plain_entries(), self.atomic_entries);
        let entry = plain.iter().chain(atomic).nth(n as usize);
        entry.map_or(0, |entry| entry.load(Relaxed) & !KNOWN)
    }

    /// This process's copies of the entries that are not 0, with their numbers.
    pub(super) fn own_planes_by_entry(&self) -> impl Iterator<Item = (u64, u64)> {
        let tables = [self.plain_entries(), self.atomic_entries];
        let known = self.cpus_known.iter().map(|known| known.load(Relaxed).min(CPUS) as usize);
        let entries =
            tables.into_iter().zip(known).zip([0, CPUS]).flat_map(|((table, known), first)| {
                table[..known].iter().zip(first..).map(|(own, n)| (n, own.load(Acquire) & !KNOWN))
            });
        entries.filter(|&(_, delta)| delta != 0)
    }

    /// Restores the region's CPU table from this process's copy, so that readers from outside find
    /// every plane. It changes nothing unless the table is damaged.
    pub(crate) fn restore_cpu_table(&self) {
        let mut end = 0;
        for (n, delta) in self.own_planes_by_entry() {
            end = end.max(delta / self.sections.striped.len + 1);
            let entry = self.cpu_entry(n);
            let found = entry.load(Relaxed);
            // A plane that the CPU got from another process since is its own too.
            let is_own = |found| is_in_use(self, found) && owners(self, found).nth(1).is_none();
            if found != delta && !is_own(found) {
                let _ = entry.compare_exchange(found, delta, Release, Relaxed);
            }
        }
        let claimed = self.word_at(M_PLANES);
        if claimed.load(Relaxed) < end {
            claimed.fetch_max(end, SeqCst);
        }
    }
}

/// Says that cells up to `end` will be backed in every plane.
pub(crate) fn announce(memory: &Memory, end: u64) {
    memory.word_at(M_AHEAD).fetch_max(end, SeqCst);
}

/// Backs every plane up to `end` at least; returns up to where.
pub(crate) fn back(memory: &Memory, end: u64) -> Option<u64> {
    let end = chunk_up(memory, end);
    let claimed = memory.word_at(M_PLANES).load(SeqCst).min(memory.sections.plane_count);
    let own = memory.own_planes_by_entry().map(|(_, delta)| delta / memory.sections.striped.len);
    // The planes that this process adds to are backed whatever the count is.
    let beyond = own.filter(|&plane| plane >= claimed);
    for plane in (0..claimed.max(SHARED_PLANES)).chain(beyond) {
        memory.back_pages(memory.sections.plane(plane), end)?;
    }
    Some(end)
}

/// Planes are backed in the same chunks when cells are made and when a plane is claimed, so a chunk
/// that is backed in one plane is backed in all.
fn chunk_up(memory: &Memory, end: u64) -> u64 {
    end.clamp(1, memory.sections.striped.len)
        .next_multiple_of(4 * PAGE)
        .min(memory.sections.striped.len)
}

/// The copy of a striped cell in the plane at a distance from plane 0, which is one that
/// [`atomic_plane_of`] gave for the cell's region.
#[inline]
fn copy_at(cell: Word, delta: u64) -> Word {
    // SAFETY: only striped cells come here, each as its copy in plane 0, which was checked to lie
    // inside that plane. The distance is 0, or was checked to be that of another plane of the same
    // length, so the same place there is inside the mapping, which is never unmapped.
    unsafe { &*std::ptr::from_ref(cell).add((delta / WORD) as usize) }
}

/// The copies of a striped cell that each of the CPUs below a number may add to atomically. They get
/// planes for that.
pub(crate) fn atomic_copies(
    memory: &'static Memory,
    cell: Word,
    cpus: usize,
) -> impl Iterator<Item = Word> {
    (0..cpus as u64).map(move |cpu| copy_at(cell, atomic_plane_of(memory, cpu)))
}

/// Every copy of a striped cell that may have been added to, in a fixed order: the shared plane, then
/// the CPUs' by kind and CPU id.
pub(crate) fn copies(memory: &'static Memory, cell: Word) -> impl Iterator<Item = Word> {
    source::planes(memory).filter_map(move |delta| memory.word_after(cell, delta))
}
