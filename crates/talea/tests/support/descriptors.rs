//! The limit of open files, which properties over many regions reach: a region stays open until the
//! process ends.

#[cfg(unix)]
use std::sync::Once;

/// Raises this process's limit of open files as far as it may.
#[allow(unsafe_code)]
pub(crate) fn raise_limit() {
    #[cfg(unix)]
    static RAISED: Once = Once::new();
    #[cfg(unix)]
    RAISED.call_once(|| {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: both calls get a limit of ours, which the first fills in.
        unsafe {
            libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    });
}
