//! The tests of the region in one binary. `cpus`, `late` and `holds` are binaries of their own: the first
//! turns off restartable sequences and takes a signal for the whole process, the second loads a library
//! into it and unloads it, and the third counts what is held, also by children that are forked.

#[macro_use]
#[path = "../support/mod.rs"]
mod support;

#[cfg(target_os = "linux")]
mod access;
#[cfg(target_os = "linux")]
mod corpus;
#[cfg(target_os = "linux")]
mod crowd;
#[cfg(target_os = "linux")]
mod damaged;
mod exemplars;
mod expire;
#[cfg(target_os = "linux")]
mod file;
#[cfg(target_os = "linux")]
mod fork;
#[cfg(target_os = "linux")]
mod guards;
#[cfg(target_os = "linux")]
mod kept;
#[cfg(target_os = "linux")]
mod killed;
#[cfg(target_os = "linux")]
mod lent;
mod lookup_cache;
#[cfg(target_os = "linux")]
mod namespaces;
#[cfg(target_os = "linux")]
mod owners;
#[cfg(target_os = "linux")]
mod reader;
#[cfg(target_os = "linux")]
mod refused;
mod region;
#[cfg(target_os = "linux")]
mod removed;
mod reuse;
mod segments;
#[cfg(target_os = "linux")]
mod strangers;
mod wipe;
