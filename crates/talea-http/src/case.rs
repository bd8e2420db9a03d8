//! From what happened to the texts of labels.

use std::borrow::Cow;

use talea::{Error, HttpMethod};

use crate::arrival::Arrived;
use crate::convention::{MethodNames, Paths, Set, Source, error_type};
use crate::families::Families;
use crate::opts::{FromExtensions, Opts};
use crate::outcome::Outcome;

/// An endpoint, as it is declared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Declared {
    pub(crate) methods: Methods,
    pub(crate) route: &'static str,
    pub(crate) handler: &'static str,
}

/// The methods that an endpoint answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Methods {
    /// One; a `GET` may answer `HEAD` too.
    One(HttpMethod),
    /// All that there are.
    Each,
    /// Those that the route does not declare.
    Rest,
}

/// All that labels come from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case<'a> {
    pub(crate) declared: &'a Declared,
    pub(crate) arrived: &'a Arrived,
    /// Its places among the statuses, and among the values of the response's labels.
    pub(crate) status: usize,
    pub(crate) response: usize,
    pub(crate) outcome: Outcome,
}

impl<'a> Case<'a> {
    /// A request of which nothing is known but how it arrived.
    pub(crate) fn arrived(declared: &'a Declared, arrived: &'a Arrived) -> Self {
        Self { declared, arrived, status: 0, response: 0, outcome: Outcome::Complete }
    }
}

impl Methods {
    /// Whether a request of this method is likely.
    pub(crate) fn is_likely(self, method: HttpMethod) -> bool {
        match self {
            Self::One(one) => one == method,
            Self::Each => true,
            Self::Rest => method == HttpMethod::Other,
        }
    }
}

/// What texts of labels are made of, beside the case.
#[derive(Debug)]
pub(crate) struct Texts {
    constants: Vec<String>,
    server: String,
    paths: Paths,
    hosts: Vec<String>,
    of_request: Vec<FromExtensions>,
    of_response: Vec<FromExtensions>,
}

impl Texts {
    pub(crate) fn new(opts: &Opts, set: &Set) -> Result<Self, Error> {
        for label in opts.of_request.iter().chain(&opts.of_response) {
            check_fixed(label, set)?;
        }
        Ok(Self {
            constants: opts.constants.iter().map(|(_, value)| value.clone()).collect(),
            server: opts.server.clone().unwrap_or_else(|| "srv0".to_owned()),
            paths: set.paths,
            hosts: opts.hosts.clone(),
            of_request: opts.of_request.clone(),
            of_response: opts.of_response.clone(),
        })
    }

    pub(crate) fn text<'a>(
        &'a self,
        label: Source,
        case: &Case<'a>,
        families: &Families,
    ) -> Cow<'a, str> {
        match label {
            Source::Route => self.paths.text(case.declared),
            Source::Handler => case.declared.handler.into(),
            Source::Server => self.server.as_str().into(),
            Source::Constant(n) => self.constants[n].as_str().into(),
            Source::Method => families.methods.text(case.declared.methods, case.arrived).into(),
            Source::Scheme => case.arrived.scheme.into(),
            Source::Version => case.arrived.version.into(),
            Source::Host => self.hosts.get(case.arrived.host).map_or("_other", |host| host).into(),
            Source::Request(n) => self.of_request[n].text(case.arrived.labels[n]).into(),
            Source::Status => families.statuses.text(case.status),
            Source::Response(n) => {
                self.of_response[n].text(digit(&self.of_response, n, case.response)).into()
            }
            Source::ErrorType => error_type(case.outcome, families.statuses.text(case.status)),
            Source::Outcome => case.outcome.as_str().into(),
        }
    }

    /// How many combinations of the response's labels there are.
    pub(crate) fn responses(&self) -> usize {
        self.of_response.iter().map(FromExtensions::count).product()
    }

    /// Which of them a response has.
    #[inline]
    pub(crate) fn response(&self, extensions: &http::Extensions) -> usize {
        let place = |place, label: &FromExtensions| place * label.count() + label.place(extensions);
        self.of_response.iter().fold(0, place)
    }
}

fn check_fixed(label: &FromExtensions, set: &Set) -> Result<(), Error> {
    let open = "the values of its type are not fixed, and each would be a series; use an enum with \
                `#[derive(LabelValue)]`, a bool or a label_set!";
    let fault = match (label.cardinality)() {
        Some(_) => (label.fault)(),
        None => Some((label.fault)().unwrap_or_else(|| open.to_owned())),
    };
    let Some(fault) = fault else { return Ok(()) };
    let reason = format!("its label {:?} cannot be used: {fault}", label.name);
    Err(Error::Register { name: set.in_flight.name.to_owned(), reason })
}

/// The n-th digit of a number whose digits have as many values as the labels have.
pub(crate) fn digit(labels: &[FromExtensions], n: usize, number: usize) -> usize {
    let behind: usize = labels[n + 1..].iter().map(FromExtensions::count).product();
    number / behind % labels[n].count()
}

impl MethodNames {
    /// Whether an endpoint's requests are told apart by their method.
    pub(crate) fn tell_apart(self, methods: Methods) -> bool {
        matches!((self, methods), (Self::Sent { .. }, _) | (_, Methods::Each))
    }

    fn text(self, methods: Methods, arrived: &Arrived) -> &'static str {
        match (self, methods) {
            (Self::Declared { .. }, Methods::One(method)) => method.as_str(),
            (Self::Declared { .. }, Methods::Each) => arrived.method.as_str(),
            (Self::Declared { rest }, Methods::Rest) => rest,
            (Self::Sent { other, query }, _) => match arrived.method {
                HttpMethod::Other => other,
                HttpMethod::Query if !query => other,
                method => method.as_str(),
            },
        }
    }
}
