//! What a metric holds: its cells, or a place for them until it is installed.

use std::sync::OnceLock;

use talea_region::Cell;

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
/// look-up does.
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
    Late(OnceLock<T>),
}

impl<T: Bound> Clone for Slot<T> {
    fn clone(&self) -> Self {
        match self {
            // Where there is no room even to note that it is kept, what the clone
            // is told goes nowhere.
            Self::Bound { bound, passes: true } if !bound.keep() => Self::late(),
            Self::Bound { bound, .. } => Self::bound(*bound),
            Self::Lasting(bound) => Self::bound(**bound),
            Self::Late(late) => Self::Late(late.clone()),
        }
    }
}

impl<T: Bound> Slot<T> {
    /// What it is bound to, if it is.
    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        match self {
            Self::Bound { bound, .. } => Some(bound),
            Self::Lasting(bound) => Some(bound),
            Self::Late(late) => late.get(),
        }
    }

    /// Binds it, unless it is bound to something else; true where it is bound to
    /// this now.
    pub(crate) fn bind(&self, bound: T) -> bool {
        match self {
            Self::Bound { bound: already, .. } => *already == bound,
            Self::Lasting(already) => **already == bound,
            Self::Late(late) => *late.get_or_init(|| bound) == bound,
        }
    }
}

impl<T> Slot<T> {
    pub(crate) const fn late() -> Self {
        Self::Late(OnceLock::new())
    }

    #[inline]
    pub(crate) const fn bound(bound: T) -> Self {
        Self::Bound { bound, passes: false }
    }
}
