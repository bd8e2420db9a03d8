//! Locks that a fork must not catch.
//!
//! Registering, opening and taking a snapshot take locks inside Talea. If another thread held one
//! during a fork, it would stay locked in the child for ever. So a thread that may take one enters
//! here first, and a fork waits until all have left: microseconds, for a large snapshot milliseconds.
//! Recording takes no locks and does not enter.

use std::sync::{PoisonError, RwLock, RwLockReadGuard};

static INSIDE: RwLock<()> = RwLock::new(());

/// Enters, until the guard is dropped. The thread must not enter twice, call code outside of Talea,
/// or fork meanwhile.
pub(crate) fn enter() -> RwLockReadGuard<'static, ()> {
    #[cfg(target_os = "linux")]
    handlers::register();
    INSIDE.read().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(target_os = "linux")]
mod handlers {
    use std::cell::RefCell;
    use std::sync::{Once, PoisonError, RwLockWriteGuard};

    thread_local! {
        /// The lock that the forking thread holds.
        static HELD: RefCell<Option<RwLockWriteGuard<'static, ()>>> = const { RefCell::new(None) };
    }

    pub(super) fn register() {
        static ONCE: Once = Once::new();
        // SAFETY: the handlers let no panic out, and stay as long as the process: the library
        // is never unloaded.
        ONCE.call_once(|| unsafe {
            libc::pthread_atfork(Some(before), Some(after), Some(after));
        });
    }

    extern "C" fn before() {
        let held = super::INSIDE.write().unwrap_or_else(PoisonError::into_inner);
        // A thread that is ending has no place for the lock; then no thread is kept out.
        let _ = HELD.try_with(|place| place.try_borrow_mut().map(|mut place| *place = Some(held)));
    }

    /// In the parent and in the child, the thread that forked unlocks its process's lock.
    extern "C" fn after() {
        let _ = HELD.try_with(|place| place.try_borrow_mut().map(|mut place| place.take()));
    }
}

/// Blocks signals in the threads that are started meanwhile, such as the one that keeps the window
/// of a summary: handlers are the host's, and it does not expect them on a foreign thread.
pub(crate) struct WithoutSignals {
    #[cfg(unix)]
    before: Option<libc::sigset_t>,
}

impl WithoutSignals {
    pub(crate) fn new() -> Self {
        #[cfg(unix)]
        {
            // SAFETY: both sets are written before they are read, and nothing else is touched.
            let before = unsafe {
                let mut all: libc::sigset_t = std::mem::zeroed();
                let mut before: libc::sigset_t = std::mem::zeroed();
                libc::sigfillset(&mut all);
                (libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before) == 0).then_some(before)
            };
            Self { before }
        }
        #[cfg(not(unix))]
        Self {}
    }
}

impl Drop for WithoutSignals {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(before) = &self.before {
            // SAFETY: the set is what the thread had before.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut()) };
        }
    }
}
