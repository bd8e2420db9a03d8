//! Histograms: how many observations were how large.

use std::fmt;
use std::marker::PhantomData;

use talea_region::{
    Cell, Cells, Combine, LentPlane, Number, Segment, Segments, Uncounted, UncountedRest,
    UsualSegment,
};

use super::slot::{self, Slot};
use super::{Metric, Sealed, Shape};
use crate::definition::Recent;
use crate::definition::kind::Kind;
use crate::definition::opts::{Bucketing, Opts};
use crate::definition::unit::{Floats, Unit};
use crate::exemplar::{self, ExemplarError};
use crate::histogram::buckets::{
    COARSEST, FINEST, Grid, Layout, NativeLayout, Numbers, Octave, Octaves, ZERO, order,
};
#[cfg(feature = "tracing")]
use crate::trace;

/// Records observations by size, with their sum. The unit is in the type: `Histogram<Seconds>`
/// observes a `Duration`, `Histogram<Bytes>` a `u64`.
///
/// Unless [`Opts::bucketing`] chooses otherwise, it has two kinds of buckets. A *classic* bucket
/// holds values up to its [threshold](Opts::buckets) and above the one below. *Native* buckets are
/// exponential: quantiles computed from them have a known error, 4.33 % at the default
/// [`Opts::schema`], over any range of values. Both, and the count, are read from the same cells,
/// so they agree at any instant, also after a writer was killed.
///
/// The sum is a 64-bit integer of stored parts of the unit: for durations nanoseconds, which wrap
/// after 584 years in total.
///
/// Cost: a look at two small tables, a comparison with each threshold of the value's octave, and
/// two adds that share their overhead, each as a [`Counter`](crate::Counter)'s. The first value of
/// an octave takes memory of the region for its buckets, which is backed ahead; if there is none
/// left, it is counted by the thresholds and by buckets of schema −4.
// All fields that an observation reads are on one cache line.
#[derive(Debug)]
#[repr(align(64))]
pub struct Histogram<U: Unit> {
    bound: Slot<HistogramCells>,
    unit: PhantomData<U>,
}

/// The cells of a histogram, and which of them an observation is counted in.
#[doc(hidden)]
#[derive(Clone, Copy)]
// The most used field comes first.
#[repr(C)]
pub struct HistogramCells {
    native: Option<Native>,
    cells: Cells,
    grid: &'static Grid,
}

/// Where the native buckets are.
#[derive(Clone, Copy)]
struct Native {
    segments: Segments,
    octaves: &'static Octaves,
}

impl PartialEq for HistogramCells {
    fn eq(&self, other: &Self) -> bool {
        self.cells == other.cells
    }
}

impl fmt::Debug for HistogramCells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HistogramCells").field(&self.cells).finish_non_exhaustive()
    }
}

impl HistogramCells {
    pub(super) fn new(cells: Cells, grid: &'static Grid) -> Self {
        let native = match grid.octaves() {
            Some(octaves) => cells
                .segments()
                .map(|segments| Native { segments: segments.mostly(octaves.usual()), octaves }),
            None => None,
        };
        Self { cells, native, grid }
    }

    /// A base cell. Out of the way, as a damaged region may not have it.
    fn base(&self, n: usize) -> Cell {
        let beyond = n.checked_sub(self.cells.len() - 1);
        beyond
            .map_or(Some(self.cells.at(n)), |n| {
                let Native { segments, octaves } = self.native.as_ref()?;
                segments.cell(segments.get(octaves.base_segment())?, n)
            })
            .unwrap_or(self.cells.at(ZERO))
    }

    /// Counts one observation.
    #[inline]
    pub(super) fn observe<U: Unit>(&self, value: U::Value) {
        let kept = U::kept(value);
        match U::IS_FLOAT {
            false => self.count(kept),
            true => self.count_float(f64::from_bits(kept)),
        }
    }

    #[inline]
    fn observe_in_both<U: Unit>(&self, other: &Self, value: U::Value) {
        if U::IS_FLOAT || self.count_in_both(other, U::kept(value)).is_none() {
            self.observe::<U>(value);
            other.observe::<U>(value);
        }
    }

    /// Counts a whole number in two histograms that have the same buckets, whose cell is found by
    /// one search. `None` if nothing is counted.
    #[inline(never)]
    fn count_in_both(&self, other: &Self, kept: u64) -> Option<()> {
        let (native, others) = (self.native.as_ref()?, other.native.as_ref()?);
        let (segment, n) = native.usual_cell(kept)?;
        if !std::ptr::eq(self.grid, other.grid) {
            return None;
        }
        self.count_in(native, segment, n, kept);
        match others.usual_segment(kept) {
            Some(segment) => other.count_in(others, segment, n, kept),
            None => other.count_otherwise(kept),
        }
        Some(())
    }

    #[inline]
    fn count(&self, kept: u64) {
        let Some(native) = &self.native else { return self.count_by_thresholds(kept) };
        match native.usual_cell(kept) {
            Some((segment, n)) => self.count_in(native, segment, n, kept),
            None => self.count_otherwise(kept),
        }
    }

    #[inline(always)]
    fn count_in(&self, native: &Native, segment: UsualSegment, n: usize, kept: u64) {
        match native.segments.count(segment, n, kept) {
            Ok(()) => {}
            Err(Uncounted::Rest(rest)) => self.count_rest(kept, rest),
            Err(Uncounted::All) => self.count_otherwise(kept),
        }
    }

    /// Out of line, as the function below.
    #[inline(never)]
    fn count_rest(&self, kept: u64, rest: UncountedRest) {
        let native = self.native.as_ref();
        if !native.is_some_and(|native| native.segments.count_rest(kept, rest)) {
            self.count_otherwise(kept);
        }
    }

    /// Observes if there are no native buckets.
    #[inline(never)]
    fn count_by_thresholds(&self, kept: u64) {
        self.cells.at(self.grid.base_of_whole(kept)).count(self.cells.last(), kept);
    }

    /// Out of line with all its callees, so that the common path needs no callee-saved registers.
    #[inline(never)]
    fn count_otherwise(&self, kept: u64) {
        if kept == 0 && self.native.is_some() {
            // Often, of sizes, and in no octave; the sum stays as it is.
            return self.cells.at(ZERO).add(1);
        }
        let sum = self.cells.last();
        let is_counted = self.octave_cell_of_whole(kept).is_some_and(|cell| cell.count(sum, kept));
        if !is_counted {
            self.base(self.grid.base_of_whole(kept)).count(sum, kept);
        }
    }

    fn octave_cell_of_whole(&self, kept: u64) -> Option<Cell> {
        let native = self.native.as_ref()?;
        if kept == 0 {
            return None;
        }
        let octave = Octaves::of_whole(kept);
        let segment = match native.segments.get(native.octaves.segment_of(octave)) {
            Some(segment) => segment,
            None => native.make_segment(octave)?,
        };
        native.segments.cell(segment, native.octaves.cell_of_whole(kept, segment.tag())?)
    }

    #[inline(never)]
    fn count_float(&self, x: f64) {
        // A sum that is no number would stay one, whatever is wiped or taken away.
        let summand = if x.is_finite() { x } else { 0.0 };
        let sum = self.cells.last();
        let is_counted =
            self.octave_cell_of_float(x).is_some_and(|cell| cell.count_float(sum, summand));
        if !is_counted {
            self.base(self.grid.base_of_float(x)).count_float(sum, summand);
        }
    }

    /// Counts a number of observations of one value.
    fn observe_many<U: Unit>(&self, value: U::Value, times: u64) {
        let (kept, sum) = (U::kept(value), self.cells.last());
        let cell = match U::IS_FLOAT {
            true => self.octave_cell_of_float(f64::from_bits(kept)),
            false => self.octave_cell_of_whole(kept),
        };
        if !cell.is_some_and(|cell| cell.try_add(times)) {
            self.base(self.grid.base_of(kept)).add(times);
        }
        if U::IS_FLOAT {
            let all = f64::from_bits(kept) * times as f64;
            // As with one.
            sum.add_float(if all.is_finite() { all } else { 0.0 });
        } else {
            sum.add(kept.wrapping_mul(times));
        }
    }

    fn octave_cell_of_float(&self, x: f64) -> Option<Cell> {
        let native = self.native.as_ref()?;
        for octave in Octaves::of_float(x) {
            let segment = match native.segments.get(native.octaves.segment_of(octave)) {
                Some(segment) => segment,
                None => native.make_segment(octave)?,
            };
            if let Some(cell) = native.octaves.cell_of_float(x, octave, segment.tag()) {
                return native.segments.cell(segment, cell);
            }
        }
        None
    }
}

impl Native {
    /// The segment of a whole number that is not 0, and the cell in it, if they are found
    /// as nearly all are: so it calls nothing.
    #[inline(always)]
    fn usual_cell(&self, kept: u64) -> Option<(UsualSegment, usize)> {
        Some((self.usual_segment(kept)?, self.octaves.usual_cell(kept)?))
    }

    #[inline(always)]
    fn usual_segment(&self, kept: u64) -> Option<UsualSegment> {
        if kept == 0 {
            return None;
        }
        self.segments.usual(Octaves::of_whole(kept).slot)
    }

    /// Makes the segment of an octave; `None` if there is no room for it.
    #[cold]
    #[inline(never)]
    fn make_segment(&self, octave: Octave) -> Option<Segment> {
        let Self { segments, octaves } = *self;
        loop {
            let level = segments.level();
            let made = segments.made().map(|(n, segment)| (n, segment.tag()));
            match octaves.segment(octave, made, level) {
                Ok((cells, tag)) => return segments.make(octaves.segment_of(octave), cells, tag),
                Err(coarser) => segments.set_level(level, coarser),
            }
        }
    }
}

impl Histogram<Floats> {
    /// Where the owner of a lent plane observes finite values, as indices of the plane's words. `None` if the
    /// histogram has native buckets, is not installed, or has no copy there.
    #[doc(hidden)]
    pub fn cells_in(&self, plane: &LentPlane) -> Option<LentHistogram> {
        let HistogramCells { native: None, cells, grid } = *self.bound.get()? else { return None };
        let first = plane.index_of(cells.at(0))?;
        let thresholds: Vec<f64> = grid.bounds().collect();
        // By a value of each interval that is not 0, which has a cell of its own.
        let values = thresholds.iter().chain([&f64::MAX]);
        let counts = values.map(|&upper| {
            let value = if upper == 0.0 { -f64::MIN_POSITIVE } else { upper };
            first + grid.base_of_float(value)
        });
        let counts = counts.collect();
        Some(LentHistogram { thresholds, counts, zero: first + ZERO, sum: first + cells.len() - 1 })
    }
}

/// The cells of a histogram in a lent plane.
#[doc(hidden)]
#[derive(Debug)]
pub struct LentHistogram {
    /// Ascending.
    pub thresholds: Vec<f64>,
    /// The whole number that counts the values, other than 0, up to each threshold, and above the last.
    pub counts: Vec<usize>,
    /// The one that counts the value 0.
    pub zero: usize,
    /// The float that the values are added to.
    pub sum: usize,
}

impl Slot<HistogramCells> {
    /// Counts one observation.
    #[inline]
    pub(super) fn observe<U: Unit>(&self, value: U::Value) {
        self.update_or(|bound| bound.observe::<U>(value), || self.count_late::<U>(U::kept(value)));
    }

    /// Observes if no binding was known. It does not call the common path, of which there would be
    /// two copies, and neither in its place.
    #[cold]
    #[inline(never)]
    fn count_late<U: Unit>(&self, kept: u64) {
        self.update_late(move || match (self.get(), U::IS_FLOAT) {
            (Some(bound), true) => bound.count_float(f64::from_bits(kept)),
            (Some(bound), false) => bound.count_otherwise(kept),
            (None, _) => {}
        });
    }
}

impl slot::Bound for HistogramCells {
    #[inline]
    fn cell(self) -> Cell {
        self.cells.at(0)
    }
}

impl<U: Unit> Histogram<U> {
    /// Records one observation. A value above all thresholds is in the bucket `+Inf`.
    #[inline]
    pub fn observe(&self, value: U::Value) {
        self.bound.observe::<U>(value);
    }

    /// Records one observation here and in another histogram, for example if one moment ends two
    /// timed operations.
    ///
    /// Cost: if both have the same buckets, less than two observations, since the buckets are
    /// searched once.
    #[inline]
    pub fn observe_in_both(&self, other: &Self, value: U::Value) {
        match (self.bound.now(), other.bound.now()) {
            (Some(bound), Some(others)) => bound.observe_in_both::<U>(others, value),
            _ => {
                self.observe(value);
                other.observe(value);
            }
        }
    }

    /// Records a number of observations of one value, for example for a batch whose parts took the same
    /// time. A reader can see them before their sum.
    ///
    /// Cost: about three observations, for any number of them.
    pub fn observe_many(&self, value: U::Value, times: u64) {
        let bound = &self.bound;
        if times > 0 {
            bound.update_late(|| {
                bound.get().into_iter().for_each(|one| one.observe_many::<U>(value, times))
            });
        }
    }

    /// Counts one observation and keeps it as the exemplar of its bucket: by its labels,
    /// usually the id of its trace, it can be found. Formats that know exemplars show the
    /// latest of each bucket.
    ///
    /// Cost: an observation, a look at the clock and a copy of the labels; the first of a bucket
    /// takes memory of the region. Observations without an exemplar cost no more than before.
    ///
    /// # Errors
    ///
    /// The exemplar is refused, and the observation counts all the same: the labels exceed
    /// 128 characters in total, a label name is not valid, or the region is full.
    pub fn observe_with_exemplar(
        &self,
        value: U::Value,
        labels: &[(&str, &str)],
    ) -> Result<(), ExemplarError> {
        self.observe(value);
        let Some(HistogramCells { cells, grid, .. }) = self.bound.get() else { return Ok(()) };
        let kept = U::kept(value);
        // The base cell determines the bucket of the exemplar.
        exemplar::keep(cells.at(0), grid.base_of(kept), grid.shown(kept), labels)
    }

    /// Counts one observation. If this thread is in a sampled span, that becomes the exemplar of the
    /// value's bucket, with the labels `trace_id` and `span_id`; at most ten a second for each bucket,
    /// so that it costs little under load.
    ///
    /// The span is the current one of OpenTelemetry. With tracing-opentelemetry it is the
    /// current `tracing` span, and spans from a W3C `traceparent` keep its trace id. Without one, it is the span of
    /// another tracer in the process, if that publishes OpenTelemetry's thread context (`otel_thread_ctx_v1`) and was
    /// loaded before the thread's first such observation. If there is no room for an exemplar, the observation counts
    /// all the same.
    ///
    /// Cost: an observation, and a look at variables of the thread; in a sampled span a look at the
    /// clock and at the bucket's exemplar, and at most ten times a second the cost of
    /// [`observe_with_exemplar`](Self::observe_with_exemplar). It does not allocate. It panics when it is
    /// called while the thread's variables are being dropped.
    #[cfg(feature = "tracing")]
    #[inline]
    pub fn observe_traced(&self, value: U::Value) {
        self.observe(value);
        self.keep_trace(value);
    }

    /// Keeps the span that this thread is in as the exemplar of a value's bucket.
    #[cfg(feature = "tracing")]
    #[doc(hidden)]
    #[inline]
    pub fn keep_trace(&self, value: U::Value) {
        if let Some(span) = trace::current() {
            self.keep_span(value, span);
        }
    }

    #[cfg(feature = "tracing")]
    #[cold]
    fn keep_span(&self, value: U::Value, span: trace::SpanIds) {
        let Some(HistogramCells { cells, grid, .. }) = self.bound.get() else { return };
        let kept = U::kept(value);
        trace::keep(cells.at(0), grid.base_of(kept), grid.shown(kept), span);
    }
}

/// The parts that histograms and summaries have in common: the slot of their cells.
macro_rules! histogram_cells {
    ($name:ident, $shape:expr) => {
        impl<U: Unit> $name<U> {
            /// A metric that is not installed yet: until then, its updates are discarded.
            #[track_caller]
            pub const fn new() -> Self {
                Self { bound: Slot::late(Some(std::panic::Location::caller())), unit: PhantomData }
            }
        }

        impl<U: Unit> Clone for $name<U> {
            fn clone(&self) -> Self {
                Self { bound: self.bound.clone(), unit: PhantomData }
            }
        }

        impl<U: Unit> Default for $name<U> {
            #[track_caller]
            fn default() -> Self {
                Self::new()
            }
        }

        impl<U: Unit> Metric for $name<U> {}

        impl<U: Unit> Sealed for $name<U> {
            type Bound = HistogramCells;

            fn shape(opts: &Opts<'_>) -> Result<Shape, String> {
                $shape(opts)
            }

            #[inline]
            fn bind(cells: Cells, grid: &'static Grid) -> HistogramCells {
                HistogramCells::new(cells, grid)
            }

            #[inline]
            fn holding(bound: Slot<HistogramCells>) -> Self {
                Self { bound, unit: PhantomData }
            }

            #[inline]
            fn slot(&self) -> &Slot<HistogramCells> {
                &self.bound
            }
        }
    };
}
pub(super) use histogram_cells;

histogram_cells!(Histogram, shape::<U>);

/// The shape of a family of histograms in the region, or the fault in its options.
pub(super) fn shape<U: Unit>(opts: &Opts<'_>) -> Result<Shape, String> {
    Shape::without_choice(opts)?;
    if !(U::PER_UNIT.is_normal() && U::PER_UNIT > 0.0) {
        return Err(format!(
            "the PER_UNIT of its unit is {}; expected a finite number above 0",
            U::PER_UNIT
        ));
    }
    let thresholds = match opts.bucketing {
        Bucketing::Native => Vec::new(),
        // Its samples say more.
        Bucketing::Classic if opts.sampled => Vec::new(),
        _ => thresholds::<U>(opts.buckets.unwrap_or(U::BUCKETS))?,
    };
    let numbers = if U::IS_FLOAT { Numbers::Floats } else { Numbers::Whole };
    let native = native(opts)?;
    let recent = match (opts.quantiles, opts.bucketing) {
        (None, _) => None,
        (Some(_), Bucketing::Classic) => {
            return Err("quantiles are asked for, and its buckets are classic alone; leave one \
                        of the two out"
                .to_owned());
        }
        (Some(quantiles), _) => Some(recent(opts, quantiles)?),
    };
    let layout = Layout { numbers, per_unit: U::PER_UNIT, thresholds, native };
    let grid = Grid::shared(&layout);
    Ok(Shape {
        kind: Kind::Histogram,
        number: match numbers {
            Numbers::Whole => Number::Integer,
            Numbers::Floats => Number::FloatLast,
        },
        storage: None,
        combine: Combine::Sum,
        ending: U::SUFFIX,
        cells: grid.cells(),
        segments: grid.segments(),
        made_segment: grid.made_segment(),
        layout,
        recent,
        states: Vec::new(),
    })
}

fn thresholds<U: Unit>(shown: &[f64]) -> Result<Vec<u64>, String> {
    let expected = match U::IS_FLOAT {
        false => "buckets are finite, positive, ascending and at most 1,024",
        true => "buckets are finite, ascending and at most 1,024",
    };
    if shown.is_empty() || shown.len() > 1024 {
        return Err(format!("{expected}; found {} buckets", shown.len()));
    }
    let mut kept: Vec<u64> = Vec::with_capacity(shown.len());
    for &threshold in shown {
        let next = match U::IS_FLOAT {
            false => {
                let scaled = (threshold * U::PER_UNIT).round();
                // A threshold below the smallest kept unit would be 0.
                (1.0..u64::MAX as f64).contains(&scaled).then_some(scaled as u64)
            }
            true => threshold.is_finite().then(|| order(threshold)),
        };
        let next = next.ok_or_else(|| format!("{expected}; found {threshold}"))?;
        if kept.last().is_some_and(|&last| last >= next) {
            return Err(format!("{expected}; {threshold} does not exceed the bucket before it"));
        }
        kept.push(next);
    }
    Ok(kept)
}

fn native(opts: &Opts<'_>) -> Result<Option<NativeLayout>, String> {
    let Opts { bucketing, schema, max_buckets: most, widest_zero, .. } = *opts;
    if bucketing == Bucketing::Classic {
        return Ok(None);
    }
    if !(COARSEST..=FINEST as i8).contains(&schema) {
        return Err(format!("its schema is {schema}; expected {COARSEST} to {FINEST}"));
    }
    if most == 0 {
        return Err("its max_buckets is 0; expected at least 1, or Bucketing::Classic for no \
                    native buckets"
            .to_owned());
    }
    if !(widest_zero >= 0.0 && widest_zero.is_finite()) {
        return Err(format!(
            "its widest zero is {widest_zero}; expected a finite number of at least 0"
        ));
    }
    // -0 is 0 as well.
    Ok(Some(NativeLayout { schema, most, widest_zero: widest_zero.abs() }))
}

/// The quantiles and the window that the options ask for, or the fault in these.
pub(super) fn recent(opts: &Opts<'_>, quantiles: &[f64]) -> Result<Recent, String> {
    let seconds = match u32::try_from(opts.window.as_secs()) {
        Ok(seconds) if seconds > 0 && opts.window.subsec_nanos() == 0 => seconds,
        _ => {
            return Err(format!(
                "its window is {:?}; expected whole seconds, 1 to {}",
                opts.window,
                u32::MAX
            ));
        }
    };
    let recent = Recent { seconds, quantiles: quantiles.to_vec(), sampled: opts.sampled };
    if !recent.is_sound() {
        return Err(format!(
            "its quantiles are {quantiles:?}; expected at most {} from 0 to 1, ascending",
            Recent::MOST
        ));
    }
    Ok(recent)
}
