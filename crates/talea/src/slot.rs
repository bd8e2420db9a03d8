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
pub enum Slot<T> {
    /// Made with its cells.
    Bound(T),
    /// Made without; a registry fills it once.
    Late(OnceLock<T>),
    /// Found by a look-up and only good while that lives; a clone keeps its
    /// series.
    Borrowed(T),
}

impl<T: Bound> Clone for Slot<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Bound(bound) => Self::Bound(*bound),
            Self::Late(late) => Self::Late(late.clone()),
            Self::Borrowed(bound) if bound.keep() => Self::Bound(*bound),
            // Where there is no room even to note that it is kept, what the clone
            // is told goes nowhere.
            Self::Borrowed(_) => Self::late(),
        }
    }
}

impl<T: Bound> Slot<T> {
    /// What it is bound to, if it is.
    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        match self {
            Self::Bound(bound) | Self::Borrowed(bound) => Some(bound),
            Self::Late(late) => late.get(),
        }
    }

    /// Binds it, unless it is bound to something else; true where it is bound to
    /// this now.
    pub(crate) fn bind(&self, bound: T) -> bool {
        match self {
            Self::Bound(already) | Self::Borrowed(already) => *already == bound,
            Self::Late(late) => *late.get_or_init(|| bound) == bound,
        }
    }
}

impl<T> Slot<T> {
    pub(crate) const fn late() -> Self {
        Self::Late(OnceLock::new())
    }
}
