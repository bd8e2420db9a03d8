#![doc = include_str!("../collectors.md")]

pub mod build;
#[cfg(feature = "jemalloc")]
pub mod jemalloc;
pub mod pool;
pub mod process;
#[cfg(feature = "tracing")]
pub mod spans;
pub mod tasks;
pub mod tokio;
mod total;
