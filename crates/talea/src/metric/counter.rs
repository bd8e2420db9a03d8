//! Counters: totals that only go up.

use talea_region::{Cell, Number};

use super::{Shape, single_cell_metric};
use crate::slot::Slot;

/// A total of whole things. It starts at 0 and only goes up; at 2⁶⁴ it starts
/// anew, as Prometheus expects of a counter.
///
/// Cost of an add: where it is striped, less than half of an uncontended atomic
/// add, on any number of threads (`make bench ONLY=counter-kept`); else one atomic
/// add.
#[derive(Clone, Debug)]
pub struct Counter {
    cell: Slot<Cell>,
}

single_cell_metric!(pub Counter, |opts| Shape::counter(Number::Integer, opts));

impl Counter {
    /// Adds one.
    #[inline]
    pub fn inc(&self) {
        self.add(1);
    }

    /// Adds `n`.
    #[inline]
    pub fn add(&self, n: u64) {
        if let Some(cell) = self.cell.get() {
            cell.add(n);
        }
    }

    /// The total over all threads and processes; 0 where not installed. Cost: where it
    /// is striped, a load for each CPU that ever added.
    pub fn get(&self) -> u64 {
        self.cell.get().map_or(0, |cell| cell.get())
    }
}

/// A total of something that is not counted in whole things, such as seconds. It starts
/// at 0 and only goes up; very small amounts are lost beside a very large total.
///
/// Cost of an add: where it is striped, about a [`Counter`]'s and the addition; else a
/// compare-and-swap, and another for each thread that was faster.
#[derive(Clone, Debug)]
pub struct FloatCounter {
    cell: Slot<Cell>,
}

single_cell_metric!(pub FloatCounter, |opts| Shape::counter(Number::Float, opts));

impl FloatCounter {
    /// Adds `x`. Negative numbers and NaN are ignored: a counter only goes up.
    #[inline]
    pub fn add(&self, x: f64) {
        if let Some(cell) = self.cell.get() {
            if x > 0.0 {
                cell.add_float(x);
            }
        }
    }

    /// The total over all threads and processes; 0 where not installed. Cost: as
    /// [`Counter::get`].
    pub fn get(&self) -> f64 {
        self.cell.get().map_or(0.0, |cell| cell.get_float())
    }
}
