//! The tests of the collectors in one binary. `jemalloc` is a binary of its own, since it sets the
//! allocator; `forked_runtime` is one, since a child made by `fork` starts a runtime, and locks that
//! other threads of its parent held stay locked there.

mod build;
#[cfg(feature = "jemalloc")]
mod other_allocator;
mod pool;
#[cfg(target_os = "linux")]
mod process;
mod spans;
mod tasks;
mod tokio;
