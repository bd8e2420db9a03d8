//! An endpoint's meters: the handles that a request to it is told by, each looked up once.

use std::sync::OnceLock;

use http::Extensions;
use talea::{Bytes, Counter, Histogram, Seconds, UpDownCounter};

use crate::arrival::{Arrived, Head};
use crate::case::{Case, Declared};
use crate::convention::Known;
use crate::families::{Families, Metric};
use crate::outcome::Outcome;
use crate::status::Statuses;

/// The meters of one endpoint. They live as long as the program, as a route does.
#[derive(Debug)]
pub(crate) struct Meters {
    families: &'static Families,
    declared: Declared,
    /// Whether its requests are told apart by their methods.
    methods: bool,
    /// By the place of what a request says when it arrives.
    arrivals: Box<[OnceLock<Arrival>]>,
}

/// The meters of requests that say the same when they arrive.
// What each request asks of it, and of its answer, comes first and begins a line of the cache:
// where requests go through many layers, each line has to be fetched anew.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Arrival {
    /// In place, since it is the first to be told.
    pub(crate) in_flight: UpDownCounter,
    /// By the places of status and response.
    answers: Box<[OnceLock<Answer>]>,
    /// What a request's bytes are told to as soon as they have passed, if their labels say
    /// nothing of the answer.
    pub(crate) request_size: Option<&'static Histogram<Bytes>>,
    pub(crate) declared_request_size: bool,
    /// Whether requests that failed are counted.
    pub(crate) counts_errors: bool,
    /// How many places responses have.
    responses: usize,
    statuses: Statuses,
    families: &'static Families,
    declared: Declared,
    arrived: Arrived,
}

/// The meters of those that are answered alike.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Answer {
    pub(crate) requests: Option<&'static Counter>,
    pub(crate) to_head: Option<&'static Histogram<Seconds>>,
    ends: [OnceLock<End>; Outcome::ALL.len()],
    place: usize,
}

/// The meters of those that end alike.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) outcomes: Option<&'static Counter>,
    pub(crate) errors: Option<&'static Counter>,
    /// Whether a request that ended so failed, even if its response does not say so.
    pub(crate) is_failure: bool,
    pub(crate) to_end: Option<&'static Histogram<Seconds>>,
    pub(crate) response_size: Option<&'static Histogram<Bytes>>,
    /// Where its labels say more than those of [`Arrival::request_size`] may.
    pub(crate) request_size: Option<&'static Histogram<Bytes>>,
}

/// More of them than that are not made beforehand.
const LIKELY_AT_MOST: usize = 256;

impl Meters {
    /// Those of an endpoint. All its series that do not depend on what requests say exist
    /// from now on.
    pub(crate) fn new(families: &'static Families, declared: Declared) -> Self {
        let methods = families.methods.tell_apart(declared.methods);
        let count = families.arrivals.count(methods);
        let arrivals = (0..count).map(|_| OnceLock::new()).collect();
        let meters = Self { families, declared, methods, arrivals };
        meters.make_likely();
        meters
    }

    pub(crate) fn declared(&self) -> &Declared {
        &self.declared
    }

    fn make_likely(&self) {
        let Self { families, declared, .. } = self;
        let likely = |&place: &usize| {
            let arrived = families.arrivals.nth(self.methods, place);
            let method = !self.methods || declared.methods.is_likely(arrived.method);
            method && families.arrivals.is_likely(&arrived)
        };
        let places: Vec<usize> = (0..self.arrivals.len()).filter(likely).collect();
        if places.len() <= LIKELY_AT_MOST {
            places.into_iter().for_each(|place| self.arrival_at(place).make_likely());
        }
    }

    /// The meters of a request that arrives.
    #[inline]
    pub(crate) fn arrival(&'static self, request: Head<'_>) -> &'static Arrival {
        // Mostly there is one, and nothing to look at in the request.
        let place = match self.arrivals.len() {
            1 => 0,
            _ => self.families.arrivals.place(self.methods, request),
        };
        self.arrival_at(place)
    }

    #[inline]
    fn arrival_at(&self, place: usize) -> &Arrival {
        self.arrivals[place].get_or_init(|| {
            let arrived = self.families.arrivals.nth(self.methods, place);
            Arrival::new(self.families, self.declared, arrived)
        })
    }
}

impl Arrival {
    fn new(families: &'static Families, declared: Declared, arrived: Arrived) -> Self {
        let case = Case::arrived(&declared, &arrived);
        let in_flight = families.in_flight.series(families, &case).clone();
        let declared_request_size = families.declared_request_size;
        let apart = !declared_request_size;
        let metric = families.request_size.as_ref();
        let metric = metric.filter(|metric| apart && metric.known <= Known::Arrived);
        let request_size = metric.map(|metric| metric.series(families, &case));
        let answers = families.statuses.count() * families.texts.responses();
        let answers = (0..answers).map(|_| OnceLock::new()).collect();
        Self {
            families,
            declared,
            arrived,
            in_flight,
            declared_request_size,
            counts_errors: families.errors.is_some(),
            request_size,
            answers,
            statuses: families.statuses,
            responses: families.texts.responses(),
        }
    }

    pub(crate) fn families(&self) -> &'static Families {
        self.families
    }

    /// Makes the series of all answers and ends, if these are few, or else those which do
    /// not depend on them.
    fn make_likely(&self) {
        let Families { statuses, requests, errors, texts, .. } = self.families;
        if statuses.are_few() && texts.responses() == 1 {
            for place in 0..self.answers.len() {
                let answer = self.answer_at(place);
                for outcome in Outcome::ALL {
                    self.end(answer, outcome);
                }
            }
        } else {
            let known = [requests, errors].into_iter().flatten();
            let case = Case::arrived(&self.declared, &self.arrived);
            for metric in known.filter(|metric| metric.known <= Known::Arrived) {
                metric.series(self.families, &case);
            }
        }
    }

    /// The meters of an answer, or of none.
    #[inline]
    pub(crate) fn answer(&self, status: Option<u16>, extensions: Option<&Extensions>) -> &Answer {
        let place = self.statuses.place(status);
        let response = match extensions {
            Some(extensions) if self.responses > 1 => self.families.texts.response(extensions),
            _ => 0,
        };
        self.answer_at(response * self.statuses.count() + place)
    }

    #[inline]
    fn answer_at(&self, place: usize) -> &Answer {
        self.answers[place].get_or_init(|| {
            let case = self.case(place, Outcome::Complete);
            let Families { requests, to_head, .. } = self.families;
            Answer {
                place,
                requests: self.series(requests, &case),
                to_head: self.series(to_head, &case),
                ends: Default::default(),
            }
        })
    }

    /// The meters of an end.
    #[inline]
    pub(crate) fn end<'a>(&self, answer: &'a Answer, outcome: Outcome) -> &'a End {
        answer.ends[outcome as usize].get_or_init(|| {
            let case = self.case(answer.place, outcome);
            let Families { outcomes, errors, to_end, request_size, response_size, .. } =
                self.families;
            End {
                outcomes: self.series(outcomes, &case),
                errors: self.series(errors, &case),
                is_failure: outcome != Outcome::Complete,
                to_end: self.series(to_end, &case),
                response_size: self.series(response_size, &case),
                request_size: match self.request_size {
                    Some(_) => None,
                    None => self.series(request_size, &case),
                },
            }
        })
    }

    fn case(&self, place: usize, outcome: Outcome) -> Case<'_> {
        let statuses = self.families.statuses.count();
        let (status, response) = (place % statuses, place / statuses);
        let Self { declared, arrived, .. } = self;
        Case { declared, arrived, status, response, outcome }
    }

    fn series<M: talea::Metric + Clone>(
        &self,
        metric: &Option<Metric<M>>,
        case: &Case<'_>,
    ) -> Option<&'static M> {
        metric.as_ref().map(|metric| metric.series(self.families, case))
    }
}
