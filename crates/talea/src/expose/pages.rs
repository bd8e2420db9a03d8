//! Families as an encoder visits them: of one snapshot, or of a page of several.

use crate::snapshot::{FamilySnapshot, Snapshot};

/// Families by their place: the input of an encoder.
pub(crate) trait Pages {
    /// The family at a place; `None` behind the last. They are in the order of their names.
    fn at(&self, place: usize) -> Option<Family<'_>>;

    /// Whether any name of a family or of a label is one that not every format has.
    fn has_odd_names(&self) -> bool;
}

impl Pages for Snapshot {
    fn at(&self, place: usize) -> Option<Family<'_>> {
        self.family_at(place).map(Family::Alone)
    }

    fn has_odd_names(&self) -> bool {
        !self.is_plain()
    }
}

/// The entries of a page: the families of its parts, those of one name one after the other.
pub(crate) trait JoinedParts {
    /// The label text of the part that an entry belongs to, and its family.
    fn entry(&self, n: usize) -> Option<(&str, FamilySnapshot<'_>)>;

    /// The label name of that part; empty if it has none.
    fn part_label(&self, n: usize) -> &str;
}

/// A family as it is written: of one snapshot, or of all parts of a page that have it.
#[derive(Clone, Copy)]
pub(crate) enum Family<'a> {
    Alone(FamilySnapshot<'a>),
    OfPage { page: &'a dyn JoinedParts, from: usize, count: usize },
}

impl<'a> Family<'a> {
    /// How many places it takes.
    pub(super) fn places(&self) -> usize {
        match self {
            Self::Alone(_) => 1,
            Self::OfPage { count, .. } => *count,
        }
    }

    /// The family in one of its parts, and the label text of that part.
    #[inline]
    pub(super) fn part(&self, n: usize) -> Option<(&'a str, FamilySnapshot<'a>)> {
        match *self {
            Self::Alone(family) => (n == 0).then_some(("", family)),
            Self::OfPage { page, from, count } => page.entry(from + n).filter(|_| n < count),
        }
    }

    /// The name of the label that distinguishes the parts; empty if there is none.
    pub(super) fn part_label(&self) -> &'a str {
        match *self {
            Self::Alone(_) => "",
            Self::OfPage { page, from, .. } => page.part_label(from),
        }
    }

    pub(super) fn parts(self) -> impl Iterator<Item = (&'a str, FamilySnapshot<'a>)> {
        (0..self.places()).filter_map(move |n| self.part(n))
    }
}
