//! Gauges: values that go up and down.

use talea_region::{Cell, Combine, Incarnation, Number, Storage};

use super::slot::Slot;
use super::{Shape, single_cell_metric, words};
use crate::definition::kind::Kind;

/// A whole number that is set, or goes up and down. Processes that share the
/// region share the value, and the latest write counts; or each has its own, see
/// [`Opts::combine`](crate::Opts::combine).
///
/// Cost of each operation: one atomic operation on a word that all threads share; of
/// [`set_max`](Self::set_max) and [`set_min`](Self::set_min) a load, and a compare-and-swap if they
/// change something.
///
/// Where each process has its own value, the smallest `i64` is kept as the one after
/// it.
#[derive(Clone, Debug)]
pub struct Gauge {
    cell: Slot<Cell>,
}

single_cell_metric!(pub Gauge, |opts| Shape::gauge(Number::Integer, opts));
words!(
    Gauge,
    "whole numbers",
    "There is no such address either if the value may be absent in a process."
);

impl Gauge {
    /// Sets the value.
    #[inline]
    pub fn set(&self, value: i64) {
        self.cell.update(|cell| cell.set(value as u64), move || self.set(value));
    }

    /// Adds one.
    #[inline]
    pub fn inc(&self) {
        self.add(1);
    }

    /// Takes one away.
    #[inline]
    pub fn dec(&self) {
        self.add(-1);
    }

    /// Adds `n`, which may be negative, and returns the new value (0 if it is not installed). It
    /// wraps at the ends of an `i64`.
    #[inline]
    pub fn add(&self, n: i64) -> i64 {
        self.cell.update(|cell| cell.add_and_get(n as u64) as i64, move || self.add(n))
    }

    /// Raises the value to at least `value`. Where a process that set no value is left out
    /// ([`Opts::combine`](crate::Opts::combine)), its first call sets it.
    #[inline]
    pub fn set_max(&self, value: i64) {
        self.cell.update(
            |cell| {
                cell.update_or_set(value as u64, |now| (value > now as i64).then_some(value as u64))
            },
            move || self.set_max(value),
        );
    }

    /// Lowers the value to at most `value`; its first call as in [`set_max`](Self::set_max).
    #[inline]
    pub fn set_min(&self, value: i64) {
        self.cell.update(
            |cell| {
                cell.update_or_set(value as u64, |now| (value < now as i64).then_some(value as u64))
            },
            move || self.set_min(value),
        );
    }

    /// The value, of this process where each has its own; 0 if it is not installed.
    #[inline]
    pub fn get(&self) -> i64 {
        self.cell.get().map_or(0, |cell| cell.get() as i64)
    }
}

/// A [`Gauge`] of any float, NaN and the infinities included.
///
/// Cost: of [`set`](Self::set) and [`get`](Self::get) one atomic operation, of
/// [`add`](Self::add) a compare-and-swap, and another for each thread that was faster.
#[derive(Clone, Debug)]
pub struct FloatGauge {
    cell: Slot<Cell>,
}

single_cell_metric!(pub FloatGauge, |opts| Shape::gauge(Number::Float, opts));
words!(
    FloatGauge,
    "the bits of an `f64`",
    "There is no such address either if the value may be absent in a process."
);

impl FloatGauge {
    /// Sets the value.
    #[inline]
    pub fn set(&self, value: f64) {
        self.cell.update(|cell| cell.set_float(value), move || self.set(value));
    }

    /// Adds `x`, which may be negative.
    #[inline]
    pub fn add(&self, x: f64) {
        self.cell.update(|cell| cell.add_float(x), move || self.add(x));
    }

    /// Raises the value to at least `value`; its first call as in [`Gauge::set_max`]. Any number
    /// replaces NaN, and NaN replaces no number.
    #[inline]
    pub fn set_max(&self, value: f64) {
        // −0.0 has the bits of the smallest integer.
        let bits = (value + 0.0).to_bits();
        self.cell.update(
            |cell| {
                cell.update_or_set(bits, |now| {
                    let now = f64::from_bits(now);
                    (value > now || now.is_nan()).then_some(bits)
                })
            },
            move || self.set_max(value),
        );
    }

    /// Lowers the value to at most `value`; its first call, and NaN, as in [`set_max`](Self::set_max).
    #[inline]
    pub fn set_min(&self, value: f64) {
        let bits = (value + 0.0).to_bits();
        self.cell.update(
            |cell| {
                cell.update_or_set(bits, |now| {
                    let now = f64::from_bits(now);
                    (value < now || now.is_nan()).then_some(bits)
                })
            },
            move || self.set_min(value),
        );
    }

    /// Takes this process's value out; false if the process has one nevertheless, as [`Cell::unset`] says.
    pub(crate) fn unset(&self) -> bool {
        self.cell.get().is_some_and(|cell| cell.unset())
    }

    /// The value, of this process where each has its own; 0 if it is not installed.
    #[inline]
    pub fn get(&self) -> f64 {
        self.cell.get().map_or(0.0, |cell| cell.get_float())
    }
}

/// The number of things that exist right now: requests in flight, open connections. Each process
/// has its own count, and a scrape shows the sum over the living processes. So the count of a
/// killed process goes with it. Each increment needs a decrement in the same process, also if a
/// task is cancelled or panics.
///
/// Cost of an add: one atomic add on a word of this process.
#[derive(Clone, Debug)]
pub struct UpDownCounter {
    cell: Slot<Cell>,
}

single_cell_metric!(pub UpDownCounter, |opts| {
    Shape::without_choice(opts)?;
    let (number, storage) = (Number::Integer, Some(Storage::Owned));
    Ok(Shape::single_cell(Kind::Gauge, number, storage, Combine::Sum, ""))
});
words!(UpDownCounter, "whole numbers, of this process: a child made by `fork` has others");

impl UpDownCounter {
    /// Adds one.
    #[inline]
    pub fn inc(&self) {
        self.add(1);
    }

    /// Takes one away.
    #[inline]
    pub fn dec(&self) {
        self.add(-1);
    }

    /// Adds `n`, which may be negative. It wraps at the ends of an `i64`.
    #[inline]
    pub fn add(&self, n: i64) {
        self.cell.update(|cell| cell.add_own(n as u64), move || self.add(n));
    }

    /// Adds one for as long as the returned guard lives, which subtracts it on every way out, an
    /// error, a panic or a dropped future among them.
    ///
    /// ```
    /// # use talea::{Opts, Registry, UpDownCounter};
    /// # let registry = Registry::for_test()?;
    /// # let opts = Opts::new("baskets_open", "Baskets that are open.");
    /// let open: UpDownCounter = registry.register(opts)?;
    /// {
    ///     let _basket = open.in_flight_guard();
    ///     assert_eq!(open.get(), 1);
    /// }
    /// assert_eq!(open.get(), 0);
    /// # Ok::<(), talea::Error>(())
    /// ```
    ///
    /// So does a series of a family: `family.with(labels).in_flight_guard()`.
    #[inline]
    pub fn in_flight_guard(&self) -> InFlightGuard {
        self.cell.update(
            |cell: &Cell| {
                cell.add_own(1);
                InFlightGuard { counted: Some((*cell, Incarnation::of(*cell))) }
            },
            move || self.in_flight_guard(),
        )
    }

    /// The count of this process; 0 if it is not installed.
    #[inline]
    pub fn get(&self) -> i64 {
        self.cell.get().map_or(0, |cell| cell.get() as i64)
    }
}

/// An in-flight guard: it counts one until it is dropped; see [`UpDownCounter::in_flight_guard`]. It
/// owns what it needs: it may live across an `await`, be stored, and be sent to another thread.
///
/// It pins nothing. An expiry leaves series alone that count something in flight. If the series is
/// removed on request, its count goes with it, and the guard subtracts nothing from a new series with
/// these labels; nor in a child made by `fork`, which does not count what its parent does; nor if its
/// metric was not installed when it was made. Cost: an add at both ends, and a series guard at the
/// second; no allocation.
#[must_use = "a guard that is dropped at once counts nothing"]
#[derive(Debug, Default)]
pub struct InFlightGuard {
    counted: Option<(Cell, Incarnation)>,
}

impl Drop for InFlightGuard {
    #[inline]
    fn drop(&mut self) {
        let Some((cell, incarnation)) = self.counted else { return };
        if !incarnation.is_of_this_process() {
            return;
        }
        if let Some(_guard) = incarnation.enter() {
            cell.add_own(1_u64.wrapping_neg());
        }
    }
}
