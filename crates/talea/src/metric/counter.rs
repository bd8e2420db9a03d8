//! Counters: totals that only go up.

use talea_region::{Cell, LentPlane, Number};

use super::slot::Slot;
use super::{Shape, single_cell_metric, words};
use crate::exemplar::{self, ExemplarError};

/// A total, a whole number. It starts at 0 and only goes up; at 2⁶⁴ it starts anew, as Prometheus
/// expects of a counter.
///
/// Cost of an add: if it is striped, less than half of an uncontended atomic add, on any number of
/// threads (`make bench ONLY=counter-kept`); otherwise one atomic add.
#[derive(Clone, Debug)]
pub struct Counter {
    pub(crate) cell: Slot<Cell>,
}

single_cell_metric!(pub Counter, |opts| Shape::counter(Number::Integer, opts));
words!(Counter, "whole numbers");

impl Counter {
    /// Adds one.
    #[inline]
    pub fn inc(&self) {
        self.add(1);
    }

    /// Adds `n`.
    #[inline]
    pub fn add(&self, n: u64) {
        self.cell.update(|cell| cell.add(n), move || self.add(n));
    }

    /// Adds `n`, and stores an exemplar with these labels, usually the id of a trace. Formats that
    /// have exemplars show the latest.
    ///
    /// ```
    /// # use talea::{Counter, Opts, Registry};
    /// # let registry = Registry::for_test()?;
    /// let failed: Counter = registry.register(Opts::new("payments_failed", "Failed payments."))?;
    /// failed.add_with_exemplar(1, &[("trace_id", "0af7651916cd43dd8448eb211c80319c")]).unwrap();
    /// let snapshot = registry.snapshot();
    /// let series = snapshot.select("payments_failed_total", &[]).next().unwrap();
    /// assert_eq!(series.exemplars().next().unwrap().labels[0].0, "trace_id");
    /// # Ok::<(), talea::Error>(())
    /// ```
    ///
    /// Cost: an add, a look at the clock and a copy of the labels; the first of a series takes
    /// memory of the region. Adds without an exemplar cost no more than before.
    ///
    /// # Errors
    ///
    /// The exemplar is refused, and the add counts all the same: the labels have more than 128
    /// characters together, a label name is not valid, or there is no room.
    pub fn add_with_exemplar(&self, n: u64, labels: &[(&str, &str)]) -> Result<(), ExemplarError> {
        self.add(n);
        let Some(cell) = self.cell.get() else { return Ok(()) };
        exemplar::keep(*cell, 0, n as f64, labels)
    }

    /// Which word of a lent plane is its copy, for additions of that plane's owner; `None` if it has none.
    #[doc(hidden)]
    pub fn index_in(&self, plane: &LentPlane) -> Option<usize> {
        plane.index_of(*self.cell.get()?)
    }

    /// The total over all threads and processes; 0 if it is not installed. Cost: if it is striped,
    /// a load for each CPU that ever added.
    pub fn get(&self) -> u64 {
        self.cell.get().map_or(0, |cell| cell.get())
    }
}

/// A total that is not a whole number, such as seconds. It starts at 0 and only goes up; very small
/// amounts are lost beside a very large total.
///
/// Cost of an add: if it is striped, about a [`Counter`]'s and the addition; else a
/// compare-and-swap, and another for each concurrent update that came first.
#[derive(Clone, Debug)]
pub struct FloatCounter {
    cell: Slot<Cell>,
}

single_cell_metric!(pub FloatCounter, |opts| Shape::counter(Number::Float, opts));
words!(FloatCounter, "the bits of an `f64`");

impl FloatCounter {
    /// Adds `x`. Negative numbers and NaN are ignored: a counter only goes up. Infinity makes the total
    /// infinite for good; after a wipe it is 0, whatever is added.
    #[inline]
    pub fn add(&self, x: f64) {
        self.cell.update(
            |cell| {
                if x > 0.0 {
                    cell.add_float(x);
                }
            },
            move || self.add(x),
        );
    }

    /// As [`Counter::add_with_exemplar`]. An `x` that [`add`](Self::add) ignores is no exemplar.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn add_with_exemplar(&self, x: f64, labels: &[(&str, &str)]) -> Result<(), ExemplarError> {
        if x.is_nan() || x < 0.0 {
            return Ok(());
        }
        self.add(x);
        let Some(cell) = self.cell.get() else { return Ok(()) };
        exemplar::keep(*cell, 0, x, labels)
    }

    /// Which word of a lent plane is its copy, for additions of that plane's owner; `None` if it has none.
    #[doc(hidden)]
    pub fn index_in(&self, plane: &LentPlane) -> Option<usize> {
        plane.index_of(*self.cell.get()?)
    }

    /// The total over all threads and processes; 0 if it is not installed. Cost: as
    /// [`Counter::get`].
    pub fn get(&self) -> f64 {
        self.cell.get().map_or(0.0, |cell| cell.get_float())
    }
}
