//! A lock for the state of an object of Python.

// The interpreter's lock is not one that the compiler knows.
#![allow(unsafe_code)]

use pyo3::Python;
use pyo3::gc::PyVisit;

pub(crate) use variant::{Guard, StateLock};

impl<T> StateLock<T> {
    /// The state. No code of Python may run while a guard lives.
    #[inline]
    pub(crate) fn lock<'a>(&'a self, _attached: Python<'a>) -> Guard<'a, T> {
        self.guard()
    }

    /// The state for a garbage collection, unless a guard lives: the collection may begin in its thread.
    pub(crate) fn try_lock<'a>(&'a self, _collection: &PyVisit<'a>) -> Option<Guard<'a, T>> {
        self.try_guard()
    }
}

/// The interpreter's lock is enough: only a thread that is attached gets a guard. Several interpreters may have this
/// module, and they share one lock: CPython refuses it to an interpreter with a lock of its own, since the module
/// does not say that it supports those (PEP 684).
#[cfg(not(Py_GIL_DISABLED))]
mod variant {
    use std::cell::{RefCell, RefMut};

    pub(crate) type Guard<'a, T> = RefMut<'a, T>;

    pub(crate) struct StateLock<T>(RefCell<T>);

    // SAFETY: `lock` and `try_lock` take what only an attached thread has. The interpreters that can import this
    // module share one lock, and such a thread holds it. So threads use the cell one after the other, and see what
    // the one before wrote. A guard stays with its thread.
    unsafe impl<T: Send> Sync for StateLock<T> {}

    impl<T> StateLock<T> {
        pub(crate) fn new(state: T) -> Self {
            Self(RefCell::new(state))
        }

        #[inline]
        pub(super) fn guard(&self) -> Guard<'_, T> {
            self.0.borrow_mut()
        }

        pub(super) fn try_guard(&self) -> Option<Guard<'_, T>> {
            self.0.try_borrow_mut().ok()
        }
    }
}

/// Without the interpreter's lock, the state has one of its own.
#[cfg(Py_GIL_DISABLED)]
mod variant {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    pub(crate) type Guard<'a, T> = MutexGuard<'a, T>;

    pub(crate) struct StateLock<T>(Mutex<T>);

    impl<T> StateLock<T> {
        pub(crate) fn new(state: T) -> Self {
            Self(Mutex::new(state))
        }

        pub(super) fn guard(&self) -> Guard<'_, T> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }

        pub(super) fn try_guard(&self) -> Option<Guard<'_, T>> {
            self.0.try_lock().ok()
        }
    }
}
