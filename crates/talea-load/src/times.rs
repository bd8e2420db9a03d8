//! Times of requests, some of which are known by a lower bound alone.
//!
//! A request that timed out, or was under way when the load was stopped, took at least as long as it had been
//! waited for: its time is *right-censored*, in the word of statistics. To leave such requests out would make
//! a slow server look fast. Each counts as at least that long: a quantile is known if it is the same whether
//! they had ended at once or never, and a lower bound otherwise.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use talea::{HistogramSnapshot, NativeBuckets};

use talea_statistics::figures::{NONE, measured};

/// Times, and lower bounds of others. In a file each is a histogram: loads add up exactly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "[Buckets; 2]", from = "[Buckets; 2]")]
pub struct Times {
    pub(super) known: HistogramSnapshot,
    pub(super) censored: HistogramSnapshot,
}

/// A histogram of times in a file, in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Buckets {
    schema: i8,
    zero_threshold: f64,
    zero: u64,
    sum: f64,
    /// Native buckets and their counts, as Prometheus numbers them.
    buckets: Vec<(i32, u64)>,
}

impl From<&HistogramSnapshot> for Buckets {
    fn from(times: &HistogramSnapshot) -> Self {
        let Some(native) = times.native() else { return Self::default() };
        Self {
            schema: native.schema(),
            zero_threshold: native.zero_threshold(),
            zero: native.zero_count(),
            sum: times.sum(),
            buckets: native.positive().to_vec(),
        }
    }
}

impl From<Buckets> for HistogramSnapshot {
    fn from(Buckets { schema, zero_threshold, zero, sum, buckets }: Buckets) -> Self {
        Self::of_native(NativeBuckets::new(schema, zero_threshold, zero, buckets), sum)
    }
}

impl From<Times> for [Buckets; 2] {
    fn from(times: Times) -> Self {
        [&times.known, &times.censored].map(Buckets::from)
    }
}

impl From<[Buckets; 2]> for Times {
    fn from(buckets: [Buckets; 2]) -> Self {
        let [known, censored] = buckets.map(HistogramSnapshot::from);
        Self { known, censored }
    }
}

/// A number of milliseconds, or a lower bound of one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Milliseconds {
    /// The number, or the bound.
    pub ms: f64,
    /// Whether it is a lower bound.
    pub at_least: bool,
}

impl Times {
    /// Times that are all known.
    pub fn all_known(times: &HistogramSnapshot) -> Self {
        Self { censored: times.diff(times), known: times.clone() }
    }

    /// Adds other times.
    pub(crate) fn add(&mut self, other: &Self) {
        // All are of the options of this crate's meters, or of files of it.
        self.known.merge(&other.known);
        self.censored.merge(&other.censored);
    }

    /// Those that were added since earlier ones.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let Self { known, censored } = self;
        Self { known: known.diff(&earlier.known), censored: censored.diff(&earlier.censored) }
    }

    /// All times, each bound among them as if it were the time.
    pub fn all(&self) -> HistogramSnapshot {
        let mut all = self.known.clone();
        // The two are of equal options.
        all.merge(&self.censored);
        all
    }

    /// How many are known.
    pub fn known(&self) -> u64 {
        self.known.count()
    }

    /// How many are lower bounds.
    pub fn censored(&self) -> u64 {
        self.censored.count()
    }

    /// A quantile; none of no times.
    pub fn quantile(&self, quantile: f64) -> Option<Milliseconds> {
        let all = self.all();
        let seconds = all.quantile(quantile)?;
        let growth = all.native().map_or(1.0, |native| native.growth());
        if self.censored() == 0 || self.at_most(quantile)? <= seconds * growth {
            return Some(Milliseconds { ms: seconds * 1e3, at_least: false });
        }
        // The lower edge of its bucket, of which `seconds` is the middle.
        let edge = seconds * (growth + 1.0) / (2.0 * growth);
        Some(Milliseconds { ms: edge * 1e3, at_least: true })
    }

    /// The quantile if no request whose time is unknown had ever ended.
    fn at_most(&self, quantile: f64) -> Option<f64> {
        let (known, all) = (self.known(), self.known() + self.censored());
        // Shares such as 0.07 are no floats: 7 of 100 would be a little more than 7.
        let rank = (quantile * all as f64 * (1.0 - 1e-12)).ceil().max(1.0);
        match rank <= known as f64 {
            true => self.known.quantile(rank / known as f64),
            false => Some(f64::INFINITY),
        }
    }

    /// The mean; none of no times.
    pub fn mean(&self) -> Option<Milliseconds> {
        let seconds = self.all().mean()?;
        Some(Milliseconds { ms: seconds * 1e3, at_least: self.censored() > 0 })
    }
}

impl fmt::Display for Milliseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.at_least { "≥ " } else { "" };
        write!(f, "{sign}{}", measured(self.ms))
    }
}

/// The names of those numbers of an object that are lower bounds: a time lies among requests that timed out,
/// or were under way when the load was stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LowerBounds(BTreeSet<String>);

impl LowerBounds {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a field's number is one.
    pub fn contains(&self, field: &str) -> bool {
        self.0.contains(field)
    }

    /// The number for a field, whose name is kept if it is a lower bound.
    pub fn note(&mut self, field: &str, found: Option<Milliseconds>) -> Option<f64> {
        if found.is_some_and(|found| found.at_least) {
            self.0.insert(field.to_owned());
        }
        found.map(|found| found.ms)
    }

    /// The number of a field as it is shown: `≥ 1,000` if it is a lower bound.
    pub fn shown(&self, field: &str, ms: Option<f64>) -> String {
        ms.map_or_else(
            || NONE.to_owned(),
            |ms| Milliseconds { ms, at_least: self.contains(field) }.to_string(),
        )
    }
}
