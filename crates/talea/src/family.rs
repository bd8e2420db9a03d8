//! Families: metrics with labels.

use std::fmt;
use std::marker::PhantomData;
use std::sync::OnceLock;

use crate::labels::{LabelText, Labels};
use crate::metric::Metric;
use crate::slot::Slot;

/// A metric with labels: one series for each combination of values. `L` is
/// named with `'static`; a look-up takes borrowed values of any lifetime.
///
/// ```
/// use talea::{Counter, Family, Labels, Opts, Registry};
///
/// #[derive(Labels)]
/// struct Sale<'a> { country: &'a str }
///
/// let registry = Registry::new()?;
/// let sales: Family<Sale<'static>, Counter> = registry.register(Opts::new("sales", "Sales."))?;
/// let country = String::from("pe");
/// sales.with(Sale { country: &country }).inc();
/// assert_eq!(registry.snapshot().value("sales_total", &[("country", "pe")]), Some(1.0));
/// # Ok::<(), talea::Error>(())
/// ```
pub struct Family<L, M: Metric> {
    pub(crate) bound: Slot<Bound<M>>,
    labels: PhantomData<fn(L)>,
}

pub(crate) struct Bound<M: Metric> {
    pub(crate) family: talea_region::Family,
    pub(crate) thresholds: &'static [u64],
    /// Where label combinations go that there is no room for.
    pub(crate) overflow: M::Bound,
    /// Where the combinations are fixed, a place for each, filled as they are
    /// met; else empty. It lives as long as the region.
    pub(crate) fixed: &'static [OnceLock<M::Bound>],
}

// Derived, these would ask for an `M` that can be copied.
impl<M: Metric> Clone for Bound<M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Metric> Copy for Bound<M> {}

impl<M: Metric> PartialEq for Bound<M> {
    fn eq(&self, other: &Self) -> bool {
        self.family == other.family
    }
}

impl<M: Metric> Bound<M> {
    /// Finds or makes a series by its label text, and remembers it in its place,
    /// if it has one. What overflows is not remembered.
    fn resolve(&self, labels: &impl Labels, place: Option<&OnceLock<M::Bound>>) -> M::Bound {
        // Written in place: moving the text would cost as much as hashing it.
        let mut text = LabelText::new();
        labels.write(&mut text);
        let Ok(cells) = self.family.series(text.as_bytes()) else { return self.overflow };
        let found = M::bind(cells, self.thresholds);
        place.map_or(found, |place| *place.get_or_init(|| found))
    }
}

impl<L, M: Metric> Family<L, M> {
    /// A family that is not installed yet: what its metrics are told goes
    /// nowhere.
    pub const fn new() -> Self {
        Self { bound: Slot::late(), labels: PhantomData }
    }
}

impl<L, M: Metric> Default for Family<L, M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<L: 'static, M: Metric> Family<L, M> {
    /// The metric of one label combination, made if it is new. Where there is no
    /// room for a new one, the family's overflow series.
    ///
    /// Cost: where all labels are fixed (enums, bools), some arithmetic and a
    /// load; else the labels are rendered, hashed once and compared. Keep the
    /// result where the labels are known beforehand: a kept handle costs nothing
    /// to find.
    #[inline]
    pub fn with<Q: Labels<Static = L>>(&self, labels: Q) -> M {
        let Some(bound) = self.bound.get() else { return M::holding(Slot::late()) };
        let place = bound.fixed.get(labels.index());
        let found = place.and_then(|place| place.get().copied());
        M::holding(Slot::Bound(found.unwrap_or_else(|| bound.resolve(&labels, place))))
    }

    /// How often a label combination went to the overflow series because it was
    /// new and there was no room for it.
    pub fn dropped(&self) -> u64 {
        self.bound.get().map_or(0, |bound| bound.family.dropped())
    }
}

impl<L, M: Metric> Clone for Family<L, M> {
    fn clone(&self) -> Self {
        Self { bound: self.bound.clone(), labels: PhantomData }
    }
}

impl<L, M: Metric> fmt::Debug for Family<L, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Family")
            .field("installed", &self.bound.get().is_some())
            .finish_non_exhaustive()
    }
}
