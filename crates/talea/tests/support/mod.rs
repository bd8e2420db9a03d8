//! Set-up that several tests share.

// Some tests are left out on other platforms and under Miri.
#![allow(dead_code)]

pub(crate) mod descriptors;
pub(crate) mod exact_buckets;
pub(crate) mod metrics;
pub(crate) mod model;
pub(crate) mod pages;
pub(crate) mod process;
pub(crate) mod protobuf;
pub(crate) mod random;
pub(crate) mod tmpfs;

/// A command that runs a test of the calling module in a process of its own.
macro_rules! again {
    ($test:expr) => {
        $crate::support::process::again(module_path!(), $test)
    };
}
