//! Families as an encoder visits them: of one snapshot, or of a page of several.

use super::text_format::TextFormat;
use crate::snapshot::{FamilySnapshot, Snapshot};

/// The input of an encoder: entries in the order of the families' names, those of one name and one
/// type one after the other.
pub(crate) trait Pages {
    /// The label text that each series of an entry begins with, and its family; `None` behind the
    /// last entry.
    fn entry(&self, n: usize) -> Option<(&str, FamilySnapshot<'_>)>;

    /// How many entries from `n` on have the name and the type of entry `n`.
    fn entries_of_family(&self, n: usize) -> usize;

    /// The names of the labels that an entry may be shown with beside its own.
    fn part_labels(&self, n: usize) -> &[String];

    /// The label of an entry that is shown by another name, since its part's label has that one.
    fn exported_label(&self, _: usize) -> Option<&str> {
        None
    }

    /// Whether a format shows an entry without its type, as samples of several types have one name.
    fn is_untyped(&self, _: usize, _: TextFormat) -> bool {
        false
    }

    /// Whether any format shows any entry so.
    fn has_untyped(&self) -> bool {
        false
    }

    /// Whether any name of a family or of a label is one that not every format has.
    fn has_odd_names(&self) -> bool;
}

impl Pages for Snapshot {
    fn entry(&self, n: usize) -> Option<(&str, FamilySnapshot<'_>)> {
        self.family_at(n).map(|family| (self.constant_text(&family), family))
    }

    fn entries_of_family(&self, n: usize) -> usize {
        usize::from(n < self.families().len())
    }

    fn part_labels(&self, _: usize) -> &[String] {
        self.constants.names()
    }

    fn has_odd_names(&self) -> bool {
        !self.is_plain()
    }
}

/// The entries of one name and one type, which are written as one family.
#[derive(Clone, Copy)]
pub(crate) struct Family<'a> {
    pages: &'a dyn Pages,
    /// The place of its first entry.
    from: usize,
    count: usize,
    /// The part that it is named and described by.
    first: (&'a str, FamilySnapshot<'a>),
}

impl<'a> Family<'a> {
    /// The family whose first entry is at a place; `None` behind the last.
    pub(super) fn at(pages: &'a dyn Pages, from: usize) -> Option<Self> {
        let first = pages.entry(from)?;
        Some(Self { pages, from, count: pages.entries_of_family(from), first })
    }

    /// Its first parts that agree in whether histograms have native buckets. Prometheus' parser of
    /// protobuf looks at the first series of a message, and loses the buckets of others that differ
    /// from it.
    pub(super) fn of_one_sort(self) -> Self {
        Self {
            count: self
                .parts()
                .take_while(|(_, part): &(&str, FamilySnapshot<'_>)| {
                    part.has_native() == self.first().has_native()
                })
                .count(),
            ..self
        }
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

    /// The names of the labels that its parts may be shown with beside their own.
    pub(super) fn part_labels(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let Self { pages, from, count, .. } = *self;
        (from..from + count).flat_map(|n| pages.part_labels(n)).map(String::as_str)
    }

    /// The label that a part has of its own beside the one that distinguishes parts.
    pub(super) fn exported_label(&self) -> Option<&'a str> {
        let Self { pages, from, count, .. } = *self;
        (from..from + count).find_map(|n| pages.exported_label(n))
    }

    pub(super) fn is_untyped(&self, format: TextFormat) -> bool {
        self.pages.is_untyped(self.from, format)
    }

    pub(super) fn parts(self) -> impl Iterator<Item = (&'a str, FamilySnapshot<'a>)> {
        (0..self.count).filter_map(move |n| self.part(n))
    }
}
