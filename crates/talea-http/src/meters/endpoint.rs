//! The meters of an endpoint.

use std::collections::HashMap;
use std::fmt;
use std::sync::{LazyLock, Mutex, PoisonError};

use talea::HttpMethod;
use talea_region::AtomicRef;

use super::attributes::RequestHead;
use super::families::Families;
use super::request::RequestMeters;
use crate::labels::endpoint::{EndpointLabels, Methods};

/// A declared endpoint: a pointer to its meters.
#[derive(Clone, Copy)]
pub struct Endpoint {
    pub(crate) meters: &'static EndpointMeters,
}

/// An endpoint's families, by their address; its methods, route and handler.
type Key<'a> = (usize, Methods, &'a str, &'a str);

/// Equal endpoints are one, since their meters live as long as the program.
static KNOWN: LazyLock<Mutex<HashMap<Key<'static>, Endpoint>>> = LazyLock::new(Mutex::default);

impl Endpoint {
    /// The endpoint of some families, made if it is new.
    pub(crate) fn of<'a>(
        families: &'static Families,
        methods: Methods,
        route: &'a str,
        handler: &'a str,
    ) -> Self {
        let place = std::ptr::from_ref(families).addr();
        let mut all = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let known: &HashMap<Key<'a>, Self> = &all;
        if let Some(endpoint) = known.get(&(place, methods, route, handler)) {
            return *endpoint;
        }
        let (route, handler) = (&*route.to_owned().leak(), &*handler.to_owned().leak());
        let labels = EndpointLabels { methods, route, handler };
        let endpoint = Self { meters: Box::leak(Box::new(EndpointMeters::new(families, labels))) };
        all.insert((place, methods, route, handler), endpoint);
        endpoint
    }
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
    /// By the index of the request's attributes: the first, which mostly is the only one or that of most
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
        let is_likely = |&index: &usize| {
            let attributes = families.attributes.nth(self.by_method, index);
            let is_sent = !self.by_method || attributes.method == method;
            is_sent && families.attributes.is_likely(&attributes)
        };
        let likely: Vec<usize> = (0..=self.others.len()).filter(is_likely).collect();
        if likely.len() <= LIKELY_AT_MOST {
            likely.into_iter().for_each(|index| self.nth_request(index).create_likely());
        }
    }

    #[inline]
    pub(crate) fn request<'a>(
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
    pub(crate) fn only_request(&'static self) -> Option<&'static RequestMeters> {
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
