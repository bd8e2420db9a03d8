//! Set-up that several tests share.

// The binaries of their own use a part of it.
#![allow(dead_code)]

#[allow(unsafe_code)]
#[cfg(target_os = "linux")]
pub(crate) mod cpu_time;
pub(crate) mod process;
pub(crate) mod tmpfs;

/// A command that runs a test of the calling module in a process of its own.
macro_rules! again {
    ($test:expr) => {
        $crate::support::process::again(module_path!(), $test)
    };
}
