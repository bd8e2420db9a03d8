//! Families and series.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use napi::bindgen_prelude::{Error, Float64Array, Result, Uint32Array};
use napi_derive::napi;
use talea::{
    Bucketing, Combine, DynamicLabels, ExemplarError, Family, FloatCounter, FloatGauge, Floats,
    HeldSeries, Histogram, LentPlane, Metric, Opts, SampledSummary, Summary,
};

use crate::page::DefaultLabel;
use crate::region::{Region, failed};

/// A definition of a metric.
#[napi(object)]
pub struct Definition {
    /// `counter`, `gauge`, `histogram` or `summary`.
    pub kind: String,
    pub name: String,
    pub help: String,
    pub label_names: Vec<String>,
    /// Thresholds of a histogram, or quantiles of a summary.
    pub numbers: Option<Vec<f64>>,
    /// Whether a histogram has native buckets too.
    pub is_native: Option<bool>,
    /// Seconds that the quantiles of a summary are about.
    pub window: Option<f64>,
    /// How the values of several processes make one: `sum`, `min`, `max` or `latest`.
    pub combine: Option<String>,
    pub limit: f64,
}

enum Kind {
    Counter(Family<DynamicLabels, FloatCounter>),
    Gauge(Family<DynamicLabels, FloatGauge>),
    Histogram(Family<DynamicLabels, Histogram<Floats>>),
    Summary(SampledSummary),
}

/// Does the same with the family of each kind.
macro_rules! each_kind {
    ($of:expr, $family:ident => $do:expr) => {
        match $of {
            Kind::Counter($family) => $do,
            Kind::Gauge($family) => $do,
            Kind::Histogram($family) => $do,
            Kind::Summary(summary) => {
                let $family = summary.family();
                $do
            }
        }
    };
}

/// The series of one metric.
#[napi]
pub struct MetricFamily(Kind);

#[napi]
impl MetricFamily {
    /// Registers a metric, or finds it registered.
    #[napi(factory)]
    pub fn register(region: &Region, of: Definition) -> Result<Self> {
        let numbers = of.numbers.unwrap_or_default();
        let opts = Opts::new(&of.name, &of.help).lenient_names(true).limit(of.limit as u64);
        // A metric without labels has one series, which stays.
        let opts = if of.label_names.is_empty() { opts.expires_after(None) } else { opts };
        let (registry, names) = (&region.registry, &of.label_names);
        Ok(Self(match &*of.kind {
            "counter" => Kind::Counter(registry.family(opts.striped(true), names).map_err(failed)?),
            "gauge" => {
                let opts = opts.combine(combine(of.combine.as_deref())?);
                Kind::Gauge(registry.family(opts, names).map_err(failed)?)
            }
            "histogram" => {
                let is_native = of.is_native.unwrap_or(false);
                let bucketing = if is_native { Bucketing::Dual } else { Bucketing::Classic };
                let opts = opts.striped(true).bucketing(bucketing).buckets(&numbers);
                Kind::Histogram(registry.family(opts, names).map_err(failed)?)
            }
            "summary" => {
                let window = Duration::try_from_secs_f64(of.window.unwrap_or(600.0));
                let opts = opts.quantiles(&numbers).window(window.map_err(failed)?);
                Kind::Summary(registry.sampled_summary(opts, names).map_err(failed)?)
            }
            kind => return Err(Error::from_reason(format!("there is no kind {kind:?}"))),
        }))
    }

    /// The series of these label values, in the order of the names, made if it is new.
    #[napi]
    pub fn series(&self, region: &Region, values: Vec<String>) -> MetricSeries {
        let series = match &self.0 {
            Kind::Counter(family) => Series::Counter(held(family, &values)),
            Kind::Gauge(family) => Series::Gauge(held(family, &values)),
            Kind::Histogram(family) => Series::Histogram(held(family, &values)),
            Kind::Summary(summary) => Series::Summary(SummarySeries {
                _held: held(summary.family(), &values),
                summary: summary.clone(),
                values,
            }),
        };
        let plane = region.plane.clone();
        MetricSeries { series, plane }
    }

    /// Removes a series, in all processes.
    #[napi]
    pub fn remove(&self, values: Vec<String>) {
        if let Kind::Summary(summary) = &self.0 {
            _ = summary.remove_values(&values);
        } else {
            each_kind!(&self.0, family => _ = family.remove_values(&values));
        }
    }

    /// Sets a series to 0, in all processes.
    #[napi]
    pub fn reset(&self, values: Vec<String>) {
        each_kind!(&self.0, family => family.reset_values(&values));
    }

    /// Removes all series, in all processes.
    #[napi]
    pub fn remove_all(&self) {
        each_kind!(&self.0, family => _ = family.remove_matching(&[]));
    }

    /// Sets all series to 0, in all processes.
    #[napi]
    pub fn wipe(&self) {
        if let Kind::Summary(summary) = &self.0 {
            _ = summary.wipe();
        } else {
            each_kind!(&self.0, family => _ = family.wipe());
        }
    }

    /// How many series were removed.
    #[napi]
    pub fn removals(&self) -> f64 {
        each_kind!(&self.0, family => family.removals() as f64)
    }

    /// How many updates went to the overflow series.
    #[napi]
    pub fn dropped(&self) -> f64 {
        each_kind!(&self.0, family => family.dropped() as f64)
    }
}

/// A series; if there is no room for it, the family's overflow series.
fn held<M: Metric + Clone>(family: &Family<DynamicLabels, M>, values: &[String]) -> HeldSeries<M> {
    family
        .hold_values(values)
        .unwrap_or_else(|_| HeldSeries { metric: family.with_values(values).keep(), hold: None })
}

/// How processes' values of a gauge become one. There is no mean of processes: the latest value is shown.
fn combine(word: Option<&str>) -> Result<Combine> {
    Ok(match word {
        None | Some("sum") => Combine::Sum,
        Some("min") => Combine::Min,
        Some("max") => Combine::Max,
        Some("latest") => Combine::Latest,
        Some(word) => {
            let message = format!("found {word:?}, expected sum, min, max or latest");
            return Err(Error::from_reason(message));
        }
    })
}

enum Series {
    Counter(HeldSeries<FloatCounter>),
    Gauge(HeldSeries<FloatGauge>),
    Histogram(HeldSeries<Histogram<Floats>>),
    Summary(SummarySeries),
}

/// A series of a summary, whose observations are found by its label values.
struct SummarySeries {
    summary: SampledSummary,
    values: Vec<String>,
    /// It keeps the series.
    _held: HeldSeries<Summary<Floats>>,
}

/// One series, which stays until this is collected as garbage.
#[napi]
pub struct MetricSeries {
    series: Series,
    plane: Option<Arc<LentPlane>>,
}

/// Where an environment observes by itself.
#[napi(object)]
pub struct Places {
    pub thresholds: Float64Array,
    pub counts: Uint32Array,
    pub zero: u32,
    pub sum: u32,
}

#[napi]
impl MetricSeries {
    /// Which word of the environment's plane a counter adds to; −1 if it calls `add`.
    #[napi]
    pub fn index(&self) -> i32 {
        let Series::Counter(counter) = &self.series else { return -1 };
        let index = self.plane.as_ref().and_then(|plane| counter.metric.index_in(plane));
        index.and_then(|index| i32::try_from(index).ok()).unwrap_or(-1)
    }

    /// Which words of the environment's plane a histogram observes in; null if it calls `observe`.
    #[napi]
    pub fn places(&self) -> Option<Places> {
        let Series::Histogram(histogram) = &self.series else { return None };
        let cells = histogram.metric.cells_in(self.plane.as_ref()?)?;
        let counts: Vec<u32> = cells.counts.iter().map(|&at| at as u32).collect();
        Some(Places {
            thresholds: cells.thresholds.into(),
            counts: counts.into(),
            zero: cells.zero as u32,
            sum: cells.sum as u32,
        })
    }

    /// Adds to a counter or a gauge.
    #[napi]
    pub fn add(&self, amount: f64) {
        match &self.series {
            Series::Counter(counter) => counter.metric.add(amount),
            Series::Gauge(gauge) => gauge.metric.add(amount),
            Series::Histogram(_) | Series::Summary(_) => {}
        }
    }

    /// Sets a gauge.
    #[napi]
    pub fn set(&self, value: f64) {
        if let Series::Gauge(gauge) = &self.series {
            gauge.metric.set(value);
        }
    }

    /// Observes a value in a histogram or a summary.
    #[napi]
    pub fn observe(&self, value: f64) {
        match &self.series {
            Series::Histogram(histogram) => histogram.metric.observe(value),
            Series::Summary(SummarySeries { summary, values, .. }) => {
                summary.observe(values, value, SystemTime::now());
            }
            Series::Counter(_) | Series::Gauge(_) => {}
        }
    }

    /// Adds or observes, and keeps an exemplar.
    #[napi]
    pub fn with_exemplar(&self, value: f64, labels: Vec<DefaultLabel>) -> Result<()> {
        let labels: Vec<(&str, &str)> =
            labels.iter().map(|label| (&*label.name, &*label.value)).collect();
        let kept: std::result::Result<(), ExemplarError> = match &self.series {
            Series::Counter(counter) => counter.metric.add_with_exemplar(value, &labels),
            Series::Histogram(histogram) => histogram.metric.observe_with_exemplar(value, &labels),
            Series::Gauge(_) | Series::Summary(_) => Ok(()),
        };
        kept.map_err(failed)
    }

    /// The value of a counter or of a gauge.
    #[napi]
    pub fn value(&self) -> f64 {
        match &self.series {
            Series::Counter(counter) => counter.metric.get(),
            Series::Gauge(gauge) => gauge.metric.get(),
            Series::Histogram(_) | Series::Summary(_) => 0.0,
        }
    }
}
