//! Handlers that are found by their type.
//!
//! axum clones a route for each request, into a new allocation, unless there is nothing to
//! clone: a function has no size. Nor would its wrapper, if it did not need to know its
//! endpoint. So the first endpoint that a function is declared for is found by the
//! function's type, and only those after it, if there are any, are carried along.

use std::any::TypeId;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use ::axum::extract::Request;
use ::axum::handler::Handler;

use super::future::OfHandler;
use super::site::Site;
use crate::exchange::Exchange;

/// A handler without a size, whose endpoint is found by its type.
#[derive(Clone, Debug)]
pub(super) struct Sole<H> {
    handler: H,
    found: PhantomData<fn() -> H>,
}

impl<H: 'static> Sole<H> {
    /// The only one of its type, for this endpoint; gives the handler back where it has a
    /// size, or was declared before.
    pub(super) fn of(handler: H, site: &'static Site) -> Result<Self, H> {
        let is_first = size_of::<H>() == 0 && SITES.insert(TypeId::of::<H>(), site);
        if is_first { Ok(Self { handler, found: PhantomData }) } else { Err(handler) }
    }
}

impl<H, T, S> Handler<T, S> for Sole<H>
where
    H: Handler<T, S>,
    T: 'static,
    S: Send + 'static,
{
    type Future = OfHandler<H::Future>;

    #[inline]
    fn call(self, mut request: Request, state: S) -> Self::Future {
        let mut exchange = Exchange::closed();
        if let Some(site) = SITES.find(TypeId::of::<H>()) {
            site.start(&mut exchange, &mut request);
        }
        let running = exchange.run();
        let future = self.handler.call(request, state);
        running.returned();
        OfHandler::new(future, exchange)
    }
}

/// Endpoints by types, in an open table that only fills up.
struct Sites {
    places: [OnceLock<(TypeId, &'static Site)>; PLACES],
    used: AtomicUsize,
}

/// Of which half are used at most, so that searches stay short.
const PLACES: usize = 4096;

static SITES: Sites =
    Sites { places: [const { OnceLock::new() }; PLACES], used: AtomicUsize::new(0) };

impl Sites {
    /// Whether there was room, and the type was not there.
    fn insert(&self, id: TypeId, site: &'static Site) -> bool {
        for place in Self::places(id) {
            if self.places[place].get().is_none() && self.used.load(Relaxed) >= PLACES / 2 {
                return false;
            }
            let mut is_ours = false;
            let found = self.places[place].get_or_init(|| {
                is_ours = true;
                self.used.fetch_add(1, Relaxed);
                (id, site)
            });
            if found.0 == id {
                return is_ours;
            }
        }
        false
    }

    #[inline]
    fn find(&self, id: TypeId) -> Option<&'static Site> {
        for place in Self::places(id) {
            let (found, site) = self.places[place].get()?;
            if *found == id {
                return Some(site);
            }
        }
        None
    }

    #[inline]
    fn places(id: TypeId) -> impl Iterator<Item = usize> {
        // A type's id is a hash.
        let mut first = Bits(0);
        id.hash(&mut first);
        (0..PLACES).map(move |n| (first.0 as usize).wrapping_add(n) % PLACES)
    }
}

/// What a type's id says of itself to a hasher.
struct Bits(u64);

impl Hasher for Bits {
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
    use crate::case::Methods;

    #[test]
    fn a_function_is_the_first_of_its_type_once() {
        async fn first() {}
        async fn second() {}
        let site = Site::declare::<()>(Methods::Each);
        let other = Site::declare::<()>(Methods::Each);
        fn id<H: 'static>(_: &H) -> TypeId {
            TypeId::of::<H>()
        }
        assert!(SITES.find(id(&first)).is_none());
        let sole = Sole::of(first, site).unwrap_or_else(|_| unreachable!());
        assert_eq!(size_of_val(&sole), 0);
        assert!(Sole::of(first, other).is_err(), "it was declared before");
        assert!(Sole::of(second, other).is_ok());
        assert!(std::ptr::eq(SITES.find(id(&first)).unwrap(), site));
        assert!(std::ptr::eq(SITES.find(id(&second)).unwrap(), other));
        let carries = 7;
        assert!(Sole::of(move || carries, site).is_err(), "it has a size");
    }
}
