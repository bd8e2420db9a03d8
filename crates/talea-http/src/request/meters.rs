//! The meters of an endpoint, of its requests, of their responses and their ends: each step of a
//! request finds its handles from the handles of the step before.

use std::fmt;
use std::sync::OnceLock;

use http::Extensions;
use talea::{Bytes, Counter, Histogram, HttpMethod, Seconds, UpDownCounter};
use talea_region::AtomicRef;

use super::attributes::{RequestAttributes, RequestHead};
use super::families::{CostFamilies, Families, MetricFamily};
use super::label_texts::{LabelContext, LabelTexts};
use crate::convention::metric_set::Stage;
use crate::labels::endpoint::{EndpointLabels, Methods};
use crate::labels::outcome::Outcome;
use crate::labels::status::StatusIndexing;
use crate::opts::Allocations;

/// A declared endpoint: a pointer to its meters.
#[derive(Clone, Copy)]
pub struct Endpoint {
    pub(crate) meters: &'static EndpointMeters,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Endpoint").field(&self.meters.labels).finish()
    }
}

/// The meters of one endpoint. They live as long as the program, as a route does.
#[derive(Debug)]
pub(crate) struct EndpointMeters {
    families: &'static Families,
    labels: EndpointLabels,
    /// Whether each method that is sent has meters of its own.
    by_method: bool,
    /// By the index of the request's attributes: the first, which mostly is the only one or serves most
    /// requests, and the others, of which most stay empty.
    first: AtomicRef<RequestMeters>,
    others: Box<[AtomicRef<RequestMeters>]>,
}

/// If more combinations of attributes are likely, no series are created for them beforehand.
const LIKELY_AT_MOST: usize = 256;

impl EndpointMeters {
    /// Creates the meters, and the series of the endpoint's likely requests.
    pub(crate) fn new(families: &'static Families, labels: EndpointLabels) -> Self {
        let by_method = families.texts.method_names.are_separate(labels.methods);
        let count = families.attributes.count(by_method);
        let others = (1..count).map(|_| AtomicRef::new()).collect();
        let meters = Self { families, labels, by_method, first: AtomicRef::new(), others };
        meters.create_likely();
        meters
    }

    fn create_likely(&self) {
        let Self { families, labels, .. } = self;
        let method = match labels.methods {
            Methods::One(method) => method,
            // Of the methods that a route may get, the most likely.
            Methods::Each => HttpMethod::Get,
            Methods::Rest => return,
        };
        let likely: Vec<usize> = (0..=self.others.len())
            .filter(|&index: &usize| {
                let attributes = families.attributes.nth(self.by_method, index);
                let is_sent = !self.by_method || attributes.method == method;
                is_sent && families.attributes.is_likely(&attributes)
            })
            .collect();
        if likely.len() <= LIKELY_AT_MOST {
            likely.into_iter().for_each(|index| self.nth_request(index).create_likely());
        }
    }

    #[cfg(all(test, any(feature = "actix", feature = "openapi")))]
    pub(crate) fn labels(&self) -> (Methods, &'static str) {
        (self.labels.methods, self.labels.route)
    }

    #[inline]
    pub(super) fn request<'a>(
        &'static self,
        head: impl FnOnce() -> RequestHead<'a>,
    ) -> &'static RequestMeters {
        // Mostly there is one, and no attribute to look at.
        let index = match self.others.is_empty() {
            true => 0,
            false => self.families.attributes.index(self.by_method, head()),
        };
        self.nth_request(index)
    }

    /// The meters of every request, if they do not depend on its attributes.
    #[inline]
    pub(super) fn only_request(&'static self) -> Option<&'static RequestMeters> {
        self.others.is_empty().then(|| self.nth_request(0))
    }

    #[inline]
    fn nth_request(&self, index: usize) -> &'static RequestMeters {
        let place = index.checked_sub(1).map_or(&self.first, |other| &self.others[other]);
        place.get().unwrap_or_else(|| self.create_request(index, place))
    }

    #[cold]
    fn create_request(
        &self,
        index: usize,
        place: &AtomicRef<RequestMeters>,
    ) -> &'static RequestMeters {
        let attributes = self.families.attributes.nth(self.by_method, index);
        let meters = RequestMeters::new(self.families, self.labels, attributes);
        place.get_or_set(Box::leak(Box::new(meters)))
    }
}

/// The meters of requests to an endpoint that have the same attributes.
// The fields that each request and its response read come first and begin a line of the cache:
// if a request goes through many layers, each line has to be fetched anew.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct RequestMeters {
    /// In place, since it is recorded first.
    pub(super) in_flight: UpDownCounter,
    /// By the index of the status and of the response's labels: mostly empty, and many if exact codes
    /// are labels.
    responses: Box<[AtomicRef<ResponseMeters>]>,
    /// The histogram that a request's body records in as soon as it has passed, if its labels do
    /// not depend on the response.
    pub(super) request_size: Option<&'static Histogram<Bytes>>,
    pub(super) declared_request_size: bool,
    /// Whether requests that failed are counted.
    pub(super) counts_errors: bool,
    response_labels: usize,
    statuses: StatusIndexing,
    pub(super) families: &'static Families,
    endpoint: EndpointLabels,
    attributes: RequestAttributes,
    pub(super) calls: Option<CallMeters>,
    #[cfg_attr(not(all(feature = "costs", unix)), allow(dead_code))]
    pub(super) costs: Option<&'static CostMeters>,
}

/// The counters of gRPC calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallMeters {
    pub(super) started: &'static Counter,
    pub(super) received: &'static Counter,
    pub(super) sent: &'static Counter,
}

/// The meters of what requests cost.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(all(feature = "costs", unix)), allow(dead_code))]
pub(super) struct CostMeters {
    pub(super) cpu: &'static Histogram<Seconds>,
    pub(super) polls: &'static Counter,
    pub(super) waiting: &'static Histogram<Seconds>,
    pub(super) allocations: Option<AllocationMeters>,
}

impl CostMeters {
    fn new(costs: &CostFamilies, texts: &LabelTexts, context: &LabelContext<'_>) -> Self {
        Self {
            cpu: costs.cpu.series(texts, context),
            polls: costs.polls.series(texts, context),
            waiting: costs.waiting.series(texts, context),
            allocations: costs.allocations.as_ref().map(|allocations| AllocationMeters {
                read: allocations.read,
                count: allocations.count.series(texts, context),
                bytes: allocations.bytes.series(texts, context),
            }),
        }
    }
}

/// The meters of what requests allocate.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(all(feature = "costs", unix)), allow(dead_code))]
pub(super) struct AllocationMeters {
    pub(super) read: fn() -> Allocations,
    pub(super) count: &'static Counter,
    pub(super) bytes: &'static Counter,
}

/// The meters of responses with the same status and labels.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct ResponseMeters {
    /// In place, as it is recorded for each.
    pub(super) requests: Option<Counter>,
    pub(super) to_head: Option<&'static Histogram<Seconds>>,
    outcomes: [OnceLock<OutcomeMeters>; Outcome::ALL.len()],
    index: usize,
}

/// The meters of requests that end with the same outcome.
#[derive(Debug)]
pub(super) struct OutcomeMeters {
    pub(super) outcomes: Option<&'static Counter>,
    pub(super) errors: Option<&'static Counter>,
    /// Whether a request with this outcome failed, even if its response is no error.
    pub(super) is_failure: bool,
    pub(super) to_end: Option<&'static Histogram<Seconds>>,
    pub(super) response_size: Option<&'static Histogram<Bytes>>,
    /// `None` if [`RequestMeters::request_size`] is there.
    pub(super) request_size: Option<&'static Histogram<Bytes>>,
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
        let calls = families.calls.as_ref().map(|calls| CallMeters {
            started: calls.started.series(&families.texts, &context),
            received: calls.received.series(&families.texts, &context),
            sent: calls.sent.series(&families.texts, &context),
        });
        let costs = families
            .costs
            .as_ref()
            .map(|costs| &*Box::leak(Box::new(CostMeters::new(costs, &families.texts, &context))));
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
            statuses: families.texts.statuses.indexing(),
            response_labels,
            calls,
            costs,
        }
    }

    /// Creates the series of likely responses and outcomes; if no response is likely, the series which
    /// do not depend on them.
    pub(super) fn create_likely(&self) {
        let Families { requests, errors, texts, .. } = self.families;
        let likely = (0..self.responses.len())
            .filter(|&index| self.response_labels == 1 && texts.statuses.is_likely(index));
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

    /// Counts a response, or a request without one. Returns its meters.
    #[inline]
    pub(super) fn count_response(
        &self,
        status: Option<u16>,
        extensions: Option<&Extensions>,
    ) -> &'static ResponseMeters {
        let status = self.statuses.index(status);
        let labels = match extensions {
            Some(extensions) if self.response_labels > 1 => {
                let texts = &self.families.texts;
                texts.response_combination(extensions) * texts.statuses.count()
            }
            _ => 0,
        };
        let response = self.nth_response(labels + status);
        if let Some(requests) = &response.requests {
            requests.inc();
        }
        response
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
    pub(super) fn outcome(
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
        let statuses = self.families.texts.statuses.count();
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
