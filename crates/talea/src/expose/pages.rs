//! Families as an encoder visits them: of one snapshot, or of a page of several.

use crate::snapshot::{FamilySnapshot, Snapshot};

/// The input of an encoder: entries in the order of the families' names, those of one name one
/// after the other.
pub(crate) trait Pages {
    /// The label text that each series of an entry begins with, and its family; `None` behind the
    /// last entry.
    fn entry(&self, n: usize) -> Option<(&str, FamilySnapshot<'_>)>;

    /// How many entries from `n` on have the name of entry `n`.
    fn entries_of_name(&self, n: usize) -> usize;

    /// The names of the labels that an entry may be shown with beside its own.
    fn part_labels(&self, n: usize) -> &[String];

    /// Whether any name of a family or of a label is one that not every format has.
    fn has_odd_names(&self) -> bool;
}

impl Pages for Snapshot {
    fn entry(&self, n: usize) -> Option<(&str, FamilySnapshot<'_>)> {
        self.family_at(n).map(|family| (self.constant_text(&family), family))
    }

    fn entries_of_name(&self, n: usize) -> usize {
        usize::from(n < self.families().len())
    }

    fn part_labels(&self, _: usize) -> &[String] {
        self.constants.names()
    }

    fn has_odd_names(&self) -> bool {
        !self.is_plain()
    }
}

/// The entries of one name, which are written as one family.
#[derive(Clone, Copy)]
pub(crate) struct Family<'a> {
    pages: &'a dyn Pages,
    from: usize,
    count: usize,
    /// The part that it is named and described by.
    first: (&'a str, FamilySnapshot<'a>),
}

impl<'a> Family<'a> {
    /// The family whose first entry is at a place; `None` behind the last.
    pub(super) fn at(pages: &'a dyn Pages, from: usize) -> Option<Self> {
        let first = pages.entry(from)?;
        Some(Self { pages, from, count: pages.entries_of_name(from), first })
    }

    pub(super) fn first(&self) -> FamilySnapshot<'a> {
        self.first.1
    }

    /// How many entries it has.
    pub(super) fn places(&self) -> usize {
        self.count
    }

    /// The family in one of its parts, and the label text that its series begin with.
    pub(super) fn part(&self, n: usize) -> Option<(&'a str, FamilySnapshot<'a>)> {
        match n {
            0 => Some(self.first),
            _ if n < self.count => self.pages.entry(self.from + n),
            _ => None,
        }
    }

    /// The names of the labels that its first part may be shown with beside its own.
    pub(super) fn part_labels(&self) -> &'a [String] {
        self.pages.part_labels(self.from)
    }

    pub(super) fn parts(self) -> impl Iterator<Item = (&'a str, FamilySnapshot<'a>)> {
        (0..self.count).filter_map(move |n| self.part(n))
    }
}
