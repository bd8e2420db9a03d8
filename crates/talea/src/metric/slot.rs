//! The content of a metric: its cells, or a place for them until it is installed.

use std::sync::{Arc, OnceLock};

use talea_region::{AtomicRef, Cell};

use super::discarded::{self, Origin};

/// The binding of a handle: the cells of a series.
pub trait Bound: Copy + PartialEq + Send + Sync + 'static {
    /// One cell of the series.
    fn cell(self) -> Cell;

    /// Has the series stay as long as this process lives; false if there is no room to note it.
    fn keep(self) -> bool {
        self.cell().keep().is_ok()
    }
}

impl Bound for Cell {
    #[inline]
    fn cell(self) -> Cell {
        self
    }
}

/// A hint for the compiler.
#[cold]
fn is_rarer() {}

/// A metric that was made with its cells has them in its own memory, without the synchronization
/// that a static needs: each look-up makes one, so that must cost nothing. It is as small as its
/// binding allows: the metrics of a request lie on one cache line.
#[derive(Debug)]
pub enum Slot<T: 'static> {
    /// Made with its cells.
    Bound {
        /// The binding.
        bound: T,
        /// Whether it was found by a look-up, and is valid only while that lives; a clone keeps its
        /// series.
        passes: bool,
    },
    /// Found by a look-up by fixed labels. It owns no memory, as it is not dropped.
    LookedUp {
        /// The place of a permanent series' cells; `None` if the family is not installed, and neither
        /// will this be.
        bound: Option<&'static T>,
        /// The place at which a family was made that is not installed.
        origin: Option<Origin>,
    },
    /// Made without: the place of the cells, which a registry fills once.
    Late(Late<T>),
}

impl<T: Bound> Clone for Slot<T> {
    fn clone(&self) -> Self {
        match self {
            // If there is no room even to note that it is kept, updates of the clone are discarded.
            Self::Bound { bound, passes: true } if !bound.keep() => Self::late(None),
            Self::Bound { bound, .. } => Self::bound(*bound),
            Self::LookedUp { bound: Some(bound), .. } => Self::bound(**bound),
            Self::LookedUp { bound: None, origin } => Self::late(*origin),
            Self::Late(place) => match place.get() {
                Some(bound) => Self::bound(*bound),
                None => Self::Late(place.clone()),
            },
        }
    }
}

impl<T: Bound> Slot<T> {
    /// Calls `update` with the binding. If there is no binding, but a clone was bound since, calls
    /// `again`, which starts anew; otherwise the update is discarded and the default returned.
    ///
    /// The second part is out of line and a tail call, so that the common path saves no registers
    /// for it.
    #[inline(always)]
    pub(crate) fn update<R: Default>(
        &self,
        update: impl FnOnce(&T) -> R,
        again: impl FnOnce() -> R,
    ) -> R {
        self.update_or(update, || self.update_late(again))
    }

    /// Calls `update` with the binding, or else `late`.
    #[inline(always)]
    pub(crate) fn update_or<R: Default>(
        &self,
        update: impl FnOnce(&T) -> R,
        late: impl FnOnce() -> R,
    ) -> R {
        let bound = match self {
            Self::Bound { bound, .. } => bound,
            Self::LookedUp { bound: Some(bound), .. } => bound,
            // Without a reference to this slot, for which each look-up would write its result to memory.
            Self::LookedUp { bound: None, origin } => {
                note_discarded(*origin);
                return R::default();
            }
            Self::Late(place) => {
                is_rarer();
                match place.now() {
                    Some(bound) => bound,
                    None => return late(),
                }
            }
        };
        update(bound)
    }

    /// The binding, unless a clone was bound since the last [`get`](Self::get).
    #[inline(always)]
    pub(crate) fn now(&self) -> Option<&T> {
        match self {
            Self::Bound { bound, .. } => Some(bound),
            Self::LookedUp { bound, .. } => *bound,
            Self::Late(place) => {
                is_rarer();
                place.now()
            }
        }
    }

    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        match self {
            Self::Bound { bound, .. } => Some(bound),
            Self::LookedUp { bound, .. } => *bound,
            Self::Late(place) => place.get(),
        }
    }

    /// The end of [`update`](Self::update) if no binding is known.
    #[cold]
    #[inline(never)]
    pub(crate) fn update_late<R: Default>(&self, again: impl FnOnce() -> R) -> R {
        match self {
            Self::Late(place) if place.get().is_none() => {
                place.note_discarded();
                R::default()
            }
            _ => again(),
        }
    }

    /// Binds it, unless it is bound to something else; true if it is bound to this now.
    pub(crate) fn bind(&self, bound: &'static T) -> bool {
        match self {
            Self::Bound { bound: already, .. } => *already == *bound,
            Self::LookedUp { bound: already, .. } => already.is_some_and(|it| *it == *bound),
            Self::Late(place) => place.fill(bound),
        }
    }
}

impl<T> Slot<T> {
    /// A slot without a binding. `origin` is the place where its metric was made, if its discarded
    /// updates are to be reported.
    pub(crate) const fn late(origin: Option<Origin>) -> Self {
        Self::Late(Late::new(origin))
    }

    #[inline]
    pub(crate) const fn bound(bound: T) -> Self {
        Self::Bound { bound, passes: false }
    }
}

fn note_discarded(origin: Option<Origin>) {
    if let Some(origin) = origin {
        discarded::note(origin);
    }
}

/// A place that a registry fills once, for all clones of it.
#[derive(Debug)]
pub struct Late<T: 'static> {
    /// A copy of `shared`, which is read first.
    filled: AtomicRef<T>,
    /// The place that it shares with its clones, made with the first of them.
    shared: OnceLock<Arc<AtomicRef<T>>>,
    /// The place in the program where the metric was made, if its updates are to be reported.
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

    /// The content, unless a clone was filled since the last [`get`](Self::get).
    #[inline]
    pub(crate) fn now(&self) -> Option<&'static T> {
        self.filled.get()
    }

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
        note_discarded(self.origin);
    }

    /// Fills it, unless it is filled with something else; true if it is filled with this now.
    pub(crate) fn fill(&self, with: &'static T) -> bool {
        if self.now().is_none() {
            // Also without a clone, as another thread may be making one.
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
