//! Handlers without a size, whose meters are found by their type.
//!
//! axum clones a route for each request, into a new allocation, unless it has no size, as a
//! function has none. A wrapper that holds its meters would have a size. So the meters of the first
//! endpoint that a function is declared for are found by the function's type; only wrappers for further
//! endpoints hold them.

use std::any::TypeId;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use ::axum::extract::Request;
use ::axum::handler::Handler;
use talea_region::AtomicRef;

use super::declared_endpoint::open;
use super::future::HandlerFuture;
use crate::exchange::request::Exchange;
use crate::meters::endpoint::EndpointMeters;

#[derive(Clone, Debug)]
pub(super) struct ZeroSizedHandler<H> {
    handler: H,
    key: PhantomData<fn() -> H>,
}

impl<H: 'static> ZeroSizedHandler<H> {
    /// Wraps a handler with the meters of its endpoint. If the handler has a size, or its type has meters
    /// already, it is returned as the error.
    pub(super) fn new(handler: H, meters: &'static EndpointMeters) -> Result<Self, H> {
        let is_first = size_of::<H>() == 0 && METERS.insert(TypeId::of::<H>(), meters);
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
        if let Some(meters) = METERS.find(TypeId::of::<H>()) {
            open(meters, &mut exchange, &mut request);
        }
        let call = exchange.call();
        let future = self.handler.call(request, state);
        call.returned();
        HandlerFuture { future, exchange }
    }
}

/// Meters by types: a hash table with open addressing and linear probing. Empty slots are null, so that
/// the table takes no room in the program's file.
struct MetersByType {
    slots: [AtomicRef<Entry>; SLOTS],
    used: AtomicUsize,
}

struct Entry {
    handler: TypeId,
    meters: &'static EndpointMeters,
}

/// At most half of them are used, so that searches stay short.
const SLOTS: usize = 4096;

static METERS: MetersByType =
    MetersByType { slots: [const { AtomicRef::new() }; SLOTS], used: AtomicUsize::new(0) };

impl MetersByType {
    /// Adds the meters of a type. False if there is no room, or the type is there already.
    fn insert(&self, handler: TypeId, meters: &'static EndpointMeters) -> bool {
        if self.find(handler).is_some() || self.used.fetch_add(1, Relaxed) >= SLOTS / 2 {
            return false;
        }
        let entry = &*Box::leak(Box::new(Entry { handler, meters }));
        let mut slots = Self::probe(handler).map(|slot| self.slots[slot].get_or_set(entry));
        // Another thread may have added the type since.
        slots.find(|found| found.handler == handler).is_some_and(|found| ptr::eq(found, entry))
    }

    #[inline]
    fn find(&self, handler: TypeId) -> Option<&'static EndpointMeters> {
        for slot in Self::probe(handler) {
            let found = self.slots[slot].get()?;
            if found.handler == handler {
                return Some(found.meters);
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
    use crate::endpoints::Endpoints;

    #[test]
    fn a_function_is_the_first_of_its_type_once() {
        async fn first() {}
        async fn second() {}
        let endpoints = Endpoints::new(&talea::Registry::for_test().unwrap()).unwrap();
        let [meters, other] = ["/a", "/b"].map(|route| endpoints.declare_any(route).meters);
        fn id<H: 'static>(_: &H) -> TypeId {
            TypeId::of::<H>()
        }
        assert!(METERS.find(id(&first)).is_none());
        let wrapped = ZeroSizedHandler::new(first, meters).unwrap_or_else(|_| unreachable!());
        assert_eq!(size_of_val(&wrapped), 0);
        assert!(ZeroSizedHandler::new(first, other).is_err(), "it was declared before");
        assert!(ZeroSizedHandler::new(second, other).is_ok());
        assert!(ptr::eq(METERS.find(id(&first)).unwrap(), meters));
        assert!(ptr::eq(METERS.find(id(&second)).unwrap(), other));
        let carries = 7;
        assert!(ZeroSizedHandler::new(move || carries, meters).is_err(), "it has a size");
    }
}
