//! The overview of a region by a reader from outside: its identity, how full it is, and the
//! processes that have it open.
//!
//! As a snapshot, it trusts no word: counts are cut to the size of their part, and offsets are
//! checked before they are followed.

use std::time::Duration;

use super::holdings;
use crate::clock::{boot_nanos, unix_nanos_of};
use crate::layout::*;
use crate::memory::path::AddPath;
use crate::series::family::{self, FamilyHead};
use crate::series::record::{self, FREE};
use crate::source::{HEAD, Source, TEXT};
use crate::usage::{self, Usage};
use crate::values::Storage;

/// A region at one instant, without its values.
#[derive(Clone, Debug)]
pub struct Overview {
    /// The version of its layout.
    pub layout_version: u64,
    /// The boot of the machine that it was made in, as `/proc/sys/kernel/random/boot_id`
    /// has it, without dashes.
    pub boot_id: String,
    /// When it was made, in nanoseconds since 1970.
    pub created_unix_nanos: u64,
    /// When series that are idle were last looked for, in nanoseconds since 1970, as the wall clock
    /// has that time now.
    pub swept_unix_nanos: u64,
    /// How long ago that was, whatever became of the wall clock since.
    pub since_sweep: Duration,
    /// Bytes that it may come to use.
    pub len: u64,
    /// How much of each part is in use.
    pub usage: Usage,
    /// Series that it can hold.
    pub series_max: u64,
    /// Records of families that were ever made, those that ended among them.
    pub families: u64,
    /// Families that it can hold.
    pub families_max: u64,
    /// CPUs that have a plane of their own.
    pub cpu_planes: u64,
    /// CPUs that can have one.
    pub cpu_planes_max: u64,
    /// Processes that can have a slot of their own.
    pub processes_max: u64,
    /// Bytes of text that are handed out and that no family and no series names: texts that are
    /// being made at this instant, and texts that killed processes leaked.
    pub text_without_owner: u64,
    /// Bytes of cells, of all pools, that are handed out and that no series holds. Exemplars, bases
    /// and pins count as cells.
    pub cells_without_owner: u64,
    /// Families that a later definition of their name has replaced.
    pub families_retired: u64,
    /// Families that were ended by their name.
    pub families_ended: u64,
    /// Process slots that were ever taken, in their order.
    pub processes: Vec<ProcessSlot>,
    /// The families that a snapshot has.
    pub family_uses: Vec<FamilyUse>,
}

/// A process slot, and the process that took it last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessSlot {
    /// Its number.
    pub slot: u64,
    /// The process's id, as it sees it itself; in two namespaces two may have the same.
    pub pid: u64,
    /// When it took the slot, in nanoseconds since 1970, as the wall clock has that time now.
    pub started_unix_nanos: u64,
    /// The path of its striped adds, when it opened the region.
    pub adds: AddPath,
    /// How often the slot was taken.
    pub taken: u64,
    /// Whether the process lives.
    pub is_alive: bool,
}

/// The facts about a family that a snapshot does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FamilyUse {
    /// Its number: [`FamilyCopy::number`](crate::FamilyCopy::number).
    pub number: u32,
    /// How its cells are stored.
    pub storage: Storage,
    /// Series that live in it, without the overflow series. A kill may leave it one too high.
    pub series: u64,
    /// Series that it may have.
    pub limit: u64,
    /// The number of living processes with slots that registered it.
    pub processes: u64,
}

/// The words that an overview needs beside those of a snapshot, by offset and number of bytes.
pub(crate) fn bits(source: &impl Source) -> Vec<(u64, u64)> {
    let s = source.sections();
    let pools = [&s.records, &s.arena, &s.singles, &s.striped, &s.lazy, &s.owned];
    pools.map(|pool| (pool.bits, usage::words_of_bits(source, pool) * WORD)).to_vec()
}

/// Makes the overview of a source whose marks were checked.
pub(crate) fn overview(source: &impl Source) -> Overview {
    let s = source.sections();
    let usage = usage::of(source);
    let mut overview = Overview {
        layout_version: source.word(H_VERSION),
        boot_id: format!("{:016x}{:016x}", source.word(H_BOOT_ID), source.word(H_BOOT_ID + WORD)),
        created_unix_nanos: source.word(H_CREATED),
        swept_unix_nanos: unix_nanos_of(source.word(M_SWEPT_AT)),
        since_sweep: Duration::from_nanos(boot_nanos().saturating_sub(source.word(M_SWEPT_AT))),
        len: s.end(),
        usage,
        series_max: s.series_max(),
        families: source.families_used(),
        families_max: s.family_max,
        cpu_planes: source.word(M_PLANES).saturating_sub(SHARED_PLANES),
        cpu_planes_max: s.plane_count - SHARED_PLANES,
        processes_max: s.slots,
        text_without_owner: 0,
        cells_without_owner: 0,
        families_retired: 0,
        families_ended: 0,
        processes: processes(source),
        family_uses: Vec::new(),
    };
    let owned = overview.look_at_families(source) + text_of_series(source);
    overview.text_without_owner = usage.text.taken.saturating_sub(owned);
    let taken = usage.cells().iter().fold(0_u64, |all, part| all.saturating_add(part.taken));
    let records = usage.records.reached / RECORD_LEN;
    overview.cells_without_owner = taken.saturating_sub(holdings::cells_of_series(source, records));
    overview
}

impl Overview {
    /// Fills in the facts about families, and returns the bytes of their texts.
    fn look_at_families(&mut self, source: &impl Source) -> u64 {
        let alive = self.processes.iter().filter(|process| process.is_alive);
        let alive: Vec<u64> = alive.map(|process| process.slot).collect();
        let mut text = 0_u64;
        for id in 0..self.families {
            let word = |at| source.word(source.sections().families + id * FAMILY_LEN + at);
            let Some((state, head)) = FamilyHead::unpack(word(FAMILY_HEAD)) else { continue };
            match state {
                family::RETIRED => self.families_retired += 1,
                family::ENDED => self.families_ended += 1,
                family::BUILDING | family::PUBLISHED => {}
                _ => continue,
            }
            text = text.saturating_add(granules(word(FAMILY_NAME)));
            text = text.saturating_add(granules(word(FAMILY_DEFINITION)));
            if state != family::PUBLISHED {
                continue;
            }
            let users = alive
                .iter()
                .filter(|&slot| word(FAMILY_USERS + slot / 64 * WORD) >> (slot % 64) & 1 == 1);
            self.family_uses.push(FamilyUse {
                number: id as u32,
                storage: head.storage,
                series: word(FAMILY_SERIES),
                limit: word(FAMILY_LIMIT),
                processes: users.count() as u64,
            });
        }
        text
    }
}

/// The slots that were ever taken.
fn processes(source: &impl Source) -> Vec<ProcessSlot> {
    let taken = source.word(M_SLOTS).min(source.sections().slots);
    let slots = (0..taken).map(|slot| {
        let word = |at| source.slot_word(slot, at);
        let pid = word(SLOT_PID);
        ProcessSlot {
            slot,
            pid,
            started_unix_nanos: unix_nanos_of(word(SLOT_STARTED)),
            adds: AddPath::from_u64(word(SLOT_ADDS)),
            taken: word(SLOT_GENERATION),
            is_alive: pid != 0 && source.lives(slot),
        }
    });
    slots.filter(|slot| slot.pid != 0).collect()
}

/// Bytes of the texts of series, including series that can no longer be found.
fn text_of_series(source: &impl Source) -> u64 {
    let records = &source.sections().records;
    let count = source.used_of(records) / RECORD_LEN;
    let taken = source.records(records.at, count).into_iter().flatten();
    let taken = taken.filter(|one| record::state(one[HEAD]) != FREE);
    taken.fold(0, |all: u64, one| all.saturating_add(granules(one[TEXT])))
}

/// Bytes of the granules that a text takes.
fn granules(span: u64) -> u64 {
    Span::unpack(span).len.next_multiple_of(WORD)
}
