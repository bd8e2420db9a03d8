//! A snapshot: every family, series and value at one instant, copied out.
//!
//! Planes are read in a fixed order and cells only grow, so of two snapshots
//! the later never shows less. Nothing in it points into the region.
//!
//! The same code reads a region that this process maps and a copy of one that
//! it does not: each is a [`Source`] of words. It believes none of them. What
//! does not fit is left out, and what is claimed twice is bounded by the
//! region's own length. It goes through the records a window at a time, so that such a
//! copy need not have all of them at once.

mod merge;
mod plain;
mod runs;

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use self::plain::Batch;
use self::runs::{Copies, Gathering, Run};
use crate::cells::{self, Combine, Number, Storage};
use crate::exemplars::{self, Exemplar};
use crate::families::{self, FamilyHead};
use crate::groups::{self, Chosen};
use crate::hash::hash;
use crate::layout::*;
use crate::more::{bases_len, more_len};
use crate::record::{self, CellRun, Head, PUBLISHED, STRIPES, stripe_len};
use crate::segments::Segment;
use crate::sweep::Idling;
use crate::table;
use crate::texts::Texts;
use crate::wipe;

/// Where a snapshot's words come from.
pub(crate) trait Source {
    fn sections(&self) -> &Sections;

    /// `count` words from an offset on; `None` where they are not there.
    fn words(&self, at: u64, count: u64) -> Option<impl Iterator<Item = u64>>;

    /// Whether the process of a slot lives.
    fn lives(&self, slot: u64) -> bool;

    /// Whether a record still says what it said when the snapshot was begun, so
    /// that what was read for it meanwhile is its own.
    fn stands(&self, record: u64) -> bool;

    /// From 1 to `N` words from an offset on, and the last of them again as often as it
    /// takes: with a fixed length they are copied faster. `None` where they are not there.
    #[inline]
    fn block<const N: usize>(&self, at: u64, count: u64) -> Option<[u64; N]> {
        let mut words = self.words(at, count)?;
        let mut last = words.next()?;
        Some(std::array::from_fn(|n| {
            if n > 0 {
                last = words.next().unwrap_or(last);
            }
            last
        }))
    }

    /// A series record's words; 0 where they are not there.
    #[inline(always)]
    fn record(&self, at: u64) -> Record {
        self.block(at, RECORD_WORDS as u64).unwrap_or([0; RECORD_WORDS])
    }

    /// The words of series records in a row.
    fn records(&self, at: u64, count: u64) -> Option<impl Iterator<Item = Record>> {
        Some((0..count).map(move |n| self.record(at + n * RECORD_LEN)))
    }

    /// How far those planes lie behind plane 0 that the source itself knows of, whatever the CPU
    /// table says; 0 for none.
    fn own_planes(&self) -> impl Iterator<Item = u64> {
        std::iter::empty()
    }

    /// The seed of the region's hashes.
    fn seed(&self) -> u64 {
        self.word(H_HASH_SEED)
    }

    /// One word; 0 where it is not there.
    fn word(&self, at: u64) -> u64 {
        self.words(at, 1).and_then(|mut words| words.next()).unwrap_or(0)
    }
}

/// A source that has all of a region but its series, and these a window at a time.
pub(crate) trait Windows {
    type Of: Source;

    fn source(&self) -> &Self::Of;

    /// Has the source show the series of these records, with all that they name, in place
    /// of those before.
    fn turn_to(&mut self, records: Range<u64>) -> io::Result<()>;
}

/// What is there whole.
impl<S: Source> Windows for &S {
    type Of = S;

    fn source(&self) -> &S {
        self
    }

    fn turn_to(&mut self, _: Range<u64>) -> io::Result<()> {
        Ok(())
    }
}

/// A copy of a region's families, series and values.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    families: Vec<FamilyCopy>,
    series: Vec<SeriesCopy>,
    /// Which of them are of which family.
    runs: Vec<Run>,
    texts: Texts,
    values: Vec<u64>,
    /// The processes whose own values some series are.
    owners: Vec<Owner>,
    /// What those series have that have anything beside their cells.
    details: Vec<Details>,
    segments: Vec<SegmentCopy>,
    /// How often each name refused a new series, of all families.
    dropped: BTreeMap<Vec<u8>, u64>,
    scratch: Scratch,
}

/// What is only needed while a snapshot is taken, kept for its memory.
#[derive(Clone, Debug, Default)]
struct Scratch {
    /// How far each plane in use lies behind plane 0.
    planes: Vec<u64>,
    /// The blocks of the living processes.
    living: Vec<Block>,
    /// How far each of those lies behind block 0.
    blocks: Vec<u64>,
    chosen: Chosen,
    gathering: Gathering,
    /// The records that are read together.
    windows: Vec<Range<u64>>,
    more: More,
    /// What a segment held when its series was last wiped.
    base: Vec<u64>,
}

/// What a series has beyond the usual.
#[derive(Clone, Debug, Default)]
struct More {
    /// Where its exemplars are, and when it was last wiped; or 0.
    exemplars: u64,
    wiped: u64,
    /// What its cells held then, if it was.
    base: Vec<u64>,
    /// Where the table is that says what its segments held then, or 0.
    bases: u64,
    /// The entries of its segments, by their number: those that have anything to say.
    segments: Vec<(u64, u64)>,
}

/// A family in a snapshot.
#[derive(Clone, Debug, Default)]
pub struct FamilyCopy {
    /// The name that it is found by.
    pub name: Vec<u8>,
    /// What the layers above keep with it.
    pub definition: Vec<u8>,
    /// Their number for it.
    pub kind: u8,
    /// What its cells count in.
    pub number: Number,
    /// What a value is, of what threads and processes wrote.
    pub combine: Combine,
    /// Nanoseconds since 1970.
    pub created_unix_nanos: u64,
    /// How often a new series was refused.
    pub dropped: u64,
    /// Whether a living process registered it, or otherwise when the last one that did was
    /// started. Of several families of one name, the greatest is the one that is in use.
    pub last_use: LastUse,
    /// Whether its series expire.
    pub expires: bool,
    about: [u64; 5],
    id: u32,
    cells: u16,
    segments: u16,
    /// Which of all runs are its series, in the order of their records; and how many these are.
    runs: Range<usize>,
    series: usize,
    /// Where the first of them is.
    first: usize,
}

/// When a family was last registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LastUse {
    /// By processes that are dead, the last of which was started at that time, in nanoseconds
    /// of the boot clock; 0 if other processes have their places since.
    Dead(u64),
    /// By a process that lives.
    Living,
}

impl Default for LastUse {
    fn default() -> Self {
        Self::Dead(0)
    }
}

impl FamilyCopy {
    /// What tells it apart from all other families of all regions: two copies that have the same
    /// have one name, definition, kind and number.
    pub fn about(&self) -> [u64; 5] {
        self.about
    }

    /// Its number, which no other family of the region has.
    pub fn number(&self) -> u32 {
        self.id
    }

    /// Whether its series are one cell and nothing else.
    #[inline]
    fn is_plain(&self) -> bool {
        (self.cells, self.segments) == (1, 0)
    }
}

/// A series record's words.
pub(crate) type Record = [u64; RECORD_WORDS];
pub(crate) const RECORD_WORDS: usize = (RECORD_LEN / WORD) as usize;
const HEAD: usize = (SERIES_HEAD / WORD) as usize;
const TEXT: usize = (SERIES_TEXT / WORD) as usize;
const CELLS: usize = (SERIES_CELLS / WORD) as usize;
const CREATED: usize = (SERIES_CREATED / WORD) as usize;
const PINS: usize = (SERIES_PINS / WORD) as usize;
const MORE: usize = (SERIES_MORE / WORD) as usize;

/// Half a cache line: there are many.
#[derive(Clone, Copy, Debug)]
struct SeriesCopy {
    /// Where its text lies in that of all, packed.
    text: u64,
    /// Its value, where its family's series are one cell and nothing else; otherwise where
    /// its values begin.
    values: u64,
    created: u64,
    /// Which of the families it is of, until the series of each are brought together.
    family: u32,
    /// Which of the owners it has, or, with the first bit set, which of the details.
    beside: u32,
}

/// Neither.
const NOTHING: u32 = u32::MAX;
const HAS_DETAILS: u32 = 1 << 31;

#[derive(Clone, Debug, Default)]
struct Details {
    exemplars: Vec<Exemplar>,
    /// Which of all segments are its own.
    segments: Range<usize>,
}

#[derive(Clone, Copy, Debug)]
struct SegmentCopy {
    n: u16,
    what: u16,
    count: u16,
    values: usize,
}

/// A segment in a snapshot.
#[derive(Clone, Copy, Debug)]
pub struct SegmentView<'a> {
    /// Which of its series it is.
    pub n: u16,
    /// What those above said of it.
    pub what: u16,
    /// The value of each of its cells.
    pub values: &'a [u64],
}

/// A process that has the region open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its id, as it sees it itself; in two namespaces two may have the same.
    pub pid: u64,
    /// Its slot, which is its alone while it lives.
    pub slot: u64,
    /// Whether another living process had the same id when this one opened the region. It does not
    /// change while the process lives; of living processes with one id, one has none.
    pub has_namesake: bool,
}

/// A series in a snapshot.
#[derive(Clone, Copy, Debug)]
pub struct SeriesView<'a> {
    /// The label text that it was made with.
    pub text: &'a [u8],
    /// The value of each cell; of a float, its bits.
    pub values: &'a [u64],
    /// Nanoseconds since 1970.
    pub created_unix_nanos: u64,
    /// Things that were counted in it, at most one for each cell.
    pub exemplars: &'a [Exemplar],
    segments: Segments<'a>,
}

#[derive(Clone, Copy, Debug)]
struct Segments<'a> {
    own: &'a [SegmentCopy],
    values: &'a [u64],
}

impl<'a> SeriesView<'a> {
    /// Its segments, by their number.
    pub fn segments(&self) -> impl ExactSizeIterator<Item = SegmentView<'a>> + Clone + use<'a> {
        let Segments { own, values } = self.segments;
        own.iter().map(move |&SegmentCopy { n, what, count, values: at }| SegmentView {
            n,
            what,
            values: &values[at..at + usize::from(count)],
        })
    }
}

impl Snapshot {
    #[inline]
    fn details_of(&self, series: &SeriesCopy) -> Option<&Details> {
        if series.beside == NOTHING || series.beside & HAS_DETAILS == 0 {
            return None;
        }
        self.details.get((series.beside & !HAS_DETAILS) as usize)
    }

    /// The families in the order of their registration.
    pub fn families(&self) -> &[FamilyCopy] {
        &self.families
    }

    /// The label text of all series, and zeros between.
    pub fn text(&self) -> &[u8] {
        self.texts.bytes()
    }

    /// The series of a family in the order of their records: that of their birth,
    /// as long as none was removed.
    pub fn series<'a>(
        &'a self,
        family: &'a FamilyCopy,
    ) -> impl ExactSizeIterator<Item = SeriesView<'a>> {
        self.copies(family, 0).map(|series| self.view(family, series))
    }

    /// One of them, counted from 0.
    #[inline]
    pub fn series_at<'a>(&'a self, family: &'a FamilyCopy, n: usize) -> Option<SeriesView<'a>> {
        if n >= family.series {
            return None;
        }
        // A family has a run at least, and mostly one.
        let series = match n {
            0 => self.series.get(family.first)?,
            _ => self.copies(family, n).next()?,
        };
        Some(self.view(family, series))
    }

    /// Of each series of a family, from one on: where its label text begins and ends in
    /// [that of all](Self::text), and its first value.
    #[inline]
    pub fn first_values<'a>(
        &'a self,
        family: &'a FamilyCopy,
        from: usize,
    ) -> impl Iterator<Item = (Range<usize>, u64)> {
        self.copies(family, from).map(|series| {
            let Span { at, len } = Span::unpack(series.text);
            (at as usize..(at + len) as usize, self.first_value(family, series))
        })
    }

    #[inline]
    fn copies(&self, family: &FamilyCopy, from: usize) -> Copies<'_> {
        Copies::new(&self.series, &self.runs[family.runs.clone()], family.series, from)
    }

    #[inline]
    fn first_value(&self, family: &FamilyCopy, series: &SeriesCopy) -> u64 {
        self.values_of(family, series).first().copied().unwrap_or(0)
    }

    #[inline]
    fn values_of<'a>(&'a self, family: &FamilyCopy, series: &'a SeriesCopy) -> &'a [u64] {
        if family.is_plain() {
            return std::slice::from_ref(&series.values);
        }
        &self.values[series.values as usize..][..usize::from(family.cells)]
    }

    #[inline]
    fn view<'a>(&'a self, family: &'a FamilyCopy, series: &'a SeriesCopy) -> SeriesView<'a> {
        let details = self.details_of(series);
        let own = details.map_or(0..0, |details| details.segments.clone());
        SeriesView {
            text: self.texts.at(series.text),
            values: self.values_of(family, series),
            created_unix_nanos: series.created,
            exemplars: details.map_or(&[], |details| details.exemplars.as_slice()),
            segments: Segments { own: &self.segments[own], values: &self.values },
        }
    }
}

impl Snapshot {
    /// Has series that belong to one process each say so in their text: `name` is given
    /// the text and what it may append.
    pub fn name_owners(&mut self, mut name: impl FnMut(&mut Vec<u8>, Owner)) {
        if self.owners.is_empty() {
            return;
        }
        for series in &mut self.series {
            if let Some(owner) = self.owners.get(series.beside as usize) {
                let mut text = self.texts.at(series.text).to_vec();
                name(&mut text, *owner);
                series.text = self.texts.push(&text);
            }
        }
    }

    /// The processes whose own values are in it, once for each such series.
    pub fn owners(&self) -> &[Owner] {
        &self.owners
    }

    /// The processes that had the region open and lived, by their slots: those that have one.
    pub fn living(&self) -> impl Iterator<Item = LivingProcess> + '_ {
        let slots = self.scratch.living.iter().filter(|block| block.owner.slot < SLOT_COUNT);
        slots.map(|block| LivingProcess {
            slot: block.owner.slot,
            started_boot_nanos: block.started,
            pid: block.owner.pid,
        })
    }

    /// How often a new series was refused, by the family's name, where it was; also of
    /// families that were not wanted. Sorted.
    pub fn dropped(&self) -> impl Iterator<Item = (&[u8], u64)> {
        self.dropped.iter().map(|(name, count)| (name.as_slice(), *count))
    }

    /// Makes each series of a family, counted from 0, several of one cell: `part` is
    /// given which one it is, its text and its value. A series goes whose text and
    /// first value are not wanted.
    pub fn split(
        &mut self,
        family: usize,
        parts: usize,
        wants: impl Fn(&[u8], u64) -> bool,
        mut part: impl FnMut(usize, &mut Vec<u8>, &mut u64),
    ) {
        let Some(copy) = self.families.get(family) else { return };
        let from = self.series.len();
        let all = self.runs[copy.runs.clone()].iter().flat_map(Run::range).collect::<Vec<_>>();
        for one in all {
            let one = self.series[one];
            let whole = self.first_value(&self.families[family], &one);
            if !wants(self.texts.at(one.text), whole) {
                continue;
            }
            for n in 0..parts {
                let mut text = self.texts.at(one.text).to_vec();
                let mut values = whole;
                part(n, &mut text, &mut values);
                let text = self.texts.push(&text);
                self.series.push(SeriesCopy { text, values, beside: NOTHING, ..one });
            }
        }
        let (runs, count) = self.push_run(family, from);
        let copy = &mut self.families[family];
        (copy.cells, copy.segments, copy.runs, copy.series) = (1, 0, runs, count);
        copy.first = from;
    }

    /// Adds a family that the region does not hold: what a reader says of it.
    /// Each series has one integer cell.
    pub fn add_family(
        &mut self,
        name: &str,
        definition: Vec<u8>,
        kind: u8,
        series: impl Iterator<Item = (String, u64)>,
    ) {
        let from = self.series.len();
        // No record of the region has this number.
        let id = u32::MAX;
        let told = [name.as_bytes(), &definition].map(|text| hash(0, u64::from(kind), text));
        for (text, value) in series {
            self.series.push(SeriesCopy {
                text: self.texts.push(text.as_bytes()),
                values: value,
                created: 0,
                family: id,
                beside: NOTHING,
            });
        }
        let (runs, count) = self.push_run(self.families.len(), from);
        self.families.push(FamilyCopy {
            name: name.as_bytes().to_vec(),
            definition,
            kind,
            number: Number::Integer,
            combine: Combine::Sum,
            created_unix_nanos: 0,
            dropped: 0,
            last_use: LastUse::Living,
            expires: false,
            about: [told[0], told[1], 0, 0, 0],
            id,
            cells: 1,
            segments: 0,
            runs,
            series: count,
            first: from,
        });
    }

    /// Has the series from one on be of a family: which run they are, and how many.
    fn push_run(&mut self, family: usize, from: usize) -> (Range<usize>, usize) {
        let (run, count) = (self.runs.len(), self.series.len() - from);
        self.runs.push(Run::new(family as u32, from, count));
        (run..run + 1, count)
    }
}

/// Copies the families out of a source that are wanted, into a snapshot whose
/// memory is used again. It fails where a window cannot be had.
pub(crate) fn take(
    mut windows: impl Windows,
    wants: &dyn Fn(&FamilyCopy) -> bool,
    out: &mut Snapshot,
) -> io::Result<()> {
    let mut taken = Taken::begin(windows.source(), out);
    Taking { source: windows.source(), taken: &mut taken }.families(wants);
    let mut chosen = std::mem::take(&mut taken.scratch.chosen);
    let mut ranges = std::mem::take(&mut taken.scratch.windows);
    chosen.choose(&taken.s, taken.out.families.iter().map(|family| family.id));
    taken.scratch.gathering.begin(taken.out.families.len());
    groups::windows_of(windows.source(), &chosen, &mut ranges);
    taken.reserve(windows.source(), &ranges);
    let (mut walk, mut batch) = (Walk::new(&chosen), Batch::default());
    let mut told = Ok(());
    for window in &ranges {
        told = windows.turn_to(window.clone());
        if told.is_err() {
            break;
        }
        let mut taking = Taking { source: windows.source(), taken: &mut taken };
        taking.series(window.clone(), &mut walk, &mut batch);
        if taken.scratch.gathering.is_full(&taken.out.series) {
            taken.gather(&mut walk);
        }
    }
    taken.end(walk);
    taken.scratch.chosen = chosen;
    taken.scratch.windows = ranges;
    taken.out.scratch = taken.scratch;
    told
}

/// How far each plane in use lies behind plane 0, in a fixed order, each once.
pub(crate) fn planes(source: &impl Source) -> impl Iterator<Item = u64> {
    let Sections { striped: Pool { len, .. }, plane_count, .. } = *source.sections();
    let atomic = (0..ATOMIC_PLANES).map(move |plane| plane * len);
    let table = source.words(CPU_TABLE, CPUS).into_iter().flatten().chain(source.own_planes());
    // Each entry names a plane of its CPU's own, or it is not an entry.
    let own = ATOMIC_PLANES * len..plane_count * len;
    let mut seen = [0_u64; MOST_PLANES.div_ceil(64) as usize];
    let mut is_new = move |plane: u64| {
        let word = &mut seen[(plane / 64) as usize];
        let before = std::mem::replace(word, *word | 1 << (plane % 64));
        before >> (plane % 64) & 1 == 0
    };
    atomic.chain(
        table.filter(move |delta| own.contains(delta) && delta % len == 0 && is_new(delta / len)),
    )
}

/// A living process's block of cells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    /// How far it lies behind block 0.
    pub(crate) delta: u64,
    owner: Owner,
    /// When the process took its slot, in nanoseconds of the boot clock.
    started: u64,
}

/// A process that had the region open when a snapshot was taken, and lived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LivingProcess {
    /// Its slot, which is its alone while it lives.
    pub slot: u64,
    /// When it took the slot, in nanoseconds of the boot clock.
    pub started_boot_nanos: u64,
    /// Its id, as it sees it itself.
    pub pid: u64,
}

/// The blocks of the living processes.
pub(crate) fn living(source: &impl Source) -> impl Iterator<Item = Block> {
    let slots = (0..=SLOT_COUNT).filter(|&slot| {
        // The block that is shared belongs to nobody who could be dead.
        slot == SLOT_COUNT
            || source.word(SLOTS + slot * SLOT_LEN + SLOT_PID) != 0 && source.lives(slot)
    });
    slots.map(|slot| {
        // The processes that share a block have no name.
        let word = |at| match slot {
            SLOT_COUNT => 0,
            slot => source.word(SLOTS + slot * SLOT_LEN + at),
        };
        let (pid, has_namesake) = (word(SLOT_PID), word(SLOT_NAMESAKE) != 0);
        let owner = Owner { pid, slot, has_namesake };
        let started = word(SLOT_STARTED);
        Block { delta: slot * source.sections().owned.len, owner, started }
    })
}

/// A walk through the records, and what it knows of the family that it is at. Of a family's
/// series there are mostly many in a row.
struct Walk<'a> {
    chosen: &'a Chosen,
    id: u64,
    /// Which of the chosen it is.
    place: u32,
    /// Whether it may have plain series.
    may_be_plain: bool,
    /// Where the run of its series begins, and how many these are.
    from: usize,
    count: usize,
}

impl<'a> Walk<'a> {
    fn new(chosen: &'a Chosen) -> Self {
        // No family has that number.
        let id = u64::MAX;
        Self { chosen, id, place: 0, may_be_plain: false, from: 0, count: 0 }
    }
}

/// What is taken so far.
struct Taken<'a> {
    s: Sections,
    /// That of the region's hashes, which no other has.
    seed: u64,
    scratch: Scratch,
    /// Bytes of names and definitions so far.
    family_text: u64,
    /// Bytes of exemplars that there can still be.
    exemplar_room: u64,
    /// More than this cannot be in the region.
    limit: u64,
    out: &'a mut Snapshot,
}

impl<'a> Taken<'a> {
    fn begin(source: &impl Source, out: &'a mut Snapshot) -> Self {
        out.series.clear();
        out.runs.clear();
        out.texts.truncate(0);
        out.values.clear();
        out.owners.clear();
        out.details.clear();
        out.segments.clear();
        out.dropped.clear();
        let s = *source.sections();
        let mut scratch = std::mem::take(&mut out.scratch);
        let Scratch { planes: all, living: alive, blocks, .. } = &mut scratch;
        all.clear();
        all.extend(planes(source));
        alive.clear();
        alive.extend(living(source));
        blocks.clear();
        blocks.extend(alive.iter().map(|block| block.delta));
        let (seed, exemplar_room) = (source.seed(), s.singles.len);
        let limit = s.plane(s.plane_count);
        Self { s, seed, scratch, family_text: 0, exemplar_room, limit, out }
    }

    /// Has room for the series of these records and for their texts, before there are many:
    /// what grows step by step leaves holes in memory as large as itself, of each scrape.
    fn reserve(&mut self, source: &impl Source, windows: &[Range<u64>]) {
        let in_use = |pool: &Pool| groups::in_use(source, pool);
        let wanted: u64 = windows.iter().map(|records| records.end - records.start).sum();
        let all = (in_use(&self.s.records) / RECORD_LEN).max(1);
        // As much as their share of all texts.
        let texts = u128::from(in_use(&self.s.arena)) * u128::from(wanted) / u128::from(all);
        self.out.series.reserve(wanted as usize);
        self.out.texts.reserve(texts as u64);
    }

    /// Ends a walk.
    fn end(&mut self, mut walk: Walk<'_>) {
        self.gather(&mut walk);
        let Snapshot { families, runs, .. } = &mut *self.out;
        runs::of_families(runs, |family, runs, count, first| {
            let family = &mut families[family as usize];
            (family.runs, family.series, family.first) = (runs, count, first);
        });
    }

    fn gather(&mut self, walk: &mut Walk<'_>) {
        self.end_run(walk);
        self.scratch.gathering.gather(&mut self.out.series, &mut self.out.runs);
    }

    /// Notes the series of its family that a walk has met in a row.
    fn end_run(&mut self, walk: &mut Walk<'_>) {
        let count = std::mem::take(&mut walk.count);
        if count > 0 {
            self.out.runs.push(Run::new(walk.place, walk.from, count));
            walk.from += count;
        }
    }
}

/// Takes what a source shows.
struct Taking<'s, 'a, S> {
    source: &'s S,
    taken: &'s mut Taken<'a>,
}

impl<S: Source> Taking<'_, '_, S> {
    fn families(&mut self, wants: &dyn Fn(&FamilyCopy) -> bool) {
        let backed = self.source.word(M_FAMILIES + BACKED);
        let used = self.source.word(M_FAMILIES).min(backed) / FAMILY_LEN;
        let used = used.min(self.taken.s.family_max) as u32;
        // Names and definitions go where those of the last time were.
        let mut places = std::mem::take(&mut self.taken.out.families);
        let mut filled = 0;
        for id in 0..used {
            if filled == places.len() {
                places.push(FamilyCopy::default());
            }
            let place = &mut places[filled];
            if self.family(id, place).is_none() {
                continue;
            }
            if place.dropped > 0 {
                let dropped = self.taken.out.dropped.entry(place.name.clone()).or_default();
                *dropped = dropped.wrapping_add(place.dropped);
            }
            filled += usize::from(wants(place));
        }
        places.truncate(filled);
        self.taken.out.families = places;
    }

    fn family(&mut self, id: u32, out: &mut FamilyCopy) -> Option<()> {
        const WORDS: usize = (FAMILY_IDLE / WORD) as usize + 1;
        let at = self.taken.s.families + u64::from(id) * FAMILY_LEN;
        let words: [u64; WORDS] = self.source.block(at, WORDS as u64)?;
        let word = |at: u64| words[(at / WORD) as usize];
        let (families::PUBLISHED, head) = FamilyHead::unpack(word(FAMILY_HEAD))? else {
            return None;
        };
        let [name, definition, created] =
            [FAMILY_NAME, FAMILY_DEFINITION, FAMILY_CREATED].map(word);
        let spans = [name, definition].map(Span::unpack);
        // Each has text of its own, so together it fits the region.
        self.taken.family_text += spans[0].len + spans[1].len;
        if self.taken.family_text > self.taken.limit {
            return None;
        }
        // Where a family is that was published, there is never another.
        let about = [self.taken.seed, word(FAMILY_HEAD), name, definition, created];
        if out.about != about {
            out.about = [0; 5];
            out.name.clear();
            out.definition.clear();
            self.text(spans[0], &mut out.name)?;
            self.text(spans[1], &mut out.definition)?;
            out.about = about;
        }
        out.kind = head.kind;
        out.number = head.number;
        out.combine = head.combine;
        out.created_unix_nanos = created;
        out.dropped = word(FAMILY_DROPPED);
        out.last_use = match word(FAMILY_ALWAYS_USED) {
            0 => self.last_use(|n| word(FAMILY_USERS + n * WORD)),
            _ => LastUse::Living,
        };
        out.expires = Idling::unpack(word(FAMILY_IDLE)).sweeps > 0;
        out.id = id;
        out.cells = head.cells;
        out.segments = head.segments;
        (out.runs, out.series) = (0..0, 0);
        Some(())
    }

    /// When one of a set of processes, 64 slots a word, last had a family.
    fn last_use(&self, users: impl Fn(u64) -> u64) -> LastUse {
        let has = |slot: u64| users(slot / 64) >> (slot % 64) & 1 == 1;
        let alive = self.taken.scratch.living.iter().map(|block| block.owner.slot);
        if alive.filter(|&slot| slot < SLOT_COUNT).any(has) {
            return LastUse::Living;
        }
        if (0..SLOT_WORDS).all(|n| users(n) == 0) {
            return LastUse::Dead(0);
        }
        let started = |slot| self.source.word(SLOTS + slot * SLOT_LEN + SLOT_STARTED);
        LastUse::Dead((0..SLOT_COUNT).filter(|&slot| has(slot)).map(started).max().unwrap_or(0))
    }

    /// Copies the series of some records.
    fn series(&mut self, records: Range<u64>, walk: &mut Walk<'_>, batch: &mut Batch) {
        for first in records.clone().step_by(GROUP as usize) {
            let mut rest = first..records.end.min(first + GROUP);
            while !rest.is_empty() {
                rest.start = self.plain_series(rest.clone(), walk, batch);
                for n in rest.by_ref() {
                    self.any_series(n, walk);
                    if walk.may_be_plain {
                        break;
                    }
                }
            }
        }
    }

    /// Has a walk come to a family; false where that is not wanted.
    #[inline(never)]
    fn come_to(&mut self, id: u32, walk: &mut Walk<'_>) -> bool {
        let Some(place) = walk.chosen.place(id) else { return false };
        self.taken.end_run(walk);
        walk.may_be_plain = self
            .taken
            .out
            .families
            .get(place as usize)
            .is_some_and(|family| family.is_plain() && !family.combine.knows_silence());
        (walk.id, walk.place) = (u64::from(id), place);
        true
    }

    /// Copies the series of a record, if there is one that is wanted.
    #[inline(never)]
    fn any_series(&mut self, n: u64, walk: &mut Walk<'_>) {
        let at = self.taken.s.records.at + n * RECORD_LEN;
        let record = self.source.record(at);
        let head = record[HEAD];
        if record::state(head) != PUBLISHED {
            return;
        }
        let head = Head::unpack(head);
        if u64::from(head.family) != walk.id && !self.come_to(head.family, walk) {
            return;
        }
        let series = self.taken.out.series.len();
        let (texts, values) = (self.taken.out.texts.len(), self.taken.out.values.len());
        let segments = self.taken.out.segments.len();
        let copied = self.one_series(&record, walk.place, head);
        if copied.is_none() || !self.source.stands(at) {
            self.taken.out.series.truncate(series);
            self.taken.out.texts.truncate(texts);
            self.taken.out.values.truncate(values);
            self.taken.out.segments.truncate(segments);
        }
        walk.count += self.taken.out.series.len() - series;
    }

    /// Appends the text of a series; where it lies now, packed.
    fn push_text(&mut self, span: Span) -> Option<u64> {
        let (at, count) = text_place(&self.taken.s, span)?;
        Some(self.taken.out.texts.push_words(self.source.words(at, count)?, span.len))
    }

    fn one_series(&mut self, record: &Record, family: u32, head: Head) -> Option<()> {
        let of = &self.taken.out.families[family as usize];
        let FamilyCopy { cells, segments, number, combine, .. } = *of;
        let is_plain = of.is_plain();
        let run = CellRun::unpack(record[CELLS])?;
        if run.count != u64::from(cells) {
            return None;
        }
        // What a damaged record claims costs nothing: its text is copied before its
        // cells are summed, and each series has cells and text of its own, so together
        // they fit the region.
        let values = self.taken.out.values.len();
        let span = Span::unpack(record[TEXT]);
        if (values as u64 + run.count) * WORD > self.taken.limit
            || self.taken.out.texts.len() + span.len > self.taken.limit
        {
            return None;
        }
        let text = self.push_text(span)?;
        let created = record[CREATED];
        let (from, values) = (values, values as u64);
        let mut series = SeriesCopy { text, values, created, family, beside: NOTHING };
        if run.storage == Storage::Owned && combine.knows_silence() {
            return self.owned_values(series, run, number, combine, is_plain);
        }
        let more = self.more(record[MORE], run, segments).is_some();
        // Most series are one cell.
        let digest = match (run.storage, run.count) {
            (Storage::Single, 1) => {
                let value = self.source.words(run.at, 1)?.next()?;
                self.taken.out.values.push(value);
                value
            }
            _ => self.sum(run, number)?,
        };
        if head.hidden && digest == self.seen(record[PINS])? {
            return None;
        }
        if more {
            self.details(&mut series, run, number, segments)?;
        }
        if is_plain {
            series.values = self.taken.out.values.get(from).copied()?;
            self.taken.out.values.truncate(from);
        }
        self.taken.out.series.push(series);
        Some(())
    }

    /// Copies what a series has beyond the usual, if anything; before its cells, so that
    /// nothing is taken away that was not counted.
    #[inline]
    fn more(&mut self, at: u64, run: CellRun, segments: u16) -> Option<()> {
        let (cells, count) = (run.count, u64::from(segments));
        if at == 0 || !self.taken.s.lies_in_singles(at, more_len(cells, count)) {
            return None;
        }
        let More { exemplars, wiped, base, bases, segments } = &mut self.taken.scratch.more;
        [*exemplars, *wiped] = self.source.block(at, MORE_REST)?;
        let rest = at + MORE_REST * WORD;
        *bases = 0;
        base.clear();
        segments.clear();
        if count == 0 {
            if *wiped > 0 {
                base.extend(self.source.words(rest, cells)?);
            }
            return Some(());
        }
        if *wiped > 0 {
            let at = self.source.word(rest + DIRECTORY_BASES * WORD);
            if at != 0 && self.taken.s.lies_in_singles(at, bases_len(cells, count)) {
                base.extend(self.source.words(at, cells)?);
                *bases = at + cells * WORD;
            }
        }
        table::entries(self.source, rest + DIRECTORY_TABLE * WORD, count, segments)
    }

    /// Takes away what was wiped, and adds exemplars and segments.
    fn details(
        &mut self,
        series: &mut SeriesCopy,
        run: CellRun,
        number: Number,
        count: u16,
    ) -> Option<()> {
        let more = std::mem::take(&mut self.taken.scratch.more);
        let More { exemplars, wiped, base, bases, segments } = &more;
        if *wiped > 0 {
            series.created = series.created.max(*wiped);
            take_away(number, &mut self.taken.out.values[series.values as usize..], base);
        }
        // Each has a place of its own, so together they fit the region.
        let exemplars =
            exemplars::read(self.source, *exemplars, run.count, &mut self.taken.exemplar_room);
        let first = self.taken.out.segments.len();
        self.segments(segments, *bases, count)?;
        let segments = first..self.taken.out.segments.len();
        if !exemplars.is_empty() || !segments.is_empty() {
            series.beside = self.taken.out.details.len() as u32 | HAS_DETAILS;
            self.taken.out.details.push(Details { exemplars, segments });
        }
        self.taken.scratch.more = more;
        Some(())
    }

    /// Appends a series' segments, of `count` that it may have, less what they held where the table
    /// at `bases`, if that is not 0, says.
    fn segments(&mut self, entries: &[(u64, u64)], bases: u64, count: u16) -> Option<()> {
        for &(n, entry) in entries {
            let Some((run, what)) = Segment::unpack(entry) else { continue };
            let values = self.taken.out.values.len();
            // Each has cells of its own, so together they fit the region.
            if (values as u64 + run.count) * WORD > self.taken.limit {
                return None;
            }
            self.base_of_segment((bases, count), n, run);
            if self.sum(run, Number::Integer).is_none() {
                // Younger than what was copied; its turn comes.
                self.taken.out.values.truncate(values);
                continue;
            }
            take_away(
                Number::Integer,
                &mut self.taken.out.values[values..],
                &self.taken.scratch.base,
            );
            let (n, count) = (n as u16, run.count as u16);
            self.taken.out.segments.push(SegmentCopy { n, what, count, values });
        }
        Some(())
    }

    /// Copies what a segment held when its series was last wiped; nothing where it was not.
    fn base_of_segment(&mut self, (bases, count): (u64, u16), n: u64, run: CellRun) {
        self.taken.scratch.base.clear();
        if bases == 0 {
            return;
        }
        let at = table::entry(self.source, bases, u64::from(count), n);
        if at != 0 && self.taken.s.lies_in_singles(at, run.count) {
            self.taken.scratch.base.extend(self.source.words(at, run.count).into_iter().flatten());
        }
    }

    /// What a kept series' cells summed up to when a sweep last looked.
    fn seen(&self, pins: u64) -> Option<u64> {
        self.taken
            .s
            .lies_in_singles(pins, PINS_LEN / WORD)
            .then(|| self.source.word(pins + PINS_SEEN))
    }

    /// Appends the values of a run of cells; returns what its words sum up to.
    #[inline(never)]
    fn sum(&mut self, run: CellRun, number: Number) -> Option<u64> {
        let stripes: [u64; STRIPES as usize] =
            std::array::from_fn(|n| n as u64 * stripe_len(run.count));
        let copies: &[u64] = match run.storage {
            Storage::Single => return self.singles(run, number),
            Storage::Stripes => &stripes,
            Storage::Striped => &self.taken.scratch.planes,
            Storage::Owned => &self.taken.scratch.blocks,
        };
        let from = self.taken.out.values.len();
        self.taken.out.values.resize(from + run.count as usize, 0);
        let mut digest = 0_u64;
        for &delta in copies {
            let words = self.source.words(run.at.checked_add(delta)?, run.count)?;
            let values = &mut self.taken.out.values[from..];
            // A loop of its own for what most are.
            if number == Number::Integer {
                for (value, word) in values.iter_mut().zip(words) {
                    digest = digest.wrapping_add(word);
                    *value = value.wrapping_add(word);
                }
                continue;
            }
            for (n, (value, word)) in (0..).zip(values.iter_mut().zip(words)) {
                digest = digest.wrapping_add(word);
                *value = wipe::add(number.of_cell(n, run.count), *value, word);
            }
        }
        Some(digest)
    }

    /// The same of cells that are there once.
    fn singles(&mut self, run: CellRun, number: Number) -> Option<u64> {
        let from = self.taken.out.values.len();
        self.taken.out.values.extend(self.source.words(run.at, run.count)?);
        let words = self.taken.out.values.get(from..)?;
        let digest = words.iter().fold(0_u64, |digest, word| digest.wrapping_add(*word));
        // As if they were added to 0: of floats -0 becomes that.
        let floats = match number {
            Number::Integer => run.count,
            Number::FloatLast => run.count.saturating_sub(1),
            Number::Float => 0,
        };
        for n in floats..run.count {
            let value = self.taken.out.values.get_mut(from + n as usize)?;
            *value = wipe::add(number.of_cell(n, run.count), 0, *value);
        }
        Some(digest)
    }

    /// Appends what the living processes say, as far as they do: each on its own, or the
    /// extreme of all.
    fn owned_values(
        &mut self,
        series: SeriesCopy,
        run: CellRun,
        number: Number,
        combine: Combine,
        is_plain: bool,
    ) -> Option<()> {
        let mut any = false;
        let Taken { scratch, out, limit, .. } = &mut *self.taken;
        for &Block { delta, owner, .. } in &scratch.living {
            let words = self.source.words(run.at.checked_add(delta)?, run.count)?;
            let Some(said) = words.map(cells::said).collect::<Option<Vec<u64>>>() else { continue };
            // Each owner has a block of its own.
            if (out.values.len() + out.owners.len()) as u64 * WORD + run.count * WORD > *limit {
                return None;
            }
            let beside = if combine == Combine::Each { out.owners.len() as u32 } else { NOTHING };
            if any && combine != Combine::Each {
                let extreme = match (is_plain, out.series.last_mut()) {
                    (true, Some(one)) => std::slice::from_mut(&mut one.values),
                    _ => &mut out.values[series.values as usize..],
                };
                let both = extreme.iter_mut().zip(said);
                both.for_each(|(one, other)| *one = combine.of(number, *one, other));
                continue;
            }
            any = true;
            if combine == Combine::Each {
                out.owners.push(owner);
            }
            let values = if is_plain { *said.first()? } else { out.values.len() as u64 };
            if !is_plain {
                out.values.extend(said);
            }
            out.series.push(SeriesCopy { values, beside, ..series });
        }
        Some(())
    }

    /// Appends the text at `span`.
    fn text(&self, span: Span, out: &mut Vec<u8>) -> Option<()> {
        let end = out.len() + span.len as usize;
        let (at, count) = text_place(&self.taken.s, span)?;
        out.reserve((count * WORD) as usize);
        self.source.words(at, count)?.for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
        out.truncate(end);
        Some(())
    }
}

/// Takes what cells held when they were last wiped from their values.
fn take_away(number: Number, values: &mut [u64], base: &[u64]) {
    let count = values.len() as u64;
    for (n, (value, base)) in (0..).zip(values.iter_mut().zip(base)) {
        *value = wipe::since(number.of_cell(n, count), *value, *base);
    }
}

/// Where the text at `span` begins, and how many words it has.
#[inline(always)]
fn text_place(s: &Sections, span: Span) -> Option<(u64, u64)> {
    if span.at.checked_add(span.len)? > s.arena.len {
        return None;
    }
    Some((s.arena.at + span.at, span.len.div_ceil(WORD)))
}
