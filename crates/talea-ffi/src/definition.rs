//! Options of families.

use std::time::Duration;

use talea::{Bucketing, Combine, Opts};

use crate::boundary;
use crate::status::{Failure, Status};
use crate::text::Text;

/// The kind of a family's metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Kind {
    /// A total of whole things, that only goes up.
    Counter = 1,
    /// A total of anything else, that only goes up.
    FloatCounter = 2,
    /// A number that is set, or goes up and down.
    Gauge = 3,
    /// A gauge of whole numbers, from -2^63 to 2^63 - 1.
    IntegerGauge = 4,
    /// A number of present things, such as requests in flight. Each process counts its own, and its
    /// part is removed when it ends.
    UpDownCounter = 5,
    /// Observations by size, with their count and sum.
    Histogram = 6,
    /// Quantiles of recent observations, with the count and sum of all.
    Summary = 7,
}

/// The unit of a histogram or a summary. It determines the storage, the suffix of the name, and the
/// thresholds if `buckets` has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Unit {
    /// Doubles of any kind, kept as such; powers of ten from 0.001 to 1,000.
    None = 0,
    /// Durations in seconds, kept in nanoseconds; `_seconds`; 14 thresholds from 5 ms to 10 s.
    Seconds = 1,
    /// Whole bytes; `_bytes`; 8 thresholds from 256 B to 4 MiB.
    Bytes = 2,
    /// Whole things; powers of ten from 1 to a million.
    Things = 3,
}

/// How the processes that share a region make up the value of a gauge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Combining {
    /// The value set last, by any process.
    Latest = 0,
    /// The sum of what the living processes set, each its own.
    Sum = 1,
    /// The largest of these.
    Max = 2,
    /// The smallest of these.
    Min = 3,
    /// A series for each, with the label `pid`.
    Each = 4,
}

/// The buckets of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Buckets {
    /// Those of its thresholds, and exponential ones.
    Dual = 0,
    /// Those of its thresholds alone: the least memory.
    Classic = 1,
    /// Exponential ones alone; text formats show the count and the sum.
    Native = 2,
}

/// The metric and its labels may have any names without quotes, backslashes and control
/// characters that do not begin with `_`.
pub const TALEA_FAMILY_UTF8_NAMES: u32 = 1;
/// `schema` of talea_family_options counts.
pub const TALEA_FAMILY_SCHEMA: u32 = 2;
/// Each CPU has a copy of each value: for counters and histograms of few, hot series. Those
/// without labels have it anyway.
pub const TALEA_FAMILY_STRIPED: u32 = 4;
/// Series never go because nobody uses them.
pub const TALEA_FAMILY_LASTING: u32 = 8;
/// `quantiles` of talea_family_options counts also where there are none.
pub const TALEA_FAMILY_QUANTILES: u32 = 16;
/// A summary without a unit keeps what was observed lately in the region, 0.5 to 13.5 KiB a series, so
/// that who reads it need not have been there meanwhile: for processes that live for some requests
/// only. While its window has no more than 128 observations, quantiles are exact.
pub const TALEA_FAMILY_SAMPLED: u32 = 32;
/// Names are taken as other libraries take them: also gauges that end in `_total` or `_info`, names
/// that end in `_count`, `_sum`, `_bucket` or `_created`, that begin with one `_`, and, where it is
/// no histogram and no summary, labels `le` and `quantile`. For metrics that were named by others.
pub const TALEA_FAMILY_LENIENT_NAMES: u32 = 64;
/// Not even what has no labels has a copy for each CPU. What it held before it was wiped takes no
/// digits then of what it counts afterwards, where its values are floats.
pub const TALEA_FAMILY_UNSTRIPED: u32 = 128;

const FLAGS: u32 = TALEA_FAMILY_UTF8_NAMES
    | TALEA_FAMILY_SCHEMA
    | TALEA_FAMILY_STRIPED
    | TALEA_FAMILY_LASTING
    | TALEA_FAMILY_QUANTILES
    | TALEA_FAMILY_SAMPLED
    | TALEA_FAMILY_LENIENT_NAMES
    | TALEA_FAMILY_UNSTRIPED;

/// Options to register a family with. Zero means the default, except in `size`, `kind`, `name` and
/// `help`; set `size` by `sizeof`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct FamilyOptions {
    /// How large this struct is.
    pub size: usize,
    /// A talea_kind.
    pub kind: u32,
    /// A talea_unit, of histograms and summaries.
    pub unit: u32,
    /// The name. It is completed where it does not say so itself: a counter ends in `_total`, a
    /// histogram or a summary in its unit.
    pub name: Text,
    /// The help, in a sentence. It must not be empty.
    pub help: Text,
    /// The names of the labels; null where there are none.
    pub label_names: *const Text,
    /// How many these are.
    pub label_count: usize,
    /// TALEA_FAMILY_ flags.
    pub flags: u32,
    /// A talea_combining, of gauges.
    pub combining: u32,
    /// The most series of the family; further ones count in its overflow series. 0: 2,000.
    pub limit: u64,
    /// After how many seconds a series goes that nobody used, in whole minutes. 0: an hour.
    pub expires_after_seconds: u64,
    /// Thresholds of a histogram in the shown unit, ascending; null for those of its unit.
    pub buckets: *const f64,
    /// How many these are.
    pub bucket_count: usize,
    /// Which quantiles a summary shows, ascending, from 0 to 1; null for 0.5, 0.9 and 0.99. A
    /// histogram that is given some shows them in a summary beside itself.
    pub quantiles: *const f64,
    /// How many these are.
    pub quantile_count: usize,
    /// Of how many seconds quantiles are. 0: 600.
    pub window_seconds: u64,
    /// A talea_buckets, of histograms.
    pub bucketing: u32,
    /// How fine native buckets are, -4 to 8, where TALEA_FAMILY_SCHEMA is set; else 3.
    pub schema: i32,
    /// How many native buckets of a series are shown at most. 0: 160.
    pub max_buckets: u32,
    /// Must be 0.
    pub reserved: u32,
    /// How far from 0 an observation may be that counts as 0 where there are too many.
    pub widest_zero: f64,
}

// SAFETY: it is numbers, texts and pointers; the first field is its size.
unsafe impl boundary::Options for FamilyOptions {}

/// Checked options; their texts and numbers are the caller's.
#[derive(Clone, Debug)]
pub(crate) struct Definition<'a> {
    pub(crate) kind: Kind,
    pub(crate) unit: Unit,
    name: &'a str,
    help: &'a str,
    pub(crate) labels: Vec<&'a str>,
    flags: u32,
    combining: Combining,
    bucketing: Buckets,
    schema: i8,
    max_buckets: u32,
    limit: u64,
    expires_after: u64,
    window: u64,
    buckets: Option<&'a [f64]>,
    quantiles: Option<&'a [f64]>,
    widest_zero: f64,
}

impl<'a> Definition<'a> {
    /// Checks what the caller says.
    ///
    /// # Safety
    ///
    /// What the options point to is there, and stays as it is for `'a`.
    pub(crate) unsafe fn of(options: FamilyOptions) -> Result<Self, Failure> {
        let FamilyOptions { kind, unit, combining, bucketing, flags, schema, .. } = options;
        use Kind::{Counter, FloatCounter, Gauge, Histogram, IntegerGauge, Summary, UpDownCounter};
        let kinds = [Counter, FloatCounter, Gauge, IntegerGauge, UpDownCounter, Histogram, Summary];
        let kind = one_of("kind", kind, kinds, |kind| kind as u32)?;
        let units = [Unit::None, Unit::Seconds, Unit::Bytes, Unit::Things];
        let unit = one_of("unit", unit, units, |unit| unit as u32)?;
        let ways =
            [Combining::Latest, Combining::Sum, Combining::Max, Combining::Min, Combining::Each];
        let combining = one_of("combining", combining, ways, |way| way as u32)?;
        let ways = [Buckets::Dual, Buckets::Classic, Buckets::Native];
        let bucketing = one_of("bucketing", bucketing, ways, |way| way as u32)?;
        let observes = matches!(kind, Histogram | Summary);
        if unit != Unit::None && !observes {
            return Err(wrong(format!("a {kind:?} has no unit; leave it 0")));
        }
        if combining != Combining::Latest && !matches!(kind, Gauge | IntegerGauge) {
            return Err(wrong(format!("a {kind:?} has no combining; leave it 0")));
        }
        if flags & !FLAGS != 0 || options.reserved != 0 {
            return Err(wrong(format!(
                "its flags are {flags:#x}; expected those of TALEA_FAMILY_"
            )));
        }
        if flags & TALEA_FAMILY_SAMPLED != 0 && (kind, unit) != (Summary, Unit::None) {
            return Err(wrong(format!(
                "TALEA_FAMILY_SAMPLED is set, and it is a {kind:?} of {unit:?}; expected a summary \
                 without a unit"
            )));
        }
        let schema = if flags & TALEA_FAMILY_SCHEMA != 0 { schema } else { 3 };
        let schema = i8::try_from(schema)
            .map_err(|_| wrong(format!("its schema is {schema}; expected -4 to 8")))?;
        // SAFETY: as the caller promises, here and below.
        let name = unsafe { options.name.as_str()? };
        if name.is_empty() {
            // It would be completed to one that a scraper takes.
            let message = "the name is empty; say what is measured";
            return Err(Failure::new(Status::CannotRegister, message));
        }
        // SAFETY: as above.
        let names = unsafe { boundary::slice(options.label_names, options.label_count)? };
        let mut labels = Vec::new();
        for name in names {
            // SAFETY: as above.
            labels.push(unsafe { name.as_str()? });
        }
        let floats = |first: *const f64, count, counts| {
            // SAFETY: as above.
            let found = unsafe { boundary::slice(first, count)? };
            Ok::<_, Status>((counts || !found.is_empty()).then_some(found))
        };
        let shows = flags & TALEA_FAMILY_QUANTILES != 0;
        Ok(Self {
            kind,
            unit,
            name,
            // SAFETY: as above.
            help: unsafe { options.help.as_str()? },
            labels,
            flags,
            combining,
            bucketing,
            schema,
            max_buckets: options.max_buckets,
            limit: options.limit,
            expires_after: options.expires_after_seconds,
            window: options.window_seconds,
            buckets: floats(options.buckets, options.bucket_count, false)?,
            quantiles: floats(options.quantiles, options.quantile_count, shows)?,
            widest_zero: options.widest_zero,
        })
    }

    /// The definition in Talea's own types.
    pub(crate) fn opts(&self) -> Opts<'_> {
        let is = |flag| self.flags & flag != 0;
        let mut opts = Opts::new(self.name, self.help)
            .utf8_names(is(TALEA_FAMILY_UTF8_NAMES))
            .lenient_names(is(TALEA_FAMILY_LENIENT_NAMES))
            .schema(self.schema)
            .widest_zero(self.widest_zero)
            .bucketing(match self.bucketing {
                Buckets::Dual => Bucketing::Dual,
                Buckets::Classic => Bucketing::Classic,
                Buckets::Native => Bucketing::Native,
            });
        // As metrics that are registered without labels are in Rust: there is one series, and
        // it stays.
        let alone = self.labels.is_empty();
        opts = opts.striped(is(TALEA_FAMILY_STRIPED) || alone && !is(TALEA_FAMILY_UNSTRIPED));
        if alone || is(TALEA_FAMILY_LASTING) {
            opts = opts.expires_after(None);
        } else if self.expires_after > 0 {
            opts = opts.expires_after(Some(Duration::from_secs(self.expires_after)));
        }
        if alone {
            opts = opts.limit(1);
        } else if self.limit > 0 {
            opts = opts.limit(self.limit);
        }
        if self.window > 0 {
            opts = opts.window(Duration::from_secs(self.window));
        }
        if self.max_buckets > 0 {
            opts = opts.max_buckets(self.max_buckets);
        }
        if let Some(buckets) = self.buckets {
            opts = opts.buckets(buckets);
        }
        if let Some(quantiles) = self.quantiles {
            opts = opts.quantiles(quantiles);
        }
        match self.combining {
            Combining::Latest => opts,
            Combining::Sum => opts.combine(Combine::Sum),
            Combining::Max => opts.combine(Combine::Max),
            Combining::Min => opts.combine(Combine::Min),
            Combining::Each => opts.combine(Combine::Each),
        }
    }

    /// Whether it keeps what was observed lately in the region.
    pub(crate) fn is_sampled(&self) -> bool {
        self.flags & TALEA_FAMILY_SAMPLED != 0
    }

    /// Whether it has a window that a thread keeps.
    pub(crate) fn is_windowed(&self) -> bool {
        !self.is_sampled() && (self.kind == Kind::Summary || self.quantiles.is_some())
    }
}

fn wrong(message: String) -> Failure {
    Failure::new(Status::WrongOption, message)
}

/// That of all values that has the number which the caller gave.
fn one_of<T: Copy, const N: usize>(
    what: &str,
    given: u32,
    all: [T; N],
    number: impl Fn(T) -> u32,
) -> Result<T, Failure> {
    let known = || all.map(&number);
    let found = all.into_iter().find(|&one| number(one) == given);
    found.ok_or_else(|| wrong(format!("its {what} is {given}; expected one of {:?}", known())))
}
