//! The registered metrics of a convention, and the handles of their series.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use talea::{
    Bytes, Counter, DynamicLabels, Error, Family, Histogram, Opts as MetricOpts, Registry, Seconds,
    UpDownCounter,
};

use super::attributes::AttributeIndex;
use super::label_texts::{LabelContext, LabelTexts};
use crate::convention::metric_set::{
    CPU_TIMES, CallSpecs, CostSpecs, LabelSource, MetricSet, MetricSpec, Stage,
};
use crate::labels::outcome::Outcome;
use crate::opts::{Allocations, Opts};

#[derive(Debug)]
pub(crate) struct Families {
    pub(super) in_flight: MetricFamily<UpDownCounter>,
    pub(super) requests: Option<MetricFamily<Counter>>,
    pub(super) errors: Option<MetricFamily<Counter>>,
    pub(super) outcomes: Option<MetricFamily<Counter>>,
    pub(super) to_head: Option<MetricFamily<Histogram<Seconds>>>,
    pub(super) to_end: Option<MetricFamily<Histogram<Seconds>>>,
    pub(super) request_size: Option<MetricFamily<Histogram<Bytes>>>,
    pub(super) response_size: Option<MetricFamily<Histogram<Bytes>>>,
    pub(super) calls: Option<CallFamilies>,
    pub(super) costs: Option<CostFamilies>,
    pub(super) declared_request_size: bool,
    pub(super) attributes: AttributeIndex,
    pub(super) texts: LabelTexts,
    pub(super) timed_out_after: Option<Duration>,
    pub(super) body_failure: Outcome,
}

impl Families {
    pub(crate) fn register(
        opts: Opts,
        set: &MetricSet,
        registry: &Registry,
    ) -> Result<Self, Error> {
        let texts = LabelTexts::new(&opts, set)?;
        let attributes = AttributeIndex::new(&opts, set)?;
        let family = Registration { opts: &opts, set, registry };
        Ok(Self {
            in_flight: family.plain(set.in_flight)?,
            requests: set.requests.map(|spec| family.plain(spec)).transpose()?,
            errors: set.errors.map(|spec| family.plain(spec)).transpose()?,
            outcomes: set.outcomes.map(|spec| family.plain(spec)).transpose()?,
            to_head: set.to_head.map(|spec| family.duration(spec)).transpose()?,
            to_end: set.to_end.map(|spec| family.duration(spec)).transpose()?,
            request_size: set.request_size.map(|spec| family.size(spec)).transpose()?,
            response_size: set.response_size.map(|spec| family.size(spec)).transpose()?,
            calls: set.calls.map(|specs| family.calls(specs)).transpose()?,
            costs: set.costs.map(|specs| family.costs(specs)).transpose()?,
            declared_request_size: set.declared_request_size,
            attributes,
            texts,
            timed_out_after: opts.timed_out_after,
            body_failure: set.body_failure,
        })
    }
}

/// Counters that only gRPC calls have.
#[derive(Debug)]
pub(crate) struct CallFamilies {
    pub(super) started: MetricFamily<Counter>,
    pub(super) received: MetricFamily<Counter>,
    pub(super) sent: MetricFamily<Counter>,
}

/// What requests cost.
#[derive(Debug)]
pub(crate) struct CostFamilies {
    pub(super) cpu: MetricFamily<Histogram<Seconds>>,
    pub(super) polls: MetricFamily<Counter>,
    pub(super) waiting: MetricFamily<Histogram<Seconds>>,
    pub(super) allocations: Option<AllocationFamilies>,
}

/// What requests allocate, as the user's function reads it.
#[derive(Debug)]
pub(crate) struct AllocationFamilies {
    pub(super) read: fn() -> Allocations,
    pub(super) count: MetricFamily<Counter>,
    pub(super) bytes: MetricFamily<Counter>,
}

struct Registration<'a> {
    opts: &'a Opts,
    set: &'a MetricSet,
    registry: &'a Registry,
}

impl Registration<'_> {
    fn plain<M: talea::Metric>(&self, spec: MetricSpec) -> Result<MetricFamily<M>, Error> {
        let name = self.name(spec);
        self.register(spec, Self::opts(&name, spec))
    }

    fn calls(&self, specs: CallSpecs) -> Result<CallFamilies, Error> {
        Ok(CallFamilies {
            started: self.plain(specs.started)?,
            received: self.plain(specs.received)?,
            sent: self.plain(specs.sent)?,
        })
    }

    fn costs(&self, specs: CostSpecs) -> Result<CostFamilies, Error> {
        let name = self.name(specs.cpu);
        let cpu = Self::opts(&name, specs.cpu).buckets(CPU_TIMES).bucketing(self.opts.bucketing);
        Ok(CostFamilies {
            cpu: self.register(specs.cpu, cpu)?,
            polls: self.plain(specs.polls)?,
            waiting: self.duration(specs.waiting)?,
            allocations: match self.opts.allocations {
                None => None,
                Some(read) => Some(AllocationFamilies {
                    read,
                    count: self.plain(specs.allocations)?,
                    bytes: self.plain(specs.allocated)?,
                }),
            },
        })
    }

    fn duration(&self, spec: MetricSpec) -> Result<MetricFamily<Histogram<Seconds>>, Error> {
        let name = self.name(spec);
        let thresholds = self.opts.durations.as_deref().unwrap_or(self.set.durations);
        let opts = Self::opts(&name, spec).buckets(thresholds).bucketing(self.opts.bucketing);
        match self.opts.quantiles.as_slice() {
            [] => self.register(spec, opts),
            quantiles => self.register(spec, opts.quantiles(quantiles)),
        }
    }

    fn size(&self, spec: MetricSpec) -> Result<MetricFamily<Histogram<Bytes>>, Error> {
        let name = self.name(spec);
        let opts = Self::opts(&name, spec).bucketing(self.opts.bucketing);
        match &self.opts.sizes {
            None => self.register(spec, opts),
            Some(thresholds) => self.register(spec, opts.buckets(thresholds)),
        }
    }

    fn name(&self, spec: MetricSpec) -> String {
        format!("{}{}", self.opts.prefix, spec.name)
    }

    fn opts(name: &str, spec: MetricSpec) -> MetricOpts<'_> {
        // The declaration bounds the number of series, and they are as hot as the service.
        MetricOpts::new(name, spec.help).striped(true).limit(u64::MAX).expires_after(None)
    }

    fn register<M: talea::Metric>(
        &self,
        spec: MetricSpec,
        opts: MetricOpts<'_>,
    ) -> Result<MetricFamily<M>, Error> {
        let (names, labels): (Vec<&str>, Vec<_>) = self.labels(spec).into_iter().unzip();
        let family = self.registry.family(opts, &names)?;
        let stage = labels.iter().map(|label| label.stage()).max().unwrap_or(Stage::Declaration);
        Ok(MetricFamily { family, labels, stage, handles: Mutex::default() })
    }

    /// A metric's labels, with those that the user added.
    fn labels(&self, spec: MetricSpec) -> Vec<(&str, LabelSource)> {
        let Opts { hosts, request_labels, response_labels, constants, .. } = self.opts;
        let mut labels = spec.labels.to_vec();
        let mut durations = [self.set.to_head, self.set.to_end].into_iter().flatten();
        let is_duration = durations.any(|duration| duration.name == spec.name);
        let has_status = labels.iter().any(|(_, source)| *source == LabelSource::Status);
        if self.opts.durations_by_status && is_duration && !has_status {
            labels.push(("status", LabelSource::Status));
        }
        labels.extend((!hosts.is_empty()).then_some((self.set.host, LabelSource::Host)));
        let names = request_labels.iter().enumerate();
        labels.extend(names.map(|(n, label)| (label.name.as_str(), LabelSource::Request(n))));
        if !self.set.is_before_response(spec) {
            let names = response_labels.iter().enumerate();
            labels.extend(names.map(|(n, label)| (label.name.as_str(), LabelSource::Response(n))));
        }
        let names = constants.iter().enumerate();
        labels.extend(names.map(|(n, (name, _))| (name.as_str(), LabelSource::Constant(n))));
        labels
    }
}

pub(crate) struct MetricFamily<M: talea::Metric> {
    family: Family<DynamicLabels, M>,
    labels: Vec<LabelSource>,
    /// The stage at which the last of its labels is known.
    pub(super) stage: Stage,
    /// By the values of the labels. They live as long as the program, as endpoints do.
    handles: Mutex<HashMap<Vec<String>, &'static M>>,
}

impl<M: talea::Metric + Clone> MetricFamily<M> {
    /// The series in a context, created if it is new.
    pub(super) fn series(&self, texts: &LabelTexts, context: &LabelContext<'_>) -> &'static M {
        let values: Vec<String> = self
            .labels
            .iter()
            .map(|&label: &LabelSource| texts.text(label, context).into_owned())
            .collect();
        let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(handle) = handles.get(&values) {
            return handle;
        }
        let handle = &*Box::leak(Box::new(self.family.with_values(&values).keep()));
        handles.insert(values, handle);
        handle
    }
}

impl<M: talea::Metric> fmt::Debug for MetricFamily<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetricFamily").field("labels", &self.labels).finish_non_exhaustive()
    }
}
