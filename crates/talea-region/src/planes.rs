//! Planes: the copies of the striped cells, one a CPU, and the atomic ones that
//! everybody else shares.
//!
//! Trust. An add turns the distance of its CPU's plane into an address. So it reads that distance
//! from a table of this process ([`Region::cpu_table`]), which no other process can write to. An
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

use crate::cells::add_float_atomically;
use crate::layout::*;
use crate::primitive::AtomicU64;
use crate::region::Region;
use crate::restartable::{self, Done};
use crate::source;
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
    let Some(own) = region.cpu_table().get(cpu as usize) else { return false };
    if own.load(Relaxed) != 0 {
        return true;
    }
    let entry = region.cpu_entry(cpu);
    if entry.load(Acquire) == 0 {
        assign_plane(region, entry);
    }
    let delta = entry.load(Acquire);
    let is_usable = is_in_use(region, delta) && owners(region, delta).all(|owner| owner == cpu);
    if is_usable {
        region.cpus_known.fetch_max(cpu + 1, Relaxed);
        own.store(delta, Release);
    }
    is_usable
}

/// Publishes a plane that no CPU has, if there is one left and it can be backed.
fn assign_plane(region: &'static Region, entry: &AtomicU64) {
    let claimed = region.mark(M_PLANES);
    let end = || {
        let ahead = region.mark(M_AHEAD).load(SeqCst);
        chunk_up(region, region.mark(M_STRIPED).load(SeqCst).max(ahead))
    };
    // Mostly a CPU has no plane because all are taken.
    if claimed.load(Relaxed) >= region.s.plane_count || region.is_refused(end()) {
        return;
    }
    // More than one is tried only if somebody damaged the count.
    for _ in 0..region.s.plane_count {
        let next = |n: u64| (n < region.s.plane_count).then(|| n + 1);
        let Ok(plane) = claimed.fetch_update(SeqCst, SeqCst, next) else { return };
        let delta = plane * region.s.striped.len;
        if plane < ATOMIC_PLANES || owners(region, delta).next().is_some() {
            continue;
        }
        // Read after the count has moved.
        let backed = region.back_pages(region.s.plane(plane), end()).is_some();
        if !backed || entry.compare_exchange(0, delta, Release, Relaxed).is_err() {
            // No memory, or another thread of this CPU was first. If nobody claimed
            // since, the plane goes back.
            let _ = claimed.compare_exchange(plane + 1, plane, SeqCst, Relaxed);
        }
        return;
    }
}

/// Whether a distance is that of a plane which a CPU may have, and which is backed.
fn is_in_use(region: &Region, delta: u64) -> bool {
    let claimed = region.mark(M_PLANES).load(SeqCst).min(region.s.plane_count);
    let len = region.s.striped.len;
    delta % len == 0 && (ATOMIC_PLANES * len..claimed * len).contains(&delta)
}

/// The CPUs that have a plane, as this process or the region says.
fn owners(region: &Region, delta: u64) -> impl Iterator<Item = u64> {
    (0..CPUS).filter(move |&cpu| {
        let own = region.cpu_table().get(cpu as usize);
        own.is_some_and(|own| own.load(Relaxed) == delta)
            || region.cpu_entry(cpu).load(Relaxed) == delta
    })
}

impl Region {
    /// The region's own entry of a CPU: how far its plane lies behind plane 0, or 0. Anybody who
    /// may write to the region can have changed it.
    fn cpu_entry(&self, cpu: u64) -> &'static AtomicU64 {
        self.mark(CPU_TABLE + cpu * WORD)
    }

    /// This process's copy of the CPU table, as far as it has anything.
    pub(crate) fn own_entries(&self) -> &'static [AtomicU64] {
        let known = self.cpus_known.load(Relaxed).min(CPUS);
        &self.cpu_table()[..known as usize]
    }

    /// Puts what this process knows of the CPU table back into the region, so that those who read
    /// it from outside find every plane again. It changes nothing unless somebody damaged the table.
    pub(crate) fn restore_cpu_table(&self) {
        let mut end = 0;
        for (cpu, own) in self.own_entries().iter().enumerate() {
            let delta = own.load(Relaxed);
            if delta == 0 {
                continue;
            }
            end = end.max(delta / self.s.striped.len + 1);
            let entry = self.cpu_entry(cpu as u64);
            let found = entry.load(Relaxed);
            // A plane that the CPU got from another process since is its own too.
            let is_own = |found| is_in_use(self, found) && owners(self, found).nth(1).is_none();
            if found != delta && !is_own(found) {
                let _ = entry.compare_exchange(found, delta, Release, Relaxed);
            }
        }
        let claimed = self.mark(M_PLANES);
        if claimed.load(Relaxed) < end {
            claimed.fetch_max(end, SeqCst);
        }
    }
}

/// Says that cells up to `end` will be backed in every plane.
pub(crate) fn announce(region: &Region, end: u64) {
    region.mark(M_AHEAD).fetch_max(end, SeqCst);
}

/// Backs every plane up to `end` at least; returns up to where.
pub(crate) fn back(region: &Region, end: u64) -> Option<u64> {
    let end = chunk_up(region, end);
    let claimed = region.mark(M_PLANES).load(SeqCst).min(region.s.plane_count);
    let own = region.own_entries().iter().map(|own| own.load(Relaxed) / region.s.striped.len);
    // Those that this process adds to are backed whatever the count says.
    let beyond = own.filter(|&plane| plane >= claimed);
    for plane in (0..claimed.max(ATOMIC_PLANES)).chain(beyond) {
        region.back_pages(region.s.plane(plane), end)?;
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
    source::planes(region).filter_map(move |delta| region.word_after(cell, delta))
}
