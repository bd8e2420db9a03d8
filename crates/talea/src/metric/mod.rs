//! The metric types: the handles that user code holds and calls.
//!
//! Each is a handle of a few words that is either bound to its cells or not
//! installed yet, in which case its updates are discarded. All of them can be
//! shared by any number of threads; no operation allocates, blocks, panics or
//! logs. (To set an [`Info`] makes a series and allocates; it is meant to be done
//! once.)

mod counter;
pub(crate) mod discarded;
mod gauge;
mod histogram;
mod info;
pub(crate) mod slot;
mod state_set;
mod summary;
pub(crate) mod timer;

pub use counter::{Counter, FloatCounter};
pub use gauge::{FloatGauge, Gauge, InFlightGuard, UpDownCounter};
pub use histogram::{Histogram, LentHistogram};
pub use info::Info;
pub(crate) use info::InfoSeries;
pub use state_set::{DynamicStateSet, StateSet};
pub use summary::Summary;
use talea_region::{Cells, Combine, MadeSegment, Number, Storage};
pub use timer::{ObserveDuration, Timer};

use self::slot::Slot;
use crate::definition::Recent;
use crate::definition::kind::Kind;
use crate::definition::opts::Opts;
use crate::histogram::buckets::{Grid, Layout};

/// A metric type: a counter, a gauge, a histogram, a state set. Sealed: the formats
/// know these and no others.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no metric",
    label = "expected one of talea's: a Counter, a Gauge, a Histogram, …"
)]
pub trait Metric: Sealed {}

/// The interface of a metric type to the registry.
#[doc(hidden)]
pub trait Sealed: Sized + 'static {
    /// The metric's cells, as a handle keeps them.
    type Bound: slot::Bound;

    /// The shape of a family of this type in the region, or the fault in its options.
    fn shape(opts: &Opts<'_>) -> Result<Shape, String>;

    fn bind(cells: Cells, grid: &'static Grid) -> Self::Bound;

    fn holding(bound: Slot<Self::Bound>) -> Self;

    fn slot(&self) -> &Slot<Self::Bound>;
}

/// The shape of a family of some metric type in the region, without labels.
#[doc(hidden)]
#[derive(Debug)]
pub struct Shape {
    pub(crate) kind: Kind,
    pub(crate) number: Number,
    /// How it must be stored; `None` if the labels decide.
    pub(crate) storage: Option<Storage>,
    pub(crate) combine: Combine,
    /// The ending of the name.
    pub(crate) ending: &'static str,
    pub(crate) layout: Layout,
    pub(crate) recent: Option<Recent>,
    /// The names of a state set's states.
    pub(crate) states: Vec<String>,
    /// Cells of a series, and segments that it may have.
    pub(crate) cells: usize,
    pub(crate) segments: usize,
    /// The segment that a series is made with, if any.
    pub(crate) made_segment: MadeSegment,
}

impl Shape {
    /// One cell that counts up.
    fn counter(number: Number, opts: &Opts<'_>) -> Result<Self, String> {
        Self::without_choice(opts)?;
        Ok(Self::single_cell(Kind::Counter, number, None, Combine::Sum, "_total"))
    }

    /// One cell that is set.
    fn gauge(number: Number, opts: &Opts<'_>) -> Result<Self, String> {
        let combine = opts.combine.unwrap_or(Combine::Latest);
        let storage = match combine {
            Combine::Latest => Storage::Single,
            _ => Storage::Owned,
        };
        Ok(Self::single_cell(Kind::Gauge, number, Some(storage), combine, ""))
    }

    fn single_cell(
        kind: Kind,
        number: Number,
        storage: Option<Storage>,
        combine: Combine,
        ending: &'static str,
    ) -> Self {
        Self {
            kind,
            number,
            storage,
            combine,
            ending,
            layout: Layout::default(),
            recent: None,
            states: Vec::new(),
            cells: 1,
            segments: 0,
            made_segment: MadeSegment::default(),
        }
    }

    /// Refuses a choice that only a gauge has.
    fn without_choice(opts: &Opts<'_>) -> Result<(), String> {
        match opts.combine {
            None => Ok(()),
            Some(combine) => Err(format!(
                "`combine` is {combine:?}, and only a `Gauge` or a `FloatGauge` can be combined \
                 otherwise than its type says; leave it out"
            )),
        }
    }
}

/// The parts that every metric of one cell has in common.
macro_rules! single_cell_metric {
    ($vis:vis $name:ident, $shape:expr) => {
        impl $name {
            /// A metric that is not installed yet: until then, its updates are discarded. Its
            /// clones are installed with it.
            #[track_caller]
            $vis const fn new() -> Self {
                Self { cell: crate::metric::slot::Slot::late(Some(std::panic::Location::caller())) }
            }
        }

        impl Default for $name {
            #[track_caller]
            fn default() -> Self {
                Self::new()
            }
        }

        impl crate::metric::Metric for $name {}

        impl crate::metric::Sealed for $name {
            type Bound = talea_region::Cell;

            fn shape(opts: &crate::definition::opts::Opts<'_>) -> Result<crate::metric::Shape, String> {
                let shape: fn(&crate::definition::opts::Opts<'_>) -> Result<crate::metric::Shape, String> =
                    $shape;
                shape(opts)
            }

            #[inline]
            fn bind(cells: talea_region::Cells, _: &'static crate::histogram::buckets::Grid) -> Self::Bound {
                cells.at(0)
            }

            #[inline]
            fn holding(cell: crate::metric::slot::Slot<Self::Bound>) -> Self {
                Self { cell }
            }

            #[inline]
            fn slot(&self) -> &crate::metric::slot::Slot<Self::Bound> {
                &self.cell
            }
        }
    };
}
pub(crate) use single_cell_metric;

/// The words of a metric of one cell, for bindings to other languages.
macro_rules! words {
    ($name:ident, $content:literal $(, $absent:literal)?) => {
        impl $name {
            /// Words that a binding to another language may add to: at most `most`, of which any thread
            /// may use any by the atomic instructions of its own language, beside all other updates.
            #[doc = concat!("They hold ", $content, ".")]
            ///
            /// Word `n` is for threads on CPU `n`; there is one where the value is in one word, and none
            /// if it is not installed. The words stay valid until the process ends.
            $(#[doc = $absent])?
            pub fn words(&self, most: usize) -> Vec<&'static std::sync::atomic::AtomicU64> {
                self.cell.get().map_or_else(Vec::new, |cell| cell.words(most))
            }
        }
    };
}
pub(crate) use words;
