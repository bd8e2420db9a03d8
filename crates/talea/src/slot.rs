//! What a metric holds: its cells, or a place for them until it is installed.

use std::sync::OnceLock;

/// A metric that was made with its cells says so in its own memory, without the
/// synchronization that a static needs: making one must cost nothing, since each
/// look-up does.
#[derive(Clone, Debug)]
pub enum Slot<T> {
    /// Made with its cells.
    Bound(T),
    /// Made without; a registry fills it once.
    Late(OnceLock<T>),
}

impl<T: Copy + PartialEq> Slot<T> {
    /// What it is bound to, if it is.
    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        match self {
            Self::Bound(bound) => Some(bound),
            Self::Late(late) => late.get(),
        }
    }

    /// Binds it, unless it is bound to something else; true where it is bound to
    /// this now.
    pub(crate) fn bind(&self, bound: T) -> bool {
        match self {
            Self::Bound(already) => *already == bound,
            Self::Late(late) => *late.get_or_init(|| bound) == bound,
        }
    }
}

impl<T> Slot<T> {
    pub(crate) const fn late() -> Self {
        Self::Late(OnceLock::new())
    }
}
