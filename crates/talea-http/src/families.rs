//! The registered metrics of a convention, and the handles of their series.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use talea::{
    Bytes, Counter, DynamicLabels, Error, Family, Histogram, Opts as MetricOpts, Registry, Seconds,
    UpDownCounter,
};

use crate::arrival::Arrivals;
use crate::case::{Case, Texts};
use crate::convention::{Known, MethodNames, Set, Source, Told};
use crate::opts::Opts;
use crate::status::{OTHER, StatusLabel, Statuses};

/// The metrics that all endpoints share.
#[derive(Debug)]
pub(crate) struct Families {
    pub(crate) in_flight: Metric<UpDownCounter>,
    pub(crate) requests: Option<Metric<Counter>>,
    pub(crate) errors: Option<Metric<Counter>>,
    pub(crate) outcomes: Option<Metric<Counter>>,
    pub(crate) to_head: Option<Metric<Histogram<Seconds>>>,
    pub(crate) to_end: Option<Metric<Histogram<Seconds>>>,
    pub(crate) request_size: Option<Metric<Histogram<Bytes>>>,
    pub(crate) response_size: Option<Metric<Histogram<Bytes>>>,
    pub(crate) declared_request_size: bool,
    pub(crate) statuses: Statuses,
    pub(crate) methods: MethodNames,
    pub(crate) arrivals: Arrivals,
    pub(crate) texts: Texts,
    pub(crate) timed_out_after: Option<Duration>,
}

impl Families {
    pub(crate) fn register(opts: Opts, registry: &Registry) -> Result<Self, Error> {
        let set = opts.convention.set();
        let texts = Texts::new(&opts, &set)?;
        let arrivals = Arrivals::new(&opts, &set)?;
        let to_register = Registering { opts: &opts, set: &set, registry };
        Ok(Self {
            in_flight: to_register.plain(set.in_flight)?,
            requests: set.requests.map(|told| to_register.plain(told)).transpose()?,
            errors: set.errors.map(|told| to_register.plain(told)).transpose()?,
            outcomes: set.outcomes.map(|told| to_register.plain(told)).transpose()?,
            to_head: set.to_head.map(|told| to_register.duration(told)).transpose()?,
            to_end: set.to_end.map(|told| to_register.duration(told)).transpose()?,
            request_size: set.request_size.map(|told| to_register.size(told)).transpose()?,
            response_size: set.response_size.map(|told| to_register.size(told)).transpose()?,
            declared_request_size: set.declared_request_size,
            statuses: statuses(&opts, &set),
            methods: set.methods,
            arrivals,
            texts,
            timed_out_after: opts.timed_out_after,
        })
    }
}

/// How statuses are told, with what the user chose.
pub(crate) fn statuses(opts: &Opts, set: &Set) -> Statuses {
    match (set.statuses, opts.status) {
        (Statuses::Classes, StatusLabel::Code) => Statuses::Codes { odd: OTHER, none: OTHER },
        (statuses, _) => statuses,
    }
}

struct Registering<'a> {
    opts: &'a Opts,
    set: &'a Set,
    registry: &'a Registry,
}

impl Registering<'_> {
    fn plain<M: talea::Metric>(&self, told: Told) -> Result<Metric<M>, Error> {
        let name = self.name(told);
        self.metric(told, Self::opts(&name, told))
    }

    fn duration(&self, told: Told) -> Result<Metric<Histogram<Seconds>>, Error> {
        let name = self.name(told);
        let thresholds = self.opts.durations.as_deref().unwrap_or(self.set.durations);
        let opts = Self::opts(&name, told).buckets(thresholds).bucketing(self.opts.bucketing);
        match self.opts.quantiles.as_slice() {
            [] => self.metric(told, opts),
            quantiles => self.metric(told, opts.quantiles(quantiles)),
        }
    }

    fn size(&self, told: Told) -> Result<Metric<Histogram<Bytes>>, Error> {
        let name = self.name(told);
        let opts = Self::opts(&name, told).bucketing(self.opts.bucketing);
        match &self.opts.sizes {
            None => self.metric(told, opts),
            Some(thresholds) => self.metric(told, opts.buckets(thresholds)),
        }
    }

    fn name(&self, told: Told) -> String {
        format!("{}{}", self.opts.prefix, told.name)
    }

    fn opts(name: &str, told: Told) -> MetricOpts<'_> {
        // The declaration bounds the series, and they are as hot as the service.
        MetricOpts::new(name, told.help).striped(true).limit(u64::MAX).expires_after(None)
    }

    fn metric<M: talea::Metric>(
        &self,
        told: Told,
        opts: MetricOpts<'_>,
    ) -> Result<Metric<M>, Error> {
        let (names, labels): (Vec<&str>, Vec<Source>) = self.labels(told).into_iter().unzip();
        let family = self.registry.family(opts, &names)?;
        let known = labels.iter().map(|label| label.known()).max().unwrap_or(Known::Declared);
        Ok(Metric { family, labels, known, handles: Mutex::default() })
    }

    /// A metric's labels, with those that the user added.
    fn labels(&self, told: Told) -> Vec<(&str, Source)> {
        let Opts { hosts, of_request, of_response, constants, .. } = self.opts;
        let host = (!hosts.is_empty()).then_some((self.set.host, Source::Host));
        let mut labels = told.labels.to_vec();
        let mut durations = [self.set.to_head, self.set.to_end].into_iter().flatten();
        let is_duration = durations.any(|duration| duration.name == told.name);
        let has_status = labels.iter().any(|(_, source)| *source == Source::Status);
        if self.opts.durations_by_status && is_duration && !has_status {
            labels.push(("status", Source::Status));
        }
        labels.extend(host);
        let names = of_request.iter().enumerate();
        labels.extend(names.map(|(n, label)| (label.name.as_str(), Source::Request(n))));
        // What is in flight has no response.
        if told.name != self.set.in_flight.name {
            let names = of_response.iter().enumerate();
            labels.extend(names.map(|(n, label)| (label.name.as_str(), Source::Response(n))));
        }
        let names = constants.iter().enumerate();
        labels.extend(names.map(|(n, (name, _))| (name.as_str(), Source::Constant(n))));
        labels
    }
}

/// A family with the handles of its series.
pub(crate) struct Metric<M: talea::Metric> {
    family: Family<DynamicLabels, M>,
    labels: Vec<Source>,
    /// When the last of its labels is known.
    pub(crate) known: Known,
    /// By their labels' values. They live as long as the program, as endpoints do.
    handles: Mutex<HashMap<Vec<String>, &'static M>>,
}

impl<M: talea::Metric + Clone> Metric<M> {
    /// The series of a case, made if it is new.
    pub(crate) fn series(&self, families: &Families, case: &Case<'_>) -> &'static M {
        let text = |&label: &Source| families.texts.text(label, case, families).into_owned();
        let values: Vec<String> = self.labels.iter().map(text).collect();
        let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(handle) = handles.get(&values) {
            return handle;
        }
        let handle = &*Box::leak(Box::new(self.family.with_values(&values).keep()));
        handles.insert(values, handle);
        handle
    }
}

impl<M: talea::Metric> fmt::Debug for Metric<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metric").field("labels", &self.labels).finish_non_exhaustive()
    }
}
