//! Planes: the copies of the striped cells.
//!
//! ```text
//!   plane 0    shared: any thread may add to it atomically
//!   others     of one CPU and one kind: plain adds in restartable sequences on that CPU, or atomic adds
//!              by any thread
//!   lent       of one thread: plain adds by it alone (`series/lent.rs`)
//! ```
//!
//! A CPU gets a plane of a kind when a process first adds there in this way. So a host on which all
//! processes use the same path has one plane for each CPU, and one on which they use both has two. If
//! no plane is left, or no memory for one, adds go to plane 0.
//!
//! Most adds never do, so plane 0 has no copy of *lazy* cells, those of segments, until it must:
//!
//! ```text
//!   partial ──first add of a lazy cell in plane 0──▶ filling ──pages are backed──▶ complete
//! ```
//!
//! An add of a lazy cell for which there is no memory is refused, and its caller counts in a cell that
//! is not lazy.
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
//!    backed. Between the two, each of them has a full fence, so at least one sees what the other wrote
//!    and backs the new cells' pages in the new plane. A thread that backs pages ahead of use first
//!    moves a mark of its own, in the same way.
//! 5. *New lazy cells are backed in plane 0 unless it is partial.* For the same reason: a thread that
//!    completes plane 0 first changes its state to filling, then reads the marks. It may be killed
//!    then; the next thread that needs plane 0 completes it.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use super::amount::Amount;
use super::current_cpu::{current_cpu, known_cpu};
use super::path;
use super::restartable::{self, RestartableAdd, Undone};
use super::words::Memory;
use crate::layout::*;
use crate::primitive::{AtomicU64, Word, fence};
use crate::source;
use crate::values::Storage;

/// The bytes of a plane that are backed at once.
const CHUNK: u64 = size(4, 1) * PAGE;

/// The bit of an entry of this process's table for atomic adds that says that it is known. The rest is
/// the distance of the plane, 0 for plane 0.
const KNOWN: u64 = 1;

/// Completes what found no plane for plain adds: adds 1 to `first`, if that is left, and the amount to
/// `cell`. Claims a plane for this CPU, or adds atomically. False if nothing is added: an add to a lazy
/// cell can be refused. Beside a `first`, `cell` is not lazy.
#[inline(always)]
pub(crate) fn finish<A: RestartableAdd>(
    memory: &'static Memory,
    first: Option<Word>,
    cell: Word,
    amount: A,
) -> bool {
    let Some(plane) = known_atomic_plane(memory) else {
        return finish_anew(memory, first, cell, amount);
    };
    if let Some(first) = first {
        1_u64.add_atomically(copy_at(memory, first, plane));
    }
    amount.add_atomically(copy_at(memory, cell, plane));
    true
}

/// As [`finish`], of one add, for callers that do not ask whether it is refused.
#[inline(never)]
pub(crate) fn finish_add<A: RestartableAdd>(memory: &'static Memory, cell: Word, amount: A) {
    finish(memory, None, cell, amount);
}

/// As [`finish`], of two adds.
#[inline(never)]
pub(crate) fn finish_count<A: RestartableAdd>(
    memory: &'static Memory,
    rest: Undone,
    cell: Word,
    amount: A,
) -> bool {
    finish(memory, rest.first, cell, amount)
}

/// As [`finish`], if the CPU's plane for atomic adds is not known or not wanted.
// The functions above end in a call of it: docs/explanations/adds.md, "Registers".
#[inline(never)]
pub(crate) fn finish_anew<A: RestartableAdd>(
    memory: &'static Memory,
    first: Option<Word>,
    cell: Word,
    amount: A,
) -> bool {
    first.is_none_or(|first| add_on_this_cpu(memory, first, 1_u64))
        && add_on_this_cpu(memory, cell, amount)
}

fn add_on_this_cpu<A: RestartableAdd>(memory: &'static Memory, cell: Word, amount: A) -> bool {
    if claim_plain(memory) && amount.add_in_sequence(cell, &memory.adds.table) {
        return true;
    }
    let copy = atomic_copy(memory, cell, current_cpu());
    copy.inspect(|copy| amount.add_atomically(copy)).is_some()
}

/// Gives the running CPU a plane for plain adds if there is one left; true if it has one now.
#[inline]
fn claim_plain(memory: &'static Memory) -> bool {
    restartable::cpu().and_then(|cpu| claim(memory, cpu)).is_some_and(|delta| delta != 0)
}

/// The distance of the CPU's plane that this thread adds to atomically if the process has no
/// restartable sequences; `None` if it has, or if more is to be done to find a plane.
#[inline]
fn known_atomic_plane(memory: &'static Memory) -> Option<u64> {
    if restartable::enabled() {
        return None;
    }
    let entry = memory.atomic_entries.get(known_cpu()? as usize)?.load(Relaxed);
    (entry > KNOWN).then_some(entry & !KNOWN)
}

/// The copy of a striped cell for atomic adds on a CPU; `None` if the cell is lazy, and has none there
/// and no memory for one.
#[inline]
fn atomic_copy(memory: &'static Memory, cell: Word, cpu: u64) -> Option<Word> {
    match atomic_plane_of(memory, cpu) {
        0 if memory.is_lazy(cell) && !complete(memory) => None,
        plane => Some(copy_at(memory, cell, plane)),
    }
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
    // Invariant 3; an entry of 0 is no plane for plain adds.
    debug_assert!(!is_usable || delta != 0 && memory.is_plane(delta), "{delta}");
    if is_usable && n < CPUS {
        memory.cpus_known[0].fetch_max(n + 1, Relaxed);
        memory.plain_entries()[n as usize].store(delta, Release);
    }
    Some(if is_usable { delta } else { 0 })
}

/// Publishes a plane that no entry has, if there is one left; false if there is no memory for it.
fn assign_plane(memory: &'static Memory, entry: &AtomicU64) -> bool {
    let claimed = memory.word_at(M_PLANES);
    if claimed.load(Relaxed) >= memory.sections.plane_count {
        return true;
    }
    let pools = [memory.sections.striped, memory.sections.lazy];
    if pools.iter().any(|pool| memory.refusal.is_about(end_of(memory, pool))) {
        return false;
    }
    // More than one is tried only if the count is damaged.
    for _ in 0..memory.sections.plane_count {
        let next = claimed.fetch_update(SeqCst, SeqCst, |plane| {
            (plane < memory.sections.plane_count).then_some(plane + 1)
        });
        let Ok(plane) = next else { return true };
        let delta = plane * memory.sections.plane_len;
        if plane < SHARED_PLANES || owners(memory, delta).next().is_some() {
            continue;
        }
        fence(SeqCst);
        let backed = back_plane(memory, plane);
        if !backed || entry.compare_exchange(0, delta, Release, Relaxed).is_err() {
            // No memory, or another thread of this CPU was first. If no thread has claimed one
            // since, the plane is given back.
            let _ = claimed.compare_exchange(plane + 1, plane, SeqCst, Relaxed);
        }
        return backed;
    }
    true
}

/// Whether the plane at a distance is one that an entry may have, and is backed.
fn is_in_use(memory: &Memory, delta: u64) -> bool {
    let claimed = memory.word_at(M_PLANES).load(SeqCst).min(memory.sections.plane_count);
    let len = memory.sections.plane_len;
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

    /// Whether plane 0 has a copy of every lazy cell.
    pub(crate) fn is_plane_0_complete(&self) -> bool {
        self.is_known_complete.load(Relaxed)
            || self.word_at(M_PLANE_0).load(Acquire) == COMPLETE && complete(self)
    }

    fn is_lazy(&self, cell: Word) -> bool {
        self.offset_of(cell).is_some_and(|at| self.sections.is_lazy(at))
    }

    /// Whether a word is the copy in plane 0 of a striped cell.
    pub(crate) fn is_in_plane_0(&self, cell: Word) -> bool {
        self.has_first_copy(cell, Storage::Striped)
    }

    /// Whether a plane lies at a distance from plane 0.
    fn is_plane(&self, delta: u64) -> bool {
        let Sections { plane_count, plane_len, .. } = self.sections;
        delta % plane_len == 0 && delta / plane_len < plane_count
    }

    /// Restores the region's CPU table and the state of plane 0 from this process's copies, so that
    /// readers from outside find every plane. It changes nothing unless the region is damaged.
    pub(crate) fn restore_cpu_table(&self) {
        let mut end = 0;
        for (n, delta) in self.own_planes_by_entry() {
            end = end.max(delta / self.sections.plane_len + 1);
            let entry = self.cpu_entry(n);
            let found = entry.load(Relaxed);
            // A plane that the CPU got from another process since is its own too.
            if found != delta && !(is_in_use(self, found) && owners(self, found).nth(1).is_none()) {
                let _ = entry.compare_exchange(found, delta, Release, Relaxed);
            }
        }
        let claimed = self.word_at(M_PLANES);
        if claimed.load(Relaxed) < end {
            claimed.fetch_max(end, SeqCst);
        }
        if self.is_known_complete.load(Relaxed) {
            self.word_at(M_PLANE_0).store(COMPLETE, Release);
        }
    }
}

/// Says that lazy cells up to `end` will be backed in every plane.
pub(crate) fn announce(memory: &Memory, end: u64) {
    memory.word_at(M_AHEAD).fetch_max(end, SeqCst);
}

/// Gives plane 0 a copy of every lazy cell; whether it has them now. Each process does so once, also
/// if another one has: then nothing is left to do, unless the state was damaged.
#[cold]
pub(crate) fn complete(memory: &Memory) -> bool {
    if memory.is_known_complete.load(Relaxed) {
        return true;
    }
    let state = memory.word_at(M_PLANE_0);
    let before = state.compare_exchange(PARTIAL, FILLING, SeqCst, SeqCst);
    fence(SeqCst);
    let lazy = &memory.sections.lazy;
    if !back_part(memory, 0, lazy, end_of(memory, lazy)) {
        return before == Err(COMPLETE);
    }
    state.store(COMPLETE, Release);
    memory.is_known_complete.store(true, Relaxed);
    true
}

/// Backs a part of every plane up to `end` at least; returns up to where.
pub(crate) fn back(memory: &Memory, part: &Pool, end: u64) -> Option<u64> {
    let end = chunk_up(part, end);
    fence(SeqCst);
    let claimed = memory.word_at(M_PLANES).load(SeqCst).min(memory.sections.plane_count);
    let own = memory.own_planes_by_entry().map(|(_, delta)| delta / memory.sections.plane_len);
    // The planes that this process adds to are backed whatever the count is.
    let beyond = own.filter(|&plane| plane >= claimed);
    let is_shared = part.marks != M_LAZY
        || memory.word_at(M_PLANE_0).load(SeqCst) != PARTIAL
        || memory.is_known_complete.load(Relaxed);
    let first = if is_shared { 0 } else { SHARED_PLANES };
    let all = (first..claimed.max(SHARED_PLANES)).chain(beyond);
    let all = all.chain(lent_planes(memory));
    all.into_iter().all(|plane| back_part(memory, plane, part, end)).then_some(end)
}

/// The numbers of the lent planes that are in use or about to be, among all planes.
fn lent_planes(memory: &Memory) -> impl Iterator<Item = u64> {
    let Sections { plane_count, lent_count, .. } = memory.sections;
    let count = memory.word_at(M_LENT).load(SeqCst).min(lent_count);
    plane_count..plane_count + count
}

/// Backs all of one plane that is in use; false if there is no memory.
pub(crate) fn back_plane(memory: &Memory, plane: u64) -> bool {
    let pools = [memory.sections.striped, memory.sections.lazy];
    pools.iter().all(|pool| back_part(memory, plane, pool, end_of(memory, pool)))
}

/// Backs a part of one plane up to `end`; false if there is no memory.
fn back_part(memory: &Memory, plane: u64, part: &Pool, end: u64) -> bool {
    end == 0 || memory.back_pages(part.at + plane * memory.sections.plane_len, end).is_some()
}

/// Up to where a part of a plane is to be backed.
fn end_of(memory: &Memory, part: &Pool) -> u64 {
    let used = memory.word_at(part.marks + USED).load(SeqCst);
    let ahead = if part.marks == M_LAZY { memory.word_at(M_AHEAD).load(SeqCst) } else { 0 };
    chunk_up(part, used.max(ahead))
}

/// Planes are backed in the same chunks when cells are made and when a plane is claimed, so a chunk
/// that is backed in one plane is backed in all.
fn chunk_up(part: &Pool, end: u64) -> u64 {
    end.min(part.len).next_multiple_of(CHUNK).min(part.len)
}

/// The copy of a striped cell in the plane at a distance from plane 0, which is one that
/// [`atomic_plane_of`] gave for the cell's region.
#[inline]
#[cfg_attr(not(loom), allow(unused_variables))]
fn copy_at(memory: &Memory, cell: Word, delta: u64) -> Word {
    // Invariant 3.
    debug_assert!(memory.is_in_plane_0(cell) && memory.is_plane(delta), "{delta}");
    // SAFETY: only striped cells come here, each as its copy in plane 0, which was checked to lie
    // inside that plane. The distance is 0, or was checked to be that of another plane of the same
    // length, so the same place there is inside the mapping, which is never unmapped.
    let copy = unsafe { &*std::ptr::from_ref(cell).add((delta / WORD) as usize) };
    #[cfg(loom)]
    memory.map.assert_backed(copy);
    copy
}

/// The copies of a striped cell that each of the CPUs below a number may add to atomically. They get
/// planes for that. `None` if there is no memory for one.
pub(crate) fn atomic_copies(memory: &'static Memory, cell: Word, cpus: usize) -> Option<Vec<Word>> {
    (0..cpus as u64).map(|cpu| atomic_copy(memory, cell, cpu)).collect()
}

/// Every copy of a striped cell that may have been added to, in a fixed order: the shared plane, then
/// the CPUs' by kind and CPU id.
pub(crate) fn copies(memory: &'static Memory, cell: Word) -> impl Iterator<Item = Word> {
    let at = memory.offset_of(cell).unwrap_or(0);
    source::planes_of(memory, at).filter_map(move |delta| memory.word_after(cell, delta))
}

#[cfg(all(test, target_os = "linux", not(loom), not(miri)))]
mod tests;
