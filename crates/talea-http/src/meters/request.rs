//! The meters of requests with the same attributes, of their responses and their ends.

use std::sync::OnceLock;

use http::Extensions;
use talea::{Bytes, Counter, Histogram, Seconds, UpDownCounter};
use talea_region::AtomicRef;

use super::attributes::RequestAttributes;
use super::context::LabelContext;
use super::families::{Families, MetricFamily};
use crate::convention::metric_set::Stage;
use crate::labels::endpoint::EndpointLabels;
use crate::labels::outcome::Outcome;
use crate::labels::status::Statuses;

/// The meters of requests to an endpoint that have the same attributes.
// The fields that each request and its response read come first and begin a line of the cache:
// if a request goes through many layers, each line has to be fetched anew.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct RequestMeters {
    /// In place, since it is recorded first.
    pub(crate) in_flight: UpDownCounter,
    /// By the index of the status and of the response's labels: mostly empty, and many if exact codes
    /// are labels.
    responses: Box<[AtomicRef<ResponseMeters>]>,
    /// The histogram that a request's body records in as soon as it has passed, if its labels do
    /// not depend on the response.
    pub(crate) request_size: Option<&'static Histogram<Bytes>>,
    pub(crate) declared_request_size: bool,
    /// Whether requests that failed are counted.
    pub(crate) counts_errors: bool,
    response_labels: usize,
    statuses: Statuses,
    pub(crate) families: &'static Families,
    endpoint: EndpointLabels,
    attributes: RequestAttributes,
}

/// The meters of responses with the same status and labels.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct ResponseMeters {
    /// In place, as it is recorded for each.
    pub(crate) requests: Option<Counter>,
    pub(crate) to_head: Option<&'static Histogram<Seconds>>,
    outcomes: [OnceLock<OutcomeMeters>; Outcome::ALL.len()],
    index: usize,
}

/// The meters of requests that end with the same outcome.
#[derive(Debug)]
pub(crate) struct OutcomeMeters {
    pub(crate) outcomes: Option<&'static Counter>,
    pub(crate) errors: Option<&'static Counter>,
    /// Whether a request with this outcome failed, even if its response is no error.
    pub(crate) is_failure: bool,
    pub(crate) to_end: Option<&'static Histogram<Seconds>>,
    pub(crate) response_size: Option<&'static Histogram<Bytes>>,
    /// `None` if [`RequestMeters::request_size`] is there.
    pub(crate) request_size: Option<&'static Histogram<Bytes>>,
}

impl RequestMeters {
    pub(super) fn new(
        families: &'static Families,
        endpoint: EndpointLabels,
        attributes: RequestAttributes,
    ) -> Self {
        let context = LabelContext::at_arrival(&endpoint, &attributes);
        let in_flight = families.in_flight.series(&families.texts, &context).clone();
        let declared_request_size = families.declared_request_size;
        let request_size = families.request_size.as_ref();
        let request_size = request_size
            .filter(|metric| !declared_request_size && metric.stage <= Stage::Arrival)
            .map(|metric| metric.series(&families.texts, &context));
        let response_labels = families.texts.response_combinations();
        let responses = families.texts.statuses.count() * response_labels;
        Self {
            families,
            endpoint,
            attributes,
            in_flight,
            declared_request_size,
            counts_errors: families.errors.is_some(),
            request_size,
            responses: (0..responses).map(|_| AtomicRef::new()).collect(),
            statuses: families.texts.statuses,
            response_labels,
        }
    }

    /// Creates the series of likely responses and outcomes; if no response is likely, the series which
    /// do not depend on them.
    pub(super) fn create_likely(&self) {
        let Families { requests, errors, texts, .. } = self.families;
        let likely = (0..self.responses.len())
            .filter(|&index| self.response_labels == 1 && self.statuses.is_likely(index));
        let mut is_any = false;
        for response in likely.map(|index| self.nth_response(index)) {
            is_any = true;
            for outcome in Outcome::ALL.into_iter().filter(|outcome| outcome.is_likely()) {
                self.outcome(response, outcome);
            }
        }
        if !is_any {
            let context = LabelContext::at_arrival(&self.endpoint, &self.attributes);
            let counters = [requests, errors].into_iter().flatten();
            for metric in counters.filter(|metric| metric.stage <= Stage::Arrival) {
                metric.series(texts, &context);
            }
        }
    }

    /// The meters of a response, or of none.
    #[inline]
    pub(crate) fn response(
        &self,
        status: Option<u16>,
        extensions: Option<&Extensions>,
    ) -> &'static ResponseMeters {
        let status = self.statuses.index(status);
        let labels = match extensions {
            Some(extensions) if self.response_labels > 1 => {
                self.families.texts.response_combination(extensions)
            }
            _ => 0,
        };
        self.nth_response(labels * self.statuses.count() + status)
    }

    #[inline]
    fn nth_response(&self, index: usize) -> &'static ResponseMeters {
        self.responses[index].get().unwrap_or_else(|| self.create_response(index))
    }

    #[cold]
    fn create_response(&self, index: usize) -> &'static ResponseMeters {
        let context = self.context(index, Outcome::Complete);
        let Families { requests, to_head, .. } = self.families;
        self.responses[index].get_or_set(Box::leak(Box::new(ResponseMeters {
            index,
            requests: self.series(requests, &context).cloned(),
            to_head: self.series(to_head, &context),
            outcomes: Default::default(),
        })))
    }

    #[inline]
    pub(crate) fn outcome(
        &self,
        response: &'static ResponseMeters,
        outcome: Outcome,
    ) -> &'static OutcomeMeters {
        response.outcomes[outcome as usize].get_or_init(|| {
            let context = self.context(response.index, outcome);
            let Families { outcomes, errors, to_end, request_size, response_size, .. } =
                self.families;
            OutcomeMeters {
                outcomes: self.series(outcomes, &context),
                errors: self.series(errors, &context),
                is_failure: outcome != Outcome::Complete,
                to_end: self.series(to_end, &context),
                response_size: self.series(response_size, &context),
                request_size: match self.request_size {
                    Some(_) => None,
                    None => self.series(request_size, &context),
                },
            }
        })
    }

    fn context(&self, index: usize, outcome: Outcome) -> LabelContext<'_> {
        let statuses = self.statuses.count();
        let (status, response) = (index % statuses, index / statuses);
        let Self { endpoint, attributes, .. } = self;
        LabelContext { endpoint, attributes, status, response, outcome }
    }

    fn series<M: talea::Metric + Clone>(
        &self,
        metric: &Option<MetricFamily<M>>,
        context: &LabelContext<'_>,
    ) -> Option<&'static M> {
        metric.as_ref().map(|metric| metric.series(&self.families.texts, context))
    }
}
