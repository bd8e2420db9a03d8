//! The memory that Talea's metrics live in: a **region**, mapped by every
//! writer and every reader.
//!
//! This crate knows bytes, cells and records. It knows no HTTP, no text format
//! and no quantile; the crate `talea` builds metrics on it and is what users
//! want.
//!
//! - A [`Region`] is a memfd ([`Region::anonymous`]) or a file on tmpfs
//!   ([`Region::open`]).
//! - A [`Family`] is registered by name ([`Region::family`]); its
//!   [`series`](Family::series) are found or made by their label text and own a
//!   run of [`Cells`].
//! - A [`Cell`] is added to or set, from any thread, process or signal handler.
//! - A [`Snapshot`] is what a reader takes: in a process that has the region
//!   ([`Region::snapshot`]), or from outside, also when all who wrote are dead
//!   (`Reader`, on Linux).
//!
//! `layout.rs` and `docs/explanations/region-format.md` draw how the memory is laid out. The folders, from the
//! bottom up; each imports only those before it:
//!
//! | folder | holds |
//! |---|---|
//! | `memory` | the mapped words, process slots, planes, guards, and how memory is handed out |
//! | `files` | files that hold regions, and which of them are trusted |
//! | `series` | records of series and families, their index and their cells |
//! | `reclaim` | sweeps, expiry, wipes |
//! | `lookup` | families and series are found or made; the lookup cache |
//! | `snapshot` | values copied out |
//! | `read` | a region read from outside, without mapping it |
//! | `open` | a region is made or attached to; this process takes a slot |
//!
//! The modules that may have unsafe code allow it, where they are declared: system calls, the adds to a
//! CPU's plane (`memory/restartable/`, `memory/planes.rs`), memory seen as words, bytes or references, and
//! a prefetch. Beyond this crate, only the boundaries to other languages have any.

#[allow(unsafe_code)]
mod allocator;
#[allow(unsafe_code)]
mod atomic_ref;
#[cfg(unix)]
#[allow(unsafe_code)]
mod children;
#[allow(unsafe_code)]
mod clock;
mod config;
mod error;
#[cfg(all(target_os = "linux", not(loom)))]
mod files;
#[cfg(unix)]
#[allow(unsafe_code)]
mod fork;
mod hash;
#[cfg(all(target_os = "linux", not(loom)))]
mod header;
mod layout;
mod lookup;
mod memory;
#[cfg(all(test, loom))]
#[allow(unsafe_code)]
mod models;
mod open;
#[allow(unsafe_code)]
mod primitive;
#[cfg(all(target_os = "linux", not(loom), feature = "outside"))]
#[allow(unsafe_code)]
mod process_end;
#[cfg(all(target_os = "linux", not(loom), feature = "outside"))]
mod read;
mod reclaim;
mod region;
mod series;
mod snapshot;
#[allow(unsafe_code)]
mod sockets;
mod source;
#[allow(unsafe_code)]
mod system_group;
#[cfg(all(test, not(loom)))]
mod testing;
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
mod thread_context;
#[allow(unsafe_code)]
mod threads;
mod usage;
mod values;

pub use allocator::return_large_buffers;
pub use atomic_ref::AtomicRef;
#[cfg(unix)]
pub use children::{ChildrenUsage, children_usage};
pub use clock::boot_nanos;
#[cfg(unix)]
pub use clock::thread_cpu_nanos;
pub use config::Config;
pub use error::{FamilyError, OpenError, Overflow};
pub use layout::{LAYOUT_VERSION, MAX_LEN, MIN_LEN};
pub use lookup::cache::{Key, LookupCache, Miss};
pub use lookup::register::{FamilySpec, Registered, Relation};
pub use lookup::series::SeriesGuard;
pub use memory::guard::Guard;
pub use memory::path::AddPath;
pub use open::file::Opened;
pub use open::processes::{fork_generation, forks};
#[cfg(all(target_os = "linux", not(loom)))]
pub use open::siblings::remove_unused;
#[cfg(all(target_os = "linux", not(loom), feature = "outside"))]
pub use process_end::{ProcessEnd, process_end};
#[cfg(all(target_os = "linux", not(loom), feature = "outside"))]
pub use read::{FamilyUse, Overview, ProcessSlot, Reader, Standing};
pub use region::Region;
pub use series::cell::{Cell, Cells};
pub use series::exemplars::Exemplar;
pub use series::family::Family;
pub use series::holds::Hold;
pub use series::incarnation::Incarnation;
pub use series::lent::LentPlane;
pub use series::segment::MadeSegment;
pub use series::segment::Segment;
pub use series::segments::{Segments, Uncounted, UncountedRest, UsualSegment};
pub use snapshot::{
    FamilyCopy, LastUse, LivingProcess, OneCell, SegmentView, SeriesView, Snapshot,
};
#[cfg(unix)]
pub use sockets::{ClosedInChildren, is_readable};
pub use source::Owner;
pub use system_group::group_named;
#[cfg(target_os = "linux")]
pub use thread_context::sampled_span;
pub use usage::{Part, Usage};
pub use values::{Combine, Number, Storage};
