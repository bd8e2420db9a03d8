//! Opening: a region is made or attached to, and this process takes a slot in it.

#[cfg(all(target_os = "linux", not(loom)))]
mod attach;
#[cfg(all(target_os = "linux", not(loom)))]
mod candidate;
mod create;
pub(crate) mod file;
#[allow(unsafe_code)]
pub(crate) mod processes;
#[cfg(all(target_os = "linux", not(loom)))]
#[allow(unsafe_code)]
pub(crate) mod siblings;
