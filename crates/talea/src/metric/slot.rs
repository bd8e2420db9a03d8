//! What a metric holds: its cells, or a place for them until it is installed.

use std::sync::{Arc, OnceLock};

use talea_region::{AtomicRef, Cell};

use super::discarded::{self, Origin};

/// What a handle is bound to: cells of a series.
pub trait Bound: Copy + PartialEq + Send + Sync + 'static {
    /// Has the series stay as long as this process lives; false where there is no room
    /// to note it.
    fn keep(self) -> bool;
}

impl Bound for Cell {
    fn keep(self) -> bool {
        Cell::keep(self).is_ok()
    }
}

/// A metric that was made with its cells says so in its own memory, without the
/// synchronization that a static needs: making one must cost nothing, since each
/// look-up does. It is as small as what it is bound to allows: what a request is counted by lies
/// on one line of the cache.
#[derive(Debug)]
pub enum Slot<T: 'static> {
    /// Made with its cells.
    Bound {
        /// What it is bound to.
        bound: T,
        /// That it was found by a look-up, and is only good while that lives; a clone
        /// keeps its series.
        passes: bool,
    },
    /// Found by a look-up of a series that stays: where its cells are.
    Lasting(&'static T),
    /// Made without; a registry fills it once.
    Late {
        /// Where they will be.
        place: Late<T>,
        /// That it was found by a look-up in a family that is not installed. It must not have
        /// memory of its own, as it is not dropped, and nobody installs it.
        passes: bool,
    },
}

impl<T: Bound> Clone for Slot<T> {
    fn clone(&self) -> Self {
        match self {
            // Where there is no room even to note that it is kept, updates of the clone are
            // discarded.
            Self::Bound { bound, passes: true } if !bound.keep() => Self::late(None),
            Self::Bound { bound, .. } => Self::bound(*bound),
            Self::Lasting(bound) => Self::bound(**bound),
            Self::Late { place, passes } => match place.get() {
                Some(bound) => Self::bound(*bound),
                None if *passes => Self::late(place.origin),
                None => Self::Late { place: place.clone(), passes: false },
            },
        }
    }
}

impl<T: Bound> Slot<T> {
    /// Updates what it is bound to. Where it is bound to nothing, `again` does so once more if a
    /// clone was bound since; else the update is discarded and the default returned.
    ///
    /// That is out of line, and the last thing that is done, so that the usual way keeps no
    /// registers for it.
    #[inline(always)]
    pub(crate) fn update<R: Default>(
        &self,
        update: impl FnOnce(&T) -> R,
        again: impl FnOnce() -> R,
    ) -> R {
        match self.now() {
            Some(bound) => update(bound),
            None => self.update_late(again),
        }
    }

    /// What it is bound to, unless a clone was bound since this was last asked.
    #[inline(always)]
    pub(crate) fn now(&self) -> Option<&T> {
        #[cold]
        fn is_rarer() {}
        match self {
            Self::Bound { bound, .. } => Some(bound),
            Self::Lasting(bound) => Some(bound),
            Self::Late { place, .. } => {
                is_rarer();
                place.now()
            }
        }
    }

    /// What it is bound to, if it is.
    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        match self {
            Self::Bound { bound, .. } => Some(bound),
            Self::Lasting(bound) => Some(bound),
            Self::Late { place, .. } => place.get(),
        }
    }

    /// The end of [`update`](Self::update) where nothing is bound as far as is known.
    #[cold]
    #[inline(never)]
    pub(crate) fn update_late<R: Default>(&self, again: impl FnOnce() -> R) -> R {
        match self {
            Self::Late { place, .. } if place.get().is_none() => {
                place.note_discarded();
                R::default()
            }
            _ => again(),
        }
    }

    /// Binds it, unless it is bound to something else; true where it is bound to
    /// this now.
    pub(crate) fn bind(&self, bound: &'static T) -> bool {
        match self {
            Self::Bound { bound: already, .. } => *already == *bound,
            Self::Lasting(already) => **already == *bound,
            Self::Late { place, .. } => place.fill(bound),
        }
    }
}

impl<T> Slot<T> {
    /// One of a metric that was made there, if its updates are to be reported.
    pub(crate) const fn late(origin: Option<Origin>) -> Self {
        Self::Late { place: Late::new(origin), passes: false }
    }

    /// What a look-up finds in a family that is not installed.
    pub(crate) const fn looked_up(origin: Option<Origin>) -> Self {
        Self::Late { place: Late::new(origin), passes: true }
    }

    #[inline]
    pub(crate) const fn bound(bound: T) -> Self {
        Self::Bound { bound, passes: false }
    }
}

/// A place that a registry fills once, for all clones of it.
#[derive(Debug)]
pub struct Late<T: 'static> {
    /// What is asked first, and filled from what is shared.
    filled: AtomicRef<T>,
    /// What it shares with its clones, from the first of them on.
    shared: OnceLock<Arc<AtomicRef<T>>>,
    /// Where the metric was made, if its updates are to be reported.
    origin: Option<Origin>,
}

impl<T> Late<T> {
    pub(crate) const fn new(origin: Option<Origin>) -> Self {
        Self { filled: AtomicRef::new(), shared: OnceLock::new(), origin }
    }
}

impl<T: PartialEq> Late<T> {
    pub(crate) fn origin(&self) -> Option<Origin> {
        self.origin
    }

    /// What it is filled with, unless a clone was filled since this was last asked.
    #[inline]
    pub(crate) fn now(&self) -> Option<&'static T> {
        self.filled.get()
    }

    /// What it is filled with, if it is.
    #[inline]
    pub(crate) fn get(&self) -> Option<&'static T> {
        self.now().or_else(|| self.get_shared())
    }

    #[cold]
    #[inline(never)]
    fn get_shared(&self) -> Option<&'static T> {
        let shared = self.shared.get()?.get()?;
        Some(self.filled.get_or_set(shared))
    }

    /// Notes that an update found nothing.
    pub(crate) fn note_discarded(&self) {
        if let Some(origin) = self.origin {
            discarded::note(origin);
        }
    }

    /// Fills it, unless it is filled with something else; true where it is filled with this now.
    pub(crate) fn fill(&self, with: &'static T) -> bool {
        if self.now().is_none() {
            // Also where there is no clone, as somebody may be making one.
            let shared = self.shared.get_or_init(Arc::default).get_or_set(with);
            self.filled.get_or_set(shared);
        }
        if self.now().is_none_or(|found| *found != *with) {
            return false;
        }
        self.origin.into_iter().for_each(discarded::forget);
        true
    }
}

impl<T: PartialEq> Clone for Late<T> {
    fn clone(&self) -> Self {
        let shared = self.shared.get_or_init(Arc::default).clone();
        Self { shared: OnceLock::from(shared), ..Self::new(self.origin) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_five_words_as_what_a_request_is_counted_by_has_room_for() {
        assert!(size_of::<Slot<Cell>>() <= 5 * size_of::<u64>());
    }
}
