//! Planes: the copies of the striped cells. Each CPU has one; all other adds share the atomic ones.
//!
//! Trust. An add turns the distance of its CPU's plane into an address. So it reads that distance
//! from a table of this process ([`Memory::cpu_table`]), which no other process can write to. An
//! entry is copied there from the region's table when this process first adds on that CPU, if it is
//! the distance of a plane that is in use and that no other CPU has. A CPU whose entry in the
//! region is anything else uses the atomic planes.
//!
//! Threading. A plane beyond the atomic ones belongs to one CPU for the life of
//! the region: the table entry, once set, never changes, so all copies of it agree. Its pages are
//! backed before the entry is published. A thread that makes new striped cells first moves
//! the mark of used bytes, then reads how many planes are claimed; a thread that
//! claims a plane first moves that count, then reads the mark. Both are
//! sequentially consistent, so at least one of the two sees the other and backs
//! the new cells' pages in the new plane. A thread that backs pages ahead of use first moves
//! a mark of its own, in the same way.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use super::restartable::{self, Done};
use super::words::Memory;
use crate::layout::*;
use crate::primitive::{AtomicU64, add_float_atomically};
use crate::source;
use crate::threads::thread_number;

/// An integer add that found no plane: claims one for this CPU, or adds to an
/// atomic plane.
#[inline(never)]
pub(crate) fn add_slowly(memory: &'static Memory, cell: &'static AtomicU64, n: u64) {
    if claim_plane(memory) && restartable::add(cell, memory.cpu_table(), n) {
        return;
    }
    atomic_copy(memory, cell).fetch_add(n, Relaxed);
}

/// Completes an operation that adds 1 to one cell and `n` to another.
#[cold]
#[inline(never)]
pub(crate) fn count_rest(
    memory: &'static Memory,
    one: &'static AtomicU64,
    other: &'static AtomicU64,
    n: u64,
    done: Done,
) {
    if done == Done::NEITHER {
        add_slowly(memory, one, 1);
    }
    if done != Done::BOTH {
        add_slowly(memory, other, n);
    }
}

/// As [`add_slowly`] for a float cell.
#[inline(never)]
pub(crate) fn add_float_slowly(memory: &'static Memory, cell: &'static AtomicU64, x: f64) {
    if claim_plane(memory) && restartable::add_float(cell, memory.cpu_table(), x) {
        return;
    }
    add_float_atomically(atomic_copy(memory, cell), x);
}

/// Gives the running CPU a plane if there is one left; true where it has one
/// now.
#[inline]
fn claim_plane(memory: &'static Memory) -> bool {
    match restartable::cpu() {
        Some(cpu) => claim_plane_for(memory, cpu),
        None => false,
    }
}

#[cold]
fn claim_plane_for(memory: &'static Memory, cpu: u64) -> bool {
    let Some(own) = memory.cpu_table().get(cpu as usize) else { return false };
    if own.load(Relaxed) != 0 {
        return true;
    }
    let entry = memory.cpu_entry(cpu);
    if entry.load(Acquire) == 0 {
        assign_plane(memory, entry);
    }
    let delta = entry.load(Acquire);
    let is_usable = is_in_use(memory, delta) && owners(memory, delta).all(|owner| owner == cpu);
    if is_usable {
        memory.cpus_known.fetch_max(cpu + 1, Relaxed);
        own.store(delta, Release);
    }
    is_usable
}

/// Publishes a plane that no CPU has, if there is one left and it can be backed.
fn assign_plane(memory: &'static Memory, entry: &AtomicU64) {
    let claimed = memory.word_at(M_PLANES);
    let end = || {
        let ahead = memory.word_at(M_AHEAD).load(SeqCst);
        chunk_up(memory, memory.word_at(M_STRIPED).load(SeqCst).max(ahead))
    };
    // Mostly a CPU has no plane because all are taken.
    if claimed.load(Relaxed) >= memory.sections.plane_count || memory.is_refused(end()) {
        return;
    }
    // More than one is tried only if the count is damaged.
    for _ in 0..memory.sections.plane_count {
        let next = |n: u64| (n < memory.sections.plane_count).then(|| n + 1);
        let Ok(plane) = claimed.fetch_update(SeqCst, SeqCst, next) else { return };
        let delta = plane * memory.sections.striped.len;
        if plane < ATOMIC_PLANES || owners(memory, delta).next().is_some() {
            continue;
        }
        // Read after the count has moved.
        let backed = memory.back_pages(memory.sections.plane(plane), end()).is_some();
        if !backed || entry.compare_exchange(0, delta, Release, Relaxed).is_err() {
            // No memory, or another thread of this CPU was first. If no thread has claimed one
            // since, the plane is given back.
            let _ = claimed.compare_exchange(plane + 1, plane, SeqCst, Relaxed);
        }
        return;
    }
}

/// Whether a distance is that of a plane that a CPU may have and that is backed.
fn is_in_use(memory: &Memory, delta: u64) -> bool {
    let claimed = memory.word_at(M_PLANES).load(SeqCst).min(memory.sections.plane_count);
    let len = memory.sections.striped.len;
    delta % len == 0 && (ATOMIC_PLANES * len..claimed * len).contains(&delta)
}

/// The CPUs that have a plane, by the table of this process or of the region.
fn owners(memory: &Memory, delta: u64) -> impl Iterator<Item = u64> {
    (0..CPUS).filter(move |&cpu| {
        let own = memory.cpu_table().get(cpu as usize);
        own.is_some_and(|own| own.load(Relaxed) == delta)
            || memory.cpu_entry(cpu).load(Relaxed) == delta
    })
}

impl Memory {
    /// The region's own entry of a CPU: the distance of its plane from plane 0, or 0. Any process
    /// that may write to the region can have changed it.
    fn cpu_entry(&self, cpu: u64) -> &'static AtomicU64 {
        self.word_at(CPU_TABLE + cpu * WORD)
    }

    /// This process's copy of the CPU table, up to the last CPU with an entry.
    pub(crate) fn own_entries(&self) -> &'static [AtomicU64] {
        let known = self.cpus_known.load(Relaxed).min(CPUS);
        &self.cpu_table()[..known as usize]
    }

    /// Restores the region's CPU table from this process's copy, so that readers from outside find
    /// every plane. It changes nothing unless the table is damaged.
    pub(crate) fn restore_cpu_table(&self) {
        let mut end = 0;
        for (cpu, own) in self.own_entries().iter().enumerate() {
            let delta = own.load(Relaxed);
            if delta == 0 {
                continue;
            }
            end = end.max(delta / self.sections.striped.len + 1);
            let entry = self.cpu_entry(cpu as u64);
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
    let own =
        memory.own_entries().iter().map(|own| own.load(Relaxed) / memory.sections.striped.len);
    // The planes that this process adds to are backed whatever the count is.
    let beyond = own.filter(|&plane| plane >= claimed);
    for plane in (0..claimed.max(ATOMIC_PLANES)).chain(beyond) {
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

/// The copy of a striped cell that this thread may add to atomically.
#[inline]
fn atomic_copy(memory: &'static Memory, cell: &'static AtomicU64) -> &'static AtomicU64 {
    let plane = thread_number() % ATOMIC_PLANES;
    let words = (plane * memory.sections.striped.len / WORD) as usize;
    // SAFETY: only striped cells come here, each as its copy in plane 0, which
    // was checked to lie inside that plane. The atomic planes follow each other,
    // so the same distance into this thread's is inside the mapping, which is
    // never unmapped.
    unsafe { &*std::ptr::from_ref(cell).add(words) }
}

/// Every copy of a striped cell that may have been added to, in a fixed order: the atomic planes,
/// then the CPUs' by CPU id.
pub(crate) fn copies(
    memory: &'static Memory,
    cell: &'static AtomicU64,
) -> impl Iterator<Item = &'static AtomicU64> {
    source::planes(memory).filter_map(move |delta| memory.word_after(cell, delta))
}
