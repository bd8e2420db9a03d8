//! State sets: enums whose current states are shown.

use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;

use talea_region::{Cell, Cells, Combine, Number, Storage};

use super::slot::Slot;
use super::{Metric, Sealed, Shape, single_cell_metric};
use crate::definition::kind::Kind;
use crate::definition::opts::Opts;
use crate::histogram::buckets::Grid;
use crate::labels::{LabelText, LabelValue};

/// The current states of an enum: usually exactly one, for example of a circuit breaker that is
/// open, closed or half open. A scrape shows each state as 0 or 1, with a label that has the name
/// of the metric. Before the first call all are 0.
///
/// All states are one word of the region, so a scrape never mixes two calls. Processes that share
/// the region share it: the latest call wins.
///
/// Registering fails if the enum has more than 64 states.
///
/// Cost of each operation: one atomic operation; of [`enable`](Self::enable) and
/// [`disable`](Self::disable) a compare-and-swap, and another for each concurrent update that came
/// first.
///
/// ```
/// use talea::{LabelValue, Opts, Registry, StateSet};
///
/// #[derive(LabelValue)]
/// enum Circuit { Closed, HalfOpen, Open }
///
/// let registry = Registry::for_test()?;
/// let opts = Opts::new("payment_circuit", "State of the payment provider's circuit.");
/// let circuit: StateSet<Circuit> = registry.register(opts)?;
/// circuit.set(Circuit::HalfOpen);
/// let snapshot = registry.snapshot();
/// let state = |name| snapshot.value("payment_circuit", &[("payment_circuit", name)]);
/// assert_eq!((state("half_open"), state("open")), (Some(1.0), Some(0.0)));
/// # Ok::<(), talea::Error>(())
/// ```
pub struct StateSet<E> {
    cell: Slot<Cell>,
    states: PhantomData<fn(E)>,
}

impl<E: LabelValue + 'static> StateSet<E> {
    /// A state set that is not installed yet: until then, its updates are discarded.
    #[track_caller]
    pub const fn new() -> Self {
        Self { cell: Slot::late(Some(Location::caller())), states: PhantomData }
    }

    /// This state holds, and no other.
    #[inline]
    pub fn set(&self, state: E) {
        let bit = bit(&state);
        self.cell.update(|cell| cell.set(bit), move || self.set(state));
    }

    /// This state holds, whatever the others do.
    #[inline]
    pub fn enable(&self, state: E) {
        let bit = bit(&state);
        self.cell.update(|cell| cell.update(|bits| Some(bits | bit)), move || self.enable(state));
    }

    /// This state does not hold, whatever the others do.
    #[inline]
    pub fn disable(&self, state: E) {
        let bit = bit(&state);
        self.cell.update(|cell| cell.update(|bits| Some(bits & !bit)), move || self.disable(state));
    }

    /// Whether a state holds; false if not installed.
    #[inline]
    pub fn is(&self, state: E) -> bool {
        self.cell.get().is_some_and(|cell| cell.get() & bit(&state) != 0)
    }
}

fn bit(state: &impl LabelValue) -> u64 {
    bit_of(state.index())
}

// Derived, these would ask for states that can do the same.
impl<E> fmt::Debug for StateSet<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateSet").field("cell", &self.cell).finish()
    }
}

impl<E> Clone for StateSet<E> {
    fn clone(&self) -> Self {
        Self { cell: self.cell.clone(), states: PhantomData }
    }
}

impl<E: LabelValue + 'static> Default for StateSet<E> {
    #[track_caller]
    fn default() -> Self {
        Self::new()
    }
}

impl<E: LabelValue + 'static> Metric for StateSet<E> {}

impl<E: LabelValue + 'static> Sealed for StateSet<E> {
    type Bound = Cell;

    fn shape(opts: &Opts<'_>) -> Result<Shape, String> {
        if let Some(fault) = E::fault() {
            return Err(fault);
        }
        let count = E::cardinality().filter(|count| (1..=64).contains(count)).ok_or_else(|| {
            let found = E::cardinality().map_or("any number".to_owned(), |n| n.to_string());
            number_of_states(&found) + "; use an enum of the states"
        })?;
        shape(
            opts,
            (0..count)
                .map(|n| {
                    let mut text = LabelText::new();
                    E::write_nth(n, &mut text);
                    String::from_utf8_lossy(text.as_bytes()).into_owned()
                })
                .collect(),
        )
    }

    #[inline]
    fn bind(cells: Cells, _: &'static Grid) -> Cell {
        cells.at(0)
    }

    #[inline]
    fn holding(cell: Slot<Cell>) -> Self {
        Self { cell, states: PhantomData }
    }

    #[inline]
    fn slot(&self) -> &Slot<Cell> {
        &self.cell
    }
}

fn number_of_states(found: &str) -> String {
    format!("a state set has 1 to 64 states; found {found}")
}

fn shape(opts: &Opts<'_>, states: Vec<String>) -> Result<Shape, String> {
    Shape::without_choice(opts)?;
    let mut seen = HashSet::new();
    // A scrape would show one series twice.
    if let Some(twice) = states.iter().find(|state| !seen.insert(*state)) {
        return Err(format!("its state {twice:?} is given twice; name each state once"));
    }
    let (number, storage) = (Number::Integer, Some(Storage::Single));
    let shape = Shape::single_cell(Kind::StateSet, number, storage, Combine::Latest, "");
    Ok(Shape { states, ..shape })
}

/// A [`StateSet`] whose states are known at run time: the states in [`Opts::states`], by their numbers
/// from 0.
///
/// ```
/// use talea::{DynamicStateSet, Opts, Registry};
///
/// let registry = Registry::for_test()?;
/// let opts = Opts::new("payment_circuit", "State of the payment provider's circuit.");
/// let circuit: DynamicStateSet = registry.register(opts.states(&["closed", "open"]))?;
/// circuit.set(1);
/// let snapshot = registry.snapshot();
/// assert_eq!(snapshot.value("payment_circuit", &[("payment_circuit", "open")]), Some(1.0));
/// # Ok::<(), talea::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct DynamicStateSet {
    cell: Slot<Cell>,
}

single_cell_metric!(pub DynamicStateSet, |opts| {
    let count = opts.states.len();
    if !(1..=64).contains(&count) {
        return Err(number_of_states(&count.to_string()));
    }
    shape(opts, opts.states.iter().map(|state: &&str| {
        let mut text = LabelText::new();
        text.push_escaped(state);
        String::from_utf8_lossy(text.as_bytes()).into_owned()
    }).collect())
});

impl DynamicStateSet {
    /// This state holds, and no other.
    #[inline]
    pub fn set(&self, state: usize) {
        self.cell.update(|cell| cell.set(bit_of(state)), move || self.set(state));
    }

    /// This state holds if none was ever set.
    pub fn set_first(&self, state: usize) {
        self.cell.update(
            |cell| cell.update(|bits| (bits == 0).then_some(bit_of(state))),
            move || self.set_first(state),
        );
    }
}

fn bit_of(state: usize) -> u64 {
    // A registered set has at most 64 states.
    1 << (state as u64 % 64)
}
