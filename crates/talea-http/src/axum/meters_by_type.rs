//! Handlers without a size, whose meters are found by their type.
//!
//! axum clones a route for each request, into a new allocation, unless it has no size, as a
//! function has none. A wrapper that holds its meters would have a size. So the meters of the first
//! endpoint that a function is declared for are found by the function's type; only wrappers for further
//! endpoints hold them.

use std::any::TypeId;
use std::hash::{Hash, Hasher};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use ::axum::extract::Request;
use talea_region::AtomicRef;

use super::handler::Door;
use crate::request::meters::EndpointMeters;

/// The door of the first endpoint that a handler without a size is declared for.
#[derive(Clone, Copy, Debug)]
pub(super) struct ByType;

impl ByType {
    /// Declares an endpoint for a handler of type `H`. `None` if the handler has a size, or its type
    /// has meters already.
    pub(super) fn declare<H: 'static>(meters: &'static EndpointMeters) -> Option<Self> {
        (size_of::<H>() == 0 && METERS.insert(TypeId::of::<H>(), meters)).then_some(Self)
    }
}

impl<H: 'static> Door<H> for ByType {
    #[inline(always)]
    fn meters(&self, _: &Request) -> Option<&'static EndpointMeters> {
        METERS.find(TypeId::of::<H>())
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
        fn declare<H: 'static>(_: &H, meters: &'static EndpointMeters) -> Option<ByType> {
            ByType::declare::<H>(meters)
        }
        assert!(METERS.find(id(&first)).is_none());
        assert_eq!(size_of_val(&declare(&first, meters).unwrap()), 0);
        assert!(declare(&first, other).is_none(), "it was declared before");
        assert!(declare(&second, other).is_some());
        assert!(ptr::eq(METERS.find(id(&first)).unwrap(), meters));
        assert!(ptr::eq(METERS.find(id(&second)).unwrap(), other));
        let carries = 7;
        assert!(declare(&move || carries, meters).is_none(), "it has a size");
    }
}
