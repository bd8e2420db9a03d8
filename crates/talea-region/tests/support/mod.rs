//! Set-up that several tests share.

// The binaries of their own use a part of it.
#![allow(dead_code)]

#[allow(unsafe_code)]
#[cfg(target_os = "linux")]
pub(crate) mod calls;
pub(crate) mod process;
pub(crate) mod region;
pub(crate) mod tmpfs;

use std::time::{Duration, Instant};

/// Waits until something holds that has to happen, and takes milliseconds.
#[track_caller]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(60), "waited in vain until {what}");
        std::thread::yield_now();
    }
}

/// Asserts that a text has all of some parts.
#[track_caller]
pub(crate) fn assert_says(text: impl std::fmt::Display, parts: &[&str]) {
    let text = text.to_string();
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// A command that runs a test of the calling module in a process of its own, with arguments: texts,
/// and paths.
#[cfg(target_os = "linux")]
macro_rules! again {
    ($test:expr $(, $argument:expr)*) => {
        $crate::support::process::again(module_path!(), $test, &[$($argument.as_ref()),*])
    };
}
