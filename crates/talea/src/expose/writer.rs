//! The trait that each format implements.

use super::pages::Family;
use super::shown_names::ShownNames;
use super::text_format::Part;
use super::untyped::Untyped;
use crate::snapshot::{FamilySnapshot, SeriesSnapshot};

/// Writes families and series in one format, in their order.
pub(super) trait Writer {
    /// Begins a family, which has at least one series.
    fn family(&mut self, out: &mut Vec<u8>, family: &Family<'_>, names: &ShownNames);

    /// Begins to go over the family's series once more, if that is needed.
    fn starts_over(&mut self, _: &mut Vec<u8>) -> bool {
        false
    }

    /// Has the series that come now begin with such label text, if any, and have the buckets and
    /// quantiles of a family.
    fn part(&mut self, label: &str, family: &FamilySnapshot<'_>);

    fn series(&mut self, out: &mut Vec<u8>, series: &SeriesSnapshot<'_>);

    /// Writes series from `from` on, which is not the first of its family, as long as they are
    /// numbers with labels; returns the place where it stopped.
    fn easy_series(
        &mut self,
        _: &mut Vec<u8>,
        _: &FamilySnapshot<'_>,
        from: usize,
        _enough: usize,
    ) -> usize {
        from
    }

    /// Begins a family of unknown type. Formats that show all types have none.
    fn untyped(&mut self, _: &mut Vec<u8>, _: &Untyped) {}

    /// Goes on with the samples of a family of which a part is in one of unknown type.
    fn member(&mut self, _: &Family<'_>, _: &ShownNames) {}

    /// Writes the samples of a series that belong to a part.
    fn samples(&mut self, _: &mut Vec<u8>, _: &SeriesSnapshot<'_>, _: Part) {}

    fn end(&mut self, out: &mut Vec<u8>);
}
