//! Locks that a fork must not catch.
//!
//! Definitions, look-ups and snapshots take locks inside Talea. If another thread held one during a fork, it
//! would stay locked in the child for ever. With a global interpreter lock that cannot be: the thread that
//! forks holds it, and the others wait for it outside of Talea. Without one, a thread that may take a lock
//! enters here first, and a fork waits until all have left. As in talea-ffi.

/// Enters, until the guard is dropped. The thread must not enter twice, call code of Python, or fork
/// meanwhile.
#[cfg(not(Py_GIL_DISABLED))]
#[inline(always)]
pub(crate) fn enter() -> impl Sized {}

#[cfg(all(Py_GIL_DISABLED, not(unix)))]
pub(crate) fn enter() -> impl Sized {}

#[cfg(all(Py_GIL_DISABLED, unix))]
pub(crate) use unlocked::enter;

#[cfg(all(Py_GIL_DISABLED, unix))]
#[allow(unsafe_code)]
mod unlocked {
    use std::cell::RefCell;
    use std::sync::{Once, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

    static INSIDE: RwLock<()> = RwLock::new(());

    thread_local! {
        /// The lock that the forking thread holds.
        static HELD: RefCell<Option<RwLockWriteGuard<'static, ()>>> = const { RefCell::new(None) };
    }

    /// A thread that waits here stays attached: the fork that it waits for does not wait for it.
    pub(crate) fn enter() -> RwLockReadGuard<'static, ()> {
        static ONCE: Once = Once::new();
        // SAFETY: the handlers let no panic out, and stay as long as the process: Python does not unload
        // extension modules.
        ONCE.call_once(|| unsafe {
            libc::pthread_atfork(Some(before), Some(after), Some(after));
        });
        INSIDE.read().unwrap_or_else(PoisonError::into_inner)
    }

    extern "C" fn before() {
        let held = INSIDE.write().unwrap_or_else(PoisonError::into_inner);
        // A thread that is ending has no place for the lock; then no thread is kept out.
        let _ = HELD.try_with(|place| place.try_borrow_mut().map(|mut place| *place = Some(held)));
    }

    /// In the parent and in the child, the thread that forked unlocks its process's lock.
    extern "C" fn after() {
        let _ = HELD.try_with(|place| place.try_borrow_mut().map(|mut place| place.take()));
    }
}
