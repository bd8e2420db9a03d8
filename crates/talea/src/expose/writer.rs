//! The trait that each format implements.

use super::pages::Family;
use super::shown_names::ShownNames;
use crate::snapshot::{FamilySnapshot, SeriesSnapshot};

/// Writes families and series in one format, in their order.
pub(super) trait Writer {
    /// Begins a family, which has at least one series.
    fn family(&mut self, out: &mut Vec<u8>, family: &Family<'_>, names: &ShownNames);

    /// Begins to go over the family's series once more, if that is needed.
    fn starts_over(&mut self, _: &mut Vec<u8>) -> bool {
        false
    }

    /// Has the series that come now begin with such label text, if any.
    fn part(&mut self, label: &str);

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

    fn end(&mut self, out: &mut Vec<u8>);
}
