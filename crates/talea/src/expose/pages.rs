//! Families as an encoder visits them: of one snapshot, or of a page of several.

use crate::snapshot::{FamilySnapshot, Snapshot};

/// The input of an encoder: entries in the order of the families' names, those of one name one
/// after the other.
pub(crate) trait Pages {
    /// The label text of the part that an entry belongs to, and its family; `None` behind the last
    /// entry.
    fn entry(&self, n: usize) -> Option<(&str, FamilySnapshot<'_>)>;

    /// How many entries from `n` on have the name of entry `n`.
    fn entries_of_name(&self, n: usize) -> usize;

    /// The label name of the part that an entry belongs to; empty if it has none.
    fn part_label(&self, n: usize) -> &str;

    /// Whether any name of a family or of a label is one that not every format has.
    fn has_odd_names(&self) -> bool;
}

impl Pages for Snapshot {
    fn entry(&self, n: usize) -> Option<(&str, FamilySnapshot<'_>)> {
        self.family_at(n).map(|family| ("", family))
    }

    fn entries_of_name(&self, n: usize) -> usize {
        usize::from(n < self.families().len())
    }

    fn part_label(&self, _: usize) -> &str {
        ""
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
}

impl<'a> Family<'a> {
    /// The family whose first entry is at a place; `None` behind the last.
    pub(super) fn at(pages: &'a impl Pages, from: usize) -> Option<Self> {
        let count = pages.entries_of_name(from);
        (count > 0).then_some(Self { pages, from, count })
    }

    /// How many entries it has.
    pub(super) fn places(&self) -> usize {
        self.count
    }

    /// The family in one of its parts, and the label text of that part.
    pub(super) fn part(&self, n: usize) -> Option<(&'a str, FamilySnapshot<'a>)> {
        self.pages.entry(self.from + n).filter(|_| n < self.count)
    }

    /// The name of the label that distinguishes the parts; empty if there is none.
    pub(super) fn part_label(&self) -> &'a str {
        self.pages.part_label(self.from)
    }

    pub(super) fn parts(self) -> impl Iterator<Item = (&'a str, FamilySnapshot<'a>)> {
        (0..self.count).filter_map(move |n| self.part(n))
    }
}
