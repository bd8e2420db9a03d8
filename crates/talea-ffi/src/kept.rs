//! Memory that one scrape keeps for the next.

use std::sync::Mutex;

/// The memory of the last scrape: a snapshot, that is its values, the text of its labels, and the
/// names and definitions of its families. To read ten thousand definitions anew would take longer
/// than to read the values. A thread that scrapes takes it and puts it back; if another scrape has
/// it, the thread allocates its own.
///
/// It is locked for a move, by a thread that has [entered](crate::fork::enter), so a fork never
/// cuts that in two.
pub(crate) struct Kept<T>(pub(crate) Mutex<Option<T>>);

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Kept<T> {
    pub(crate) fn take(&self) -> Option<T> {
        self.0.try_lock().ok()?.take()
    }

    pub(crate) fn put(&self, memory: T) {
        // The one before is dropped outside of the lock.
        let before = self.0.try_lock().ok().and_then(|mut kept| kept.replace(memory));
        drop(before);
    }
}
