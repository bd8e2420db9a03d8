//! Handles that are looked up when they are first used.

use std::fmt;
use std::ops::Deref;
use std::sync::OnceLock;

use super::Family;
use crate::labels::Labels;
use crate::metric::Metric;
use crate::metric::slot::Slot;

/// One label combination of a family, looked up when it is first used and kept from
/// then on; made by [`Family::lazy`]. It derefs to the metric. Any thread may use it.
///
/// Cost once it is looked up: a load more than a kept handle. If there is no room for its series
/// when it is first used, it stays the family's overflow series.
pub struct Lazy<L: 'static, M: Metric> {
    family: &'static Family<L, M>,
    labels: L,
    kept: OnceLock<M>,
    overflow: OnceLock<M>,
    /// The handle that is returned until the family is installed. Its clones become the series once
    /// that is looked up.
    early: OnceLock<M>,
}

impl<L: 'static, M: Metric> Family<L, M> {
    /// A handle of one label combination that can be a `static`: it looks the
    /// combination up when it is first used, and keeps it. Until the family is
    /// installed, its updates are discarded.
    ///
    /// ```
    /// use talea::{Counter, Family, Labels, Lazy, Metrics, Registry};
    ///
    /// #[derive(Labels)]
    /// struct Sale<'a> { country: &'a str }
    ///
    /// #[derive(Metrics)]
    /// struct Shop {
    ///     /// Orders accepted.
    ///     orders: Family<Sale<'static>, Counter>,
    /// }
    ///
    /// static SHOP: Shop = Shop::new();
    /// static ORDERS_FROM_PERU: Lazy<Sale<'static>, Counter> =
    ///     SHOP.orders.lazy(Sale { country: "pe" });
    ///
    /// let registry = Registry::for_test()?;
    /// talea::install(&registry, &[&SHOP])?;
    /// ORDERS_FROM_PERU.inc();
    /// assert_eq!(registry.snapshot().value("orders_total", &[("country", "pe")]), Some(1.0));
    /// # Ok::<(), talea::Error>(())
    /// ```
    pub const fn lazy(&'static self, labels: L) -> Lazy<L, M> {
        Lazy::new(self, labels)
    }
}

impl<L: 'static, M: Metric> Lazy<L, M> {
    pub(crate) const fn new(family: &'static Family<L, M>, labels: L) -> Self {
        Self {
            family,
            labels,
            kept: OnceLock::new(),
            overflow: OnceLock::new(),
            early: OnceLock::new(),
        }
    }
}

impl<L: Labels<Static = L>, M: Metric + Clone> Lazy<L, M> {
    #[cold]
    #[inline(never)]
    fn look_up(&self) -> &M {
        if self.family.bound().is_none() {
            return self.early.get_or_init(|| M::holding(Slot::late(self.family.late.origin())));
        }
        let found = match self.family.try_with(&self.labels) {
            Ok(found) => self.kept.get_or_init(|| found.keep()),
            // As long as there is no room, it overflows.
            Err(_) => self.overflow.get_or_init(|| self.family.with(&self.labels).keep()),
        };
        // Once, since it stays.
        let early = self.early.get().filter(|early| early.slot().get().is_none());
        if let (Some(early), Some(bound)) = (early, found.slot().get()) {
            early.slot().bind(Box::leak(Box::new(*bound)));
        }
        found
    }
}

impl<L: Labels<Static = L>, M: Metric + Clone> Deref for Lazy<L, M> {
    type Target = M;

    #[inline]
    fn deref(&self) -> &M {
        match self.kept.get() {
            Some(kept) => kept,
            None => self.look_up(),
        }
    }
}

impl<L: 'static, M: Metric> fmt::Debug for Lazy<L, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lazy").field("family", self.family).finish_non_exhaustive()
    }
}
