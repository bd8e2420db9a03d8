//! The hash index: from a name or a label text to its record.
//!
//! Implementation details. A bucket is the head of a chain that goes through the records' own
//! links. A table of open addressing would have to be rebuilt to drop the tombstones of removed
//! keys; a chain has none.
//!
//! - A record is *published* by one compare-and-swap of its bucket, from the head
//!   that the search for its key began at. Of two threads that publish the same key
//!   at the same time, one changes that head first; the other fails and finds the
//!   winner's record.
//! - A record is *unlinked* by a mark in its own link, which no compare-and-swap
//!   of that link survives, and then by leading the link before it past it
//!   (Harris, "A pragmatic implementation of non-blocking linked-lists", 2001;
//!   Michael, "High performance dynamic lock-free hash tables", 2002). A
//!   thread that walks to unlink unlinks every marked record on the way.
//! - Every walk is under a guard, so a record that was just unlinked still leads
//!   on to the rest of the chain, and the head that a search began at cannot
//!   return as another record.
//!
//! A pointer carries a part of its record's hash, and whether that was the
//! chain's last when it was published. So a search for a new key reads no record,
//! as long as its bucket has at most one.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use crate::layout::{FAMILY_LINK, SERIES_LINK, WORD};
use crate::primitive::{Word, prefetch};
use crate::region::Region;

/// The kind of record that a pointer leads to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Family,
    Series,
}

/// A pointer: `1:1 | marked:1 | last:1 | family:1 | tag:28 | id:32`; 0 leads
/// nowhere. The mark is not about the record that it leads to but about the one
/// that it stands in.
const IS: u64 = 1 << 63;
const MARKED: u64 = 1 << 62;
const LAST: u64 = 1 << 61;
const FAMILY: u64 = 1 << 60;
const TAG: u64 = 0x0FFF_FFFF << 32;

/// The bits of a pointer to such a record, beside its id.
fn kind_and_tag(kind: Kind, hash: u64) -> u64 {
    // The bucket comes from the low bits, the tag from the high ones.
    let family = if kind == Kind::Family { FAMILY } else { 0 };
    IS | family | (hash >> 4) & TAG
}

/// Where a search ended without the key.
#[derive(Clone, Copy)]
pub(crate) struct Vacancy {
    /// The value of the bucket when the search began.
    head: u64,
}

#[derive(Clone, Copy)]
pub(crate) struct Index<'a>(&'a Region);

impl Region {
    #[inline]
    pub(crate) fn index(&self) -> Index<'_> {
        Index(self)
    }
}

impl Index<'_> {
    /// Finds the record whose tag fits and for which `is` holds.
    #[inline]
    pub(crate) fn find(
        self,
        kind: Kind,
        hash: u64,
        mut is: impl FnMut(u32) -> bool,
    ) -> Result<u32, Vacancy> {
        let wanted = kind_and_tag(kind, hash);
        let head = self.bucket(hash).load(Acquire);
        let mut at = head;
        for _ in 0..self.longest_chain() {
            if at & (IS | FAMILY | TAG) == wanted && is(at as u32) {
                return Ok(at as u32);
            }
            if at & IS == 0 || at & LAST != 0 {
                break;
            }
            at = self.link(at).load(Acquire);
        }
        Err(Vacancy { head })
    }

    /// Prefetches the bucket, to be written to.
    #[inline]
    pub(crate) fn prefetch(self, hash: u64) {
        prefetch(self.bucket(hash));
    }

    /// No chain is longer, unless the region is damaged and it is a ring.
    #[inline]
    fn longest_chain(self) -> u64 {
        self.0.memory.sections.series_max() + self.0.memory.sections.family_max
    }

    /// Publishes a finished record at the end of a search, unless another thread published the same
    /// key meanwhile. Returns the record that has the key now.
    pub(crate) fn publish(
        self,
        mut vacancy: Vacancy,
        kind: Kind,
        hash: u64,
        id: u32,
        mut is: impl FnMut(u32) -> bool,
    ) -> u32 {
        let fresh = kind_and_tag(kind, hash) | u64::from(id);
        loop {
            let Vacancy { head } = vacancy;
            self.link(fresh).store(head, Relaxed);
            let last = if head == 0 { LAST } else { 0 };
            let done = self.bucket(hash).compare_exchange(head, fresh | last, AcqRel, Relaxed);
            if done.is_ok() {
                return id;
            }
            match self.find(kind, hash, &mut is) {
                Ok(theirs) => return theirs,
                Err(anew) => vacancy = anew,
            }
        }
    }

    /// Unlinks a series from its chain. When this returns, a thread that enters later cannot find
    /// it.
    pub(crate) fn unlink(self, hash: u64, id: u32) {
        self.link(IS | u64::from(id)).fetch_or(MARKED, AcqRel);
        'anew: loop {
            let mut before = self.bucket(hash);
            let mut at = before.load(Acquire);
            for _ in 0..self.longest_chain() {
                if at & IS == 0 {
                    break;
                }
                let next = self.link(at).load(Acquire);
                if next & MARKED == 0 {
                    before = self.link(at);
                    at = next;
                    continue;
                }
                let rest = next & !MARKED;
                if before.compare_exchange(at, rest, AcqRel, Relaxed).is_err() {
                    continue 'anew;
                }
                at = rest;
            }
            return;
        }
    }

    /// Whether a record is in its chain.
    pub(crate) fn is_linked(self, kind: Kind, hash: u64, id: u32) -> bool {
        self.find(kind, hash, |found| found == id).is_ok()
    }

    /// Where a record keeps the rest of its chain.
    fn link(self, pointer: u64) -> Word {
        if pointer & FAMILY != 0 {
            self.0.family_word(pointer as u32, FAMILY_LINK)
        } else {
            self.0.series(pointer as u32).word(SERIES_LINK)
        }
    }

    #[inline]
    fn bucket(self, hash: u64) -> Word {
        let sections = &self.0.memory.sections;
        self.0.memory.word_at(sections.index + (hash & (sections.index_len - 1)) * WORD)
    }
}
