//! Collectors for Talea: the process, the tokio runtime and its tasks.
//!
//! ```
//! use talea::Registry;
//! use talea_collectors::tasks::TaskMeter;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), talea::Error> {
//! let registry = Registry::new()?;
//! talea_collectors::process::register(&registry)?;
//! talea_collectors::tokio::register(&registry, "main", tokio::runtime::Handle::current())?;
//!
//! let tasks = TaskMeter::register(&registry, "server")?;
//! let task = tasks.spawn(async { 42 });
//! assert_eq!(registry.snapshot().value("server_tasks_ready", &[]), Some(1.0));
//! assert_eq!(task.await.expect("the task ends"), 42);
//! assert_eq!(registry.snapshot().value("server_tasks_ready_peak", &[]), Some(1.0));
//! # Ok(())
//! # }
//! ```

pub mod build;
#[cfg(feature = "jemalloc")]
pub mod jemalloc;
pub mod process;
pub mod tasks;
pub mod tokio;
