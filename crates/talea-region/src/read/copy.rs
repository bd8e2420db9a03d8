//! A region's words, copied out of a file that is not mapped.
//!
//! The parts that all series need (the header, the families, the planes) are copied at once. The
//! records of series are copied a window at a time, with the text and the cells that they name. So
//! a reader needs little memory for a large region.
//!
//! Writers go on meanwhile. A series is shown with its own text and cells, for these reasons:
//!
//! 1. Memory that is free is zero (`memory/pool.rs`). As long as no run was given back since the copy
//!    began, a run that a public record names was this record's, or free, whenever it was copied. So
//!    its cells are those of the series, or 0, as before the first add. Its text may be incomplete
//!    only if that was copied before the record, and then has a word of 0: it is read again.
//! 2. Once a run was given back, the records are noted, then the cells are copied anew. A series is
//!    shown if its record was public then, with this time of creation, which no other series of the
//!    record has: what it names was its own all the time in between. Texts and cells that are copied
//!    later than the record are followed by a comparison of the records. Series that are younger are
//!    left to the next copy.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::atomic::Ordering::Acquire;
use std::sync::atomic::fence;

use crate::layout::*;
use crate::memory::mapping::Backing;
use crate::memory::runs::CellRun;
use crate::series::family::FamilyHead;
use crate::series::record::{self, HIDDEN, Head, PUBLISHED};
use crate::source::{
    self, CELLS, CREATED, HEAD, MORE, RECORD_WORDS, Record, Source, TEXT, Windows,
};
use crate::values::Storage;

/// Parts of a region, copied.
pub(crate) struct Copy<'a> {
    locks: &'a Backing,
    s: &'a Sections,
    /// The parts that all series need, by their offsets.
    fixed: Vec<Part>,
    /// The parts of `fixed` that are cells, by offset and length.
    cells: Vec<(u64, u64)>,
    /// The records of the current window, and the texts and cells that they name.
    records: Window,
    texts: Window,
    singles: Window,
    /// Whether all single cells are wanted, whatever names them.
    is_whole: bool,
    /// How many runs had been given back when the copy began.
    returned: u64,
    /// Once more were: when the series of each record from this offset on was made, 0 where none was
    /// public.
    noted: Option<(u64, Vec<u64>)>,
    /// Bytes of texts that may still be searched for words of 0.
    search_left: u64,
    /// Records that are read again.
    again: Pages,
    /// Of each record of the window, whether its series is shown; nothing where all are.
    stands: Vec<bool>,
}

/// A piece that was copied, and where it begins.
struct Part {
    first: u64,
    pages: Pages,
}

impl Part {
    fn is(&self, first: u64, end: u64) -> bool {
        self.first == first && self.pages.words().len() as u64 * WORD == end - first
    }
}

impl<'a> Copy<'a> {
    /// Copies everything but series, and the parts that `beside` names by offset and length.
    pub(crate) fn begin(
        locks: &'a Backing,
        s: &'a Sections,
        beside: impl FnOnce(&Self) -> Vec<(u64, u64)>,
    ) -> io::Result<Self> {
        let mut copy = Self {
            locks,
            s,
            fixed: Vec::new(),
            cells: Vec::new(),
            records: Window::default(),
            texts: Window::default(),
            singles: Window::default(),
            is_whole: false,
            returned: 0,
            noted: None,
            search_left: 0,
            again: Pages::default(),
            stands: Vec::new(),
        };
        copy.read(0, SLOTS)?;
        copy.returned = copy.word(M_RETURNED);
        fence(Acquire);
        copy.read(SLOTS, copy.word(M_SLOTS).min(s.slots) * SLOT_LEN)?;
        let series =
            [&s.records, &s.arena, &s.singles].map(|pool| pool.at..pool.at + copy.used_of(pool));
        let of_series: u64 = series.iter().map(|part| part.end - part.start).sum();
        let groups = (copy.used_of(&s.records) / RECORD_LEN).div_ceil(GROUP);
        [copy.records.pool, copy.texts.pool, copy.singles.pool] = series;
        // Each text has memory of its own, and is searched once, those of one window twice. Damaged records could
        // name all of the pool again and again.
        copy.search_left = 2 * copy.used_of(&s.arena);
        let [striped, lazy, owned] = [&s.striped, &s.lazy, &s.owned].map(|pool| copy.used_of(pool));
        let planes = source::planes(&copy).map(|delta| (s.striped.at + delta, striped));
        let planes_of_lazy = source::planes_of(&copy, s.lazy.at);
        let planes = planes.chain(planes_of_lazy.map(|delta| (s.lazy.at + delta, lazy)));
        let living = source::living(&copy).map(|block| (s.owned.at + block.delta, owned));
        let cells: Vec<(u64, u64)> = planes.chain(living).collect();
        let mut all = vec![copy.families(), (s.groups, groups * WORD)];
        all.extend(beside(&copy));
        all.extend(&cells);
        // All of it was backed before it was used. A sparse file that claims to be full would cost
        // this process memory that the file never had.
        let claimed = all.iter().map(|(_, len)| len).sum::<u64>() + of_series;
        let has = copy.file().metadata()?.blocks() * 512;
        if claimed > has {
            return Err(invalid(format!("the region claims {claimed} bytes in use and has {has}")));
        }
        for (at, len) in all {
            copy.read(at, len)?;
        }
        for text in copy.texts_of_families() {
            copy.read(text.start, text.end - text.start)?;
        }
        copy.cells = cells;
        Ok(copy)
    }

    /// Loads all series at once, and all cells that they can have, also those of series that
    /// are not public.
    pub(crate) fn load_all(&mut self) -> io::Result<()> {
        self.is_whole = true;
        let used = self.records.pool.end - self.records.pool.start;
        self.load(0..used / RECORD_LEN)
    }

    fn file(&self) -> &'a File {
        self.locks.file()
    }

    /// The offset and length of the table of families.
    fn families(&self) -> (u64, u64) {
        (self.s.families, self.families_used() * FAMILY_LEN)
    }

    /// Reads a part that all series need, or reads it again.
    fn read(&mut self, at: u64, len: u64) -> io::Result<()> {
        if len == 0 {
            return Ok(());
        }
        // Owned blocks and the family table begin within a page.
        let (first, end) = (at / PAGE * PAGE, page_up(at.saturating_add(len)));
        if end > self.s.end() {
            return Err(invalid("a plane outside the region".to_owned()));
        }
        let file = self.locks.file();
        match self.fixed.iter_mut().find(|part| part.is(first, end)) {
            Some(part) => file.read_exact_at(part.pages.bytes(end - first), first),
            None => {
                let mut pages = Pages::default();
                file.read_exact_at(pages.bytes(end - first), first)?;
                let place = self.fixed.partition_point(|part| part.first <= first);
                self.fixed.insert(place, Part { first, pages });
                Ok(())
            }
        }
    }

    /// Where names and definitions of families lie, those together that lie near each other.
    fn texts_of_families(&self) -> Vec<Range<u64>> {
        /// A gap of at most this number of bytes is read, since that is faster than a second call.
        const NEAR: u64 = 4 * PAGE;
        let mut all = Vec::new();
        for family in 0..self.families_used() {
            let word = |at| self.word(self.s.families + family * FAMILY_LEN + at);
            if FamilyHead::unpack(word(FAMILY_HEAD)).is_some() {
                let spans = [FAMILY_NAME, FAMILY_DEFINITION].map(|at| Span::unpack(word(at)));
                all.extend(spans.iter().filter_map(|span| self.text(*span)));
            }
        }
        all.sort_unstable_by_key(|text| text.start);
        all.dedup_by(|next, before| {
            let joins = next.start <= before.end + NEAR;
            if joins {
                before.end = before.end.max(next.end);
            }
            joins
        });
        all
    }

    /// Where the text at a span lies, if it is there.
    fn text(&self, span: Span) -> Option<Range<u64>> {
        let pool = &self.texts.pool;
        let text = pool.start + span.at..pool.start + (span.at + span.len).next_multiple_of(WORD);
        (span.len > 0 && text.end <= pool.end).then_some(text)
    }

    /// The pages with names and definitions may have texts of series too, younger than the copies of
    /// these pages. A snapshot has read the names by now; for all else the pages are read again.
    fn renew_names(&mut self) -> io::Result<()> {
        let arena = self.s.arena.at..self.s.singles.at;
        if !self.is_whole {
            self.fixed.retain(|part| !arena.contains(&part.first));
        }
        let file = self.locks.file();
        for part in self.fixed.iter_mut().filter(|part| arena.contains(&part.first)) {
            let len = part.pages.words().len() as u64 * WORD;
            file.read_exact_at(part.pages.bytes(len), part.first)?;
        }
        Ok(())
    }

    /// Copies the texts and cells that the records of the window name.
    fn follow(&mut self) -> io::Result<()> {
        self.renew_names()?;
        let shown = self.records.shown.clone();
        let (mut texts, mut cells) = (Extent::default(), Extent::default());
        let (mut incomplete, mut search_left) = (Vec::new(), self.search_left);
        // Whether a record names cells that are only found by following it.
        let mut leads_on = self.is_whole;
        let words = self.records.slice(shown.start, (shown.end - shown.start) / WORD);
        for record in words.unwrap_or_default().chunks_exact(RECORD_WORDS) {
            if record::state(record[HEAD]) != PUBLISHED {
                continue;
            }
            let text = self.text(Span::unpack(record[TEXT]));
            if self.texts.is_whole {
                incomplete.extend(text.clone().filter(|text| {
                    let left = search_left.checked_sub(text.end - text.start);
                    search_left = left.unwrap_or(0);
                    left.is_some() && self.texts.lacks(text)
                }));
            }
            texts.add(text);
            leads_on |= record[MORE] != 0 || record[HEAD] & HIDDEN != 0;
            match CellRun::unpack(record[CELLS]) {
                Some(run) if run.storage == Storage::Single => {
                    let cells_of_it = run.at..run.at + run.count * WORD;
                    cells.add(Some(cells_of_it).filter(|cells| {
                        self.singles.pool.start <= cells.start
                            && cells.end <= self.singles.pool.end
                            && cells.start % WORD == 0
                    }));
                }
                Some(run) if run.storage == Storage::Stripes => leads_on = true,
                _ => {}
            }
        }
        let file = self.locks.file();
        self.search_left = search_left;
        incomplete.into_iter().try_for_each(|text| self.texts.renew(file, text))?;
        self.texts.cover(file, &texts, false)?;
        self.singles.cover(file, &cells, leads_on)
    }

    /// Whether a run was given back since the copy began.
    fn is_any_returned(&mut self) -> io::Result<bool> {
        fence(Acquire);
        // A page, as all is read.
        self.locks.file().read_exact_at(self.again.bytes(PAGE), 0)?;
        Ok(self.again.words()[(M_RETURNED / WORD) as usize] != self.returned)
    }

    /// Notes the records of this window and those behind it, and copies all cells after that.
    fn note_records(&mut self) -> io::Result<()> {
        let (first, file) = (self.records.shown.start, self.locks.file());
        let mut created = Vec::new();
        each_record(file, &mut self.again, first..self.records.pool.end, |record| {
            let is_public = record::state(record[HEAD]) == PUBLISHED;
            created.push(if is_public { record[CREATED] } else { 0 });
        })?;
        fence(Acquire);
        self.noted = Some((first, created));
        (self.texts.is_whole, self.singles.is_whole) = (false, false);
        for (at, len) in std::mem::take(&mut self.cells) {
            self.read(at, len)?;
            self.cells.push((at, len));
        }
        Ok(())
    }

    /// Reads the records of the window again, and finds out which series are shown.
    fn compare(&mut self) -> io::Result<()> {
        fence(Acquire);
        let Some((first, created)) = &self.noted else { return Ok(()) };
        let shown = self.records.shown.clone();
        let copied = self.records.slice(shown.start, (shown.end - shown.start) / WORD);
        let mut copied = copied.unwrap_or_default().chunks_exact(RECORD_WORDS);
        let mut created = created.iter().skip(((shown.start - first) / RECORD_LEN) as usize);
        each_record(self.locks.file(), &mut self.again, shown, |now| {
            let stands = copied.next().zip(created.next()).is_some_and(|(copied, created)| {
                copied[CREATED] == *created && is_same(copied, now)
            });
            self.stands.push(stands);
        })
    }

    #[inline(always)]
    fn slice(&self, at: u64, count: u64) -> Option<&[u64]> {
        let shown = self.singles.slice(at, count);
        let shown = shown.or_else(|| self.texts.slice(at, count));
        let shown = shown.or_else(|| self.records.slice(at, count));
        shown.or_else(|| self.fixed_slice(at, count))
    }

    fn fixed_slice(&self, at: u64, count: u64) -> Option<&[u64]> {
        // A text without bytes has no place.
        if count == 0 {
            return Some(&[]);
        }
        let behind = self.fixed.partition_point(|part| part.first <= at);
        let Part { first, pages } = self.fixed.get(behind.checked_sub(1)?)?;
        cut(pages.words(), *first, at, count)
    }

    /// Loads a window of records, in place of the one before.
    fn load(&mut self, records: Range<u64>) -> io::Result<()> {
        let first = self.records.pool.start;
        let shown = first + records.start * RECORD_LEN..first + records.end * RECORD_LEN;
        self.stands.clear();
        self.records.show(self.file(), shown.clone())?;
        fence(Acquire);
        if self.noted.is_none() {
            self.follow()?;
            if !self.is_any_returned()? {
                return Ok(());
            }
            self.note_records()?;
            self.records.show(self.file(), shown)?;
            fence(Acquire);
        }
        self.follow()?;
        self.compare()
    }
}

impl Windows for Copy<'_> {
    type Of = Self;

    fn source(&self) -> &Self {
        self
    }

    fn turn_to(&mut self, records: Range<u64>) -> io::Result<()> {
        // A copy that is whole has all of them.
        if self.is_whole { Ok(()) } else { self.load(records) }
    }

    fn read_families_again(&mut self) -> io::Result<()> {
        let (at, len) = self.families();
        self.read(at, len)
    }
}

impl Source for Copy<'_> {
    fn sections(&self) -> &Sections {
        self.s
    }

    fn words(&self, at: u64, count: u64) -> Option<impl Iterator<Item = u64>> {
        Some(self.slice(at, count)?.iter().copied())
    }

    #[inline(always)]
    fn block<const N: usize>(&self, at: u64, count: u64) -> Option<[u64; N]> {
        let words = self.slice(at, count)?;
        let last = words.len().checked_sub(1)?;
        Some(std::array::from_fn(|n| words[n.min(last)]))
    }

    #[inline(always)]
    fn records(&self, at: u64, count: u64) -> Option<impl Iterator<Item = Record>> {
        let words = self.records.slice(at, count.checked_mul(RECORD_WORDS as u64)?)?;
        Some(words.chunks_exact(RECORD_WORDS).map(|record| std::array::from_fn(|n| record[n])))
    }

    fn stands(&self, record: u64) -> bool {
        if self.stands.is_empty() {
            return true;
        }
        let n = record.wrapping_sub(self.records.shown.start) / RECORD_LEN;
        self.stands.get(n as usize).copied().unwrap_or(false)
    }

    fn lives(&self, slot: u64) -> bool {
        self.locks.others_hold(slot..slot + 1).unwrap_or(true)
    }
}

/// Reads records, and calls `each` with the words of each of them.
fn each_record(
    file: &File,
    pages: &mut Pages,
    records: Range<u64>,
    mut each: impl FnMut(&[u64]),
) -> io::Result<()> {
    // So much at a time stays in the cache: nothing of it is kept.
    const STEP: u64 = 16 * PAGE;
    for at in records.clone().step_by(STEP as usize) {
        let len = STEP.min(records.end - at);
        file.read_exact_at(&mut pages.bytes(STEP)[..len as usize], at)?;
        pages.words()[..(len / WORD) as usize].chunks_exact(RECORD_WORDS).for_each(&mut each);
    }
    Ok(())
}

/// Whether two copies of a record are of one series. That it was looked up or hidden
/// meanwhile does not matter.
fn is_same(before: &[u64], after: &[u64]) -> bool {
    let is = |head: u64| (record::state(head), Head::unpack(head).family);
    is(before[HEAD]) == is(after[HEAD])
        && [TEXT, CELLS, CREATED].iter().all(|&word| before[word] == after[word])
}

/// The part of a pool that some series name: its bounds, and the bytes in all.
#[derive(Default)]
struct Extent {
    range: Option<Range<u64>>,
    sum: u64,
}

impl Extent {
    #[inline]
    fn add(&mut self, one: Option<Range<u64>>) {
        let Some(one) = one else { return };
        self.sum += one.end - one.start;
        self.range = Some(match &self.range {
            None => one,
            Some(range) => range.start.min(one.start)..range.end.max(one.end),
        });
    }
}

/// A part of a pool, copied.
#[derive(Default)]
struct Window {
    /// The part of the pool that is in use.
    pool: Range<u64>,
    /// The part that is copied, with the rest of its pages.
    shown: Range<u64>,
    /// Where the copy begins.
    first: u64,
    pages: Pages,
    is_whole: bool,
}

impl Window {
    /// Copies a part in place of the one before.
    fn show(&mut self, file: &File, part: Range<u64>) -> io::Result<()> {
        let (first, end) = (part.start / PAGE * PAGE, page_up(part.end));
        (self.first, self.shown) = (first, part);
        file.read_exact_at(self.pages.bytes(end - first), first)
    }

    /// Copies the part that series name. If it is scattered over the pool, or leads to further
    /// cells, the whole pool is copied, once.
    fn cover(&mut self, file: &File, extent: &Extent, leads_on: bool) -> io::Result<()> {
        /// A range is copied instead of the whole pool if it has at most so many times the bytes
        /// that are needed.
        const SPARSE: u64 = 4;
        if self.is_whole {
            return Ok(());
        }
        let Some(range) = extent.range.clone().filter(|_| !leads_on) else {
            self.is_whole = leads_on;
            let part = if leads_on { self.pool.clone() } else { 0..0 };
            return self.show(file, part);
        };
        self.is_whole = range.end - range.start > SPARSE * extent.sum + 16 * PAGE;
        self.show(file, if self.is_whole { self.pool.clone() } else { range })
    }

    /// Whether words of a text were not there yet.
    fn lacks(&self, text: &Range<u64>) -> bool {
        let words = self.slice(text.start, (text.end - text.start) / WORD);
        words.is_none_or(|words| words.contains(&0))
    }

    /// Copies a part of the pool again.
    fn renew(&mut self, file: &File, part: Range<u64>) -> io::Result<()> {
        let [first, end] = [part.start / PAGE * PAGE, page_up(part.end)];
        let len = self.pages.words().len() as u64 * WORD;
        // As many as there are, so they stay.
        let pages = self.pages.bytes(len);
        let part = pages.get_mut((first - self.first) as usize..(end - self.first) as usize);
        part.map_or(Ok(()), |part| file.read_exact_at(part, first))
    }

    #[inline(always)]
    fn slice(&self, at: u64, count: u64) -> Option<&[u64]> {
        if at < self.shown.start {
            return None;
        }
        cut(self.pages.words(), self.first, at, count)
    }
}

/// Words of a copy that begins at `first`.
#[inline(always)]
fn cut(words: &[u64], first: u64, at: u64, count: u64) -> Option<&[u64]> {
    let from = at.checked_sub(first).filter(|from| from % WORD == 0)? / WORD;
    words.get(from as usize..)?.get(..usize::try_from(count).ok()?)
}

/// Memory that begins on a page bound, so that the kernel copies whole cache lines and no
/// word is read in halves.
#[derive(Default)]
pub(crate) struct Pages {
    /// The words, with up to a page before them: memory that is allocated with a greater alignment
    /// would be written first.
    memory: Vec<u64>,
    first: usize,
    len: usize,
}

const PAGE_WORDS: usize = (PAGE / WORD) as usize;

impl Pages {
    #[inline(always)]
    pub(crate) fn words(&self) -> &[u64] {
        &self.memory[self.first..][..self.len]
    }

    /// Replaces the contents by room for this number of bytes, rounded up to pages.
    pub(crate) fn bytes(&mut self, len: u64) -> &mut [u8] {
        self.len = len.div_ceil(PAGE) as usize * PAGE_WORDS;
        if self.memory.len() < self.len + PAGE_WORDS {
            self.memory = vec![0; self.len + PAGE_WORDS];
            let past = self.memory.as_ptr() as usize % PAGE as usize / size_of::<u64>();
            self.first = (PAGE_WORDS - past) % PAGE_WORDS;
        }
        let words = &mut self.memory[self.first..][..self.len];
        // SAFETY: words in a row are eight times as many bytes in a row, of which any
        // are valid words.
        unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), self.len * 8) }
    }
}

fn invalid(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}
