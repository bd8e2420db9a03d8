//! Reads a registry from outside the processes that record in it, also when they are stopped or
//! dead. `talea inspect` and `talea serve` are built on it. The reader exists on Linux only.
//!
//! ```
//! use talea::{Counter, Opts, Registry, outside};
//!
//! # let path = format!("/dev/shm/talea-outside-{}.talea", std::process::id());
//! let registry = Registry::open(&path)?;
//! let orders: Counter = registry.register(Opts::new("orders", "Orders accepted."))?;
//! orders.add(3);
//!
//! // In any other process of the same user:
//! let look = outside::Reader::open(&path)?.look()?;
//! assert_eq!(look.snapshot.value("orders_total", &[]), Some(3.0));
//! assert_eq!((look.families[0].name.as_str(), look.families[0].series), ("orders_total", 1));
//! assert!(look.overview.processes.iter().any(|process| process.is_alive));
//! # std::fs::remove_file(&path).ok();
//! # Ok::<(), talea::Error>(())
//! ```

#[cfg(target_os = "linux")]
mod reader;

#[cfg(target_os = "linux")]
pub use reader::*;
#[cfg(target_os = "linux")]
pub use talea_region::remove_unused;
pub use talea_region::return_large_buffers;
