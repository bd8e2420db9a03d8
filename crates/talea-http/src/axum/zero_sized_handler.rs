//! Handlers without a size, whose endpoint is found by their type.
//!
//! axum clones a route for each request, into a new allocation, unless it has no size, as a
//! function has none. A wrapper that holds the endpoint would have a size. So the first endpoint
//! that a function is declared for is found by the function's type; only wrappers for further
//! endpoints hold them.

use std::any::TypeId;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use ::axum::extract::Request;
use ::axum::handler::Handler;

use super::declared_endpoint::DeclaredEndpoint;
use super::future::HandlerFuture;
use crate::exchange::request::Exchange;

/// A handler without a size, whose endpoint is found by its type.
#[derive(Clone, Debug)]
pub(super) struct ZeroSizedHandler<H> {
    handler: H,
    key: PhantomData<fn() -> H>,
}

impl<H: 'static> ZeroSizedHandler<H> {
    /// Wraps a handler for an endpoint. If the handler has a size, or its type has an endpoint
    /// already, it is returned as the error.
    pub(super) fn new(handler: H, endpoint: &'static DeclaredEndpoint) -> Result<Self, H> {
        let is_first = size_of::<H>() == 0 && ENDPOINTS.insert(TypeId::of::<H>(), endpoint);
        if is_first { Ok(Self { handler, key: PhantomData }) } else { Err(handler) }
    }
}

impl<H, T, S> Handler<T, S> for ZeroSizedHandler<H>
where
    H: Handler<T, S>,
    T: 'static,
    S: Send + 'static,
{
    type Future = HandlerFuture<H::Future>;

    #[inline]
    fn call(self, mut request: Request, state: S) -> Self::Future {
        let mut exchange = Exchange::closed();
        if let Some(endpoint) = ENDPOINTS.find(TypeId::of::<H>()) {
            endpoint.open(&mut exchange, &mut request);
        }
        let call = exchange.call();
        let future = self.handler.call(request, state);
        call.returned();
        HandlerFuture::new(future, exchange)
    }
}

/// Endpoints by types: a hash table with open addressing and linear probing.
struct EndpointsByType {
    slots: [OnceLock<(TypeId, &'static DeclaredEndpoint)>; SLOTS],
    used: AtomicUsize,
}

/// At most half of them are used, so that searches stay short.
const SLOTS: usize = 4096;

static ENDPOINTS: EndpointsByType =
    EndpointsByType { slots: [const { OnceLock::new() }; SLOTS], used: AtomicUsize::new(0) };

impl EndpointsByType {
    /// Adds an endpoint. False if there is no room, or the type is there already.
    fn insert(&self, id: TypeId, endpoint: &'static DeclaredEndpoint) -> bool {
        for slot in Self::probe(id) {
            if self.slots[slot].get().is_none() && self.used.load(Relaxed) >= SLOTS / 2 {
                return false;
            }
            let mut is_ours = false;
            let found = self.slots[slot].get_or_init(|| {
                is_ours = true;
                self.used.fetch_add(1, Relaxed);
                (id, endpoint)
            });
            if found.0 == id {
                return is_ours;
            }
        }
        false
    }

    #[inline]
    fn find(&self, id: TypeId) -> Option<&'static DeclaredEndpoint> {
        for slot in Self::probe(id) {
            let (found, endpoint) = self.slots[slot].get()?;
            if *found == id {
                return Some(endpoint);
            }
        }
        None
    }

    #[inline]
    fn probe(id: TypeId) -> impl Iterator<Item = usize> {
        let mut first = IdBits(0);
        id.hash(&mut first);
        (0..SLOTS).map(move |n| (first.0 as usize).wrapping_add(n) % SLOTS)
    }
}

/// Takes the bits of a type's id, which are a hash already.
struct IdBits(u64);

impl Hasher for IdBits {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.0 = self.0.rotate_left(32) ^ u64::from_le_bytes(word);
        }
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.0 = self.0.rotate_left(32) ^ word;
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::endpoint::Methods;

    #[test]
    fn a_function_is_the_first_of_its_type_once() {
        async fn first() {}
        async fn second() {}
        let endpoint = DeclaredEndpoint::declare::<()>(Methods::Each);
        let other = DeclaredEndpoint::declare::<()>(Methods::Each);
        fn id<H: 'static>(_: &H) -> TypeId {
            TypeId::of::<H>()
        }
        assert!(ENDPOINTS.find(id(&first)).is_none());
        let wrapped = ZeroSizedHandler::new(first, endpoint).unwrap_or_else(|_| unreachable!());
        assert_eq!(size_of_val(&wrapped), 0);
        assert!(ZeroSizedHandler::new(first, other).is_err(), "it was declared before");
        assert!(ZeroSizedHandler::new(second, other).is_ok());
        assert!(std::ptr::eq(ENDPOINTS.find(id(&first)).unwrap(), endpoint));
        assert!(std::ptr::eq(ENDPOINTS.find(id(&second)).unwrap(), other));
        let carries = 7;
        assert!(ZeroSizedHandler::new(move || carries, endpoint).is_err(), "it has a size");
    }
}
