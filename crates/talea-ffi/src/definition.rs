//! Options of families.

use std::fmt;
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
    /// The sum of the values that the living processes set, one each.
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
/// `schema` of talea_family_options is used.
pub const TALEA_FAMILY_SCHEMA: u32 = 2;
/// Each CPU has a copy of each value: for counters and histograms of few, hot series. Families
/// without labels have it by default.
pub const TALEA_FAMILY_STRIPED: u32 = 4;
/// Series never expire.
pub const TALEA_FAMILY_PERMANENT: u32 = 8;
/// `quantiles` of talea_family_options is used even if it is empty.
pub const TALEA_FAMILY_QUANTILES: u32 = 16;
/// A summary without a unit keeps its recent observations in the region, 0.5 to 13.5 KiB a series.
/// Any reader then sees the same quantiles, however young it is: for processes that live for a few
/// requests only. Quantiles of a window with at most 128 observations are exact.
pub const TALEA_FAMILY_SAMPLED: u32 = 32;
/// Names are accepted as other libraries accept them: also gauges that end in `_total` or `_info`,
/// names that end in `_count`, `_sum`, `_bucket` or `_created`, names that begin with one `_`, and
/// labels `le` and `quantile` unless it is a histogram or a summary. For metrics that you do not
/// name yourself.
pub const TALEA_FAMILY_LENIENT_NAMES: u32 = 64;
/// No copy for each CPU, even for a family without labels. Floats that were recorded before a wipe
/// then take no digits from those that are recorded after it.
pub const TALEA_FAMILY_UNSTRIPED: u32 = 128;
/// This process may register other definitions of the name too, as one that runs several versions of a
/// program does. Each counts by itself.
pub const TALEA_FAMILY_ALLOW_OTHERS: u32 = 256;

const FLAGS: u32 = 2 * TALEA_FAMILY_ALLOW_OTHERS - 1;

/// Options to register a family with. Zero means the default, except in `size`, `kind`, `name` and
/// `help`; set `size` by `sizeof`. An option that metrics of the kind do not have is an error, and so
/// are two that contradict each other, such as TALEA_FAMILY_PERMANENT with an expiry.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct FamilyOptions {
    /// The size of this struct.
    pub size: usize,
    /// A talea_kind.
    pub kind: u32,
    /// A talea_unit, of histograms and summaries.
    pub unit: u32,
    /// The name. A missing suffix is added: `_total` of a counter, the unit of a histogram or a
    /// summary.
    pub name: Text,
    /// The help, in a sentence. It must not be empty.
    pub help: Text,
    /// The names of the labels; null if there are none.
    pub label_names: *const Text,
    /// Their number.
    pub label_count: usize,
    /// TALEA_FAMILY_ flags.
    pub flags: u32,
    /// A talea_combining, of gauges.
    pub combining: u32,
    /// The most series of the family; further ones count in its overflow series. 0: 2,000. A family
    /// without labels has one series, whatever the limit is.
    pub limit: u64,
    /// Seconds without a look-up after which a series expires, in whole minutes. 0: an hour.
    pub expires_after_seconds: u64,
    /// Thresholds of a histogram in the shown unit, ascending; null for those of its unit.
    pub buckets: *const f64,
    /// Their number.
    pub bucket_count: usize,
    /// The quantiles that a summary shows, ascending, from 0 to 1; null for 0.5, 0.9 and 0.99. A
    /// histogram with quantiles shows them in a summary of its own.
    pub quantiles: *const f64,
    /// Their number.
    pub quantile_count: usize,
    /// The window of the quantiles of a histogram or a summary, in seconds. 0: 600.
    pub window_seconds: u64,
    /// A talea_buckets, of histograms.
    pub bucketing: u32,
    /// The schema of native buckets, -4 to 8, of histograms and summaries. Without
    /// TALEA_FAMILY_SCHEMA it is 3, and this is 0.
    pub schema: i32,
    /// The most native buckets that a histogram or a summary uses for a series. 0: 160.
    pub max_buckets: u32,
    /// Must be 0.
    pub reserved: u32,
    /// If there are too many native buckets, observations up to this far from 0 may count as 0.
    pub widest_zero: f64,
}

impl FamilyOptions {
    /// The first option that is set although metrics of this kind do not have it.
    fn foreign_to(&self, kind: Kind) -> Option<&'static str> {
        let is_histogram = kind == Kind::Histogram;
        let observes = is_histogram || kind == Kind::Summary;
        let is_gauge = matches!(kind, Kind::Gauge | Kind::IntegerGauge);
        let is_striped = observes || matches!(kind, Kind::Counter | Kind::FloatCounter);
        let is_flagged = |flag| self.flags & flag != 0;
        let has_quantiles = self.quantile_count != 0 || is_flagged(TALEA_FAMILY_QUANTILES);
        let options = [
            ("unit", self.unit != 0, observes),
            ("combining", self.combining != 0, is_gauge),
            ("buckets", self.bucket_count != 0, is_histogram),
            ("bucketing", self.bucketing != 0, is_histogram),
            ("quantiles", has_quantiles, observes),
            ("window_seconds", self.window_seconds != 0, observes),
            ("schema", is_flagged(TALEA_FAMILY_SCHEMA), observes),
            ("max_buckets", self.max_buckets != 0, observes),
            ("widest_zero", self.widest_zero != 0.0, observes),
            ("TALEA_FAMILY_STRIPED", is_flagged(TALEA_FAMILY_STRIPED), is_striped),
        ];
        let foreign = options.into_iter().find(|&(_, is_set, is_own)| is_set && !is_own);
        foreign.map(|(option, ..)| option)
    }

    /// Two options that are both set although each says the opposite of the other.
    fn contradiction(&self) -> Option<[&'static str; 2]> {
        let is_flagged = |flag| self.flags & flag != 0;
        if is_flagged(TALEA_FAMILY_STRIPED) && is_flagged(TALEA_FAMILY_UNSTRIPED) {
            return Some(["TALEA_FAMILY_STRIPED", "TALEA_FAMILY_UNSTRIPED"]);
        }
        let has_both = is_flagged(TALEA_FAMILY_PERMANENT) && self.expires_after_seconds != 0;
        has_both.then_some(["TALEA_FAMILY_PERMANENT", "expires_after_seconds"])
    }
}

// SAFETY: the fields are numbers, texts and pointers; the first is the size.
unsafe impl boundary::Options for FamilyOptions {}

/// Checked options; their texts and numbers are the caller's.
#[derive(Clone, Debug)]
pub(crate) struct Definition<'a> {
    options: FamilyOptions,
    pub(crate) kind: Kind,
    pub(crate) unit: Unit,
    combine: Combine,
    bucketing: Bucketing,
    schema: i8,
    name: &'a str,
    help: &'a str,
    pub(crate) labels: Vec<&'a str>,
    buckets: &'a [f64],
    quantiles: &'a [f64],
}

impl<'a> Definition<'a> {
    /// Checks the caller's options.
    ///
    /// # Safety
    ///
    /// The pointers in the options point to as much as their lengths say, which stays as it is for
    /// `'a`.
    pub(crate) unsafe fn of(options: FamilyOptions) -> Result<Self, Failure> {
        use Kind::{Counter, FloatCounter, Gauge, Histogram, IntegerGauge, Summary, UpDownCounter};
        let FamilyOptions { flags, schema, .. } = options;
        let kinds = [Counter, FloatCounter, Gauge, IntegerGauge, UpDownCounter, Histogram, Summary];
        let kind = one_of("kind", options.kind, 1, &kinds)?;
        let units = [Unit::None, Unit::Seconds, Unit::Bytes, Unit::Things];
        let unit = one_of("unit", options.unit, 0, &units)?;
        // In the order of `Combining`.
        let combines = [Combine::Latest, Combine::Sum, Combine::Max, Combine::Min, Combine::Each];
        let combine = one_of("combining", options.combining, 0, &combines)?;
        // In the order of `Buckets`.
        let bucketings = [Bucketing::Dual, Bucketing::Classic, Bucketing::Native];
        let bucketing = one_of("bucketing", options.bucketing, 0, &bucketings)?;
        if schema != 0 && flags & TALEA_FAMILY_SCHEMA == 0 {
            return Err(wrong(format!("its schema is {schema} without TALEA_FAMILY_SCHEMA")));
        }
        if let Some(option) = options.foreign_to(kind) {
            return Err(wrong(format!("a {kind:?} has no {option}; leave it 0")));
        }
        if let Some([one, other]) = options.contradiction() {
            return Err(wrong(format!("{one} and {other} are both set; set one of them")));
        }
        if flags & !FLAGS != 0 || options.reserved != 0 {
            let message = format!("its flags are {flags:#x}; expected those of TALEA_FAMILY_");
            return Err(wrong(message));
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
        let name = unsafe { options.name.as_str() }.map_err(about(format_args!("the name")))?;
        if name.is_empty() {
            // A suffix would make it a name that a scraper accepts.
            let message = "the name is empty; name what is measured";
            return Err(Failure::new(Status::CannotRegister, message));
        }
        // SAFETY: as above.
        let labels = unsafe { boundary::slice(options.label_names, options.label_count)? };
        let labels = labels
            .iter()
            .map(|label| {
                // SAFETY: as above.
                unsafe { label.as_str() }.map_err(about(format_args!("a label of {name:?}")))
            })
            .collect::<Result<_, _>>()?;
        // SAFETY: as above.
        unsafe {
            let help =
                options.help.as_str().map_err(about(format_args!("the help of {name:?}")))?;
            let buckets = boundary::slice(options.buckets, options.bucket_count)?;
            let quantiles = boundary::slice(options.quantiles, options.quantile_count)?;
            Ok(Self {
                options,
                kind,
                unit,
                combine,
                bucketing,
                schema,
                name,
                help,
                labels,
                buckets,
                quantiles,
            })
        }
    }

    /// The definition in Talea's own types.
    pub(crate) fn opts(&self) -> Opts<'_> {
        let FamilyOptions { limit, expires_after_seconds, window_seconds, .. } = self.options;
        let mut opts = Opts::new(self.name, self.help)
            .utf8_names(self.has(TALEA_FAMILY_UTF8_NAMES))
            .lenient_names(self.has(TALEA_FAMILY_LENIENT_NAMES))
            .allow_others(self.has(TALEA_FAMILY_ALLOW_OTHERS))
            .schema(self.schema)
            .widest_zero(self.options.widest_zero)
            .bucketing(self.bucketing);
        // As metrics that are registered without labels in Rust: there is one series, and it stays.
        let is_only = self.labels.is_empty();
        let is_striped = is_only && !self.has(TALEA_FAMILY_UNSTRIPED);
        opts = opts.striped(is_striped || self.has(TALEA_FAMILY_STRIPED));
        if is_only || self.has(TALEA_FAMILY_PERMANENT) {
            opts = opts.expires_after(None);
        } else if expires_after_seconds > 0 {
            opts = opts.expires_after(Some(Duration::from_secs(expires_after_seconds)));
        }
        if is_only {
            opts = opts.limit(1);
        } else if limit > 0 {
            opts = opts.limit(limit);
        }
        if window_seconds > 0 {
            opts = opts.window(Duration::from_secs(window_seconds));
        }
        if self.options.max_buckets > 0 {
            opts = opts.max_buckets(self.options.max_buckets);
        }
        if !self.buckets.is_empty() {
            opts = opts.buckets(self.buckets);
        }
        if self.has_quantiles() {
            opts = opts.quantiles(self.quantiles);
        }
        // Set only if it is asked for: metrics without it refuse it.
        if self.options.combining != 0 { opts.combine(self.combine) } else { opts }
    }

    fn has(&self, flag: u32) -> bool {
        self.options.flags & flag != 0
    }

    /// An error of Talea, with the flag that C has for an option. None for lenient names: those who
    /// choose them cannot set flags.
    pub(crate) fn message(&self, error: &talea::Error) -> String {
        let lenient = self.has(TALEA_FAMILY_LENIENT_NAMES);
        let advice = if lenient { "" } else { "; or set TALEA_FAMILY_UTF8_NAMES" };
        error.to_string().replace("; or ask for `utf8_names`", advice)
    }

    fn has_quantiles(&self) -> bool {
        !self.quantiles.is_empty() || self.has(TALEA_FAMILY_QUANTILES)
    }

    /// Whether it keeps recent observations in the region.
    pub(crate) fn is_sampled(&self) -> bool {
        self.has(TALEA_FAMILY_SAMPLED)
    }

    /// Whether a thread keeps its window.
    pub(crate) fn is_windowed(&self) -> bool {
        !self.is_sampled() && (self.kind == Kind::Summary || self.has_quantiles())
    }
}

fn wrong(message: String) -> Failure {
    Failure::new(Status::WrongOption, message)
}

/// The failure of a text that cannot be read.
fn about(text: fmt::Arguments<'_>) -> impl Fn(Status) -> Failure {
    move |status| Failure::new(status, format!("{text}: {}", status.text().to_string_lossy()))
}

/// The value of a number, of values that are numbered from `first` on.
fn one_of<T: Copy>(option: &str, number: u32, first: u32, all: &[T]) -> Result<T, Failure> {
    let place = number.checked_sub(first).map(|place| place as usize);
    place.and_then(|place| all.get(place)).copied().ok_or_else(|| {
        let last = first as usize + all.len() - 1;
        wrong(format!("its {option} is {number}; expected {first} to {last}"))
    })
}
