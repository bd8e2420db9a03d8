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
//! How the memory is laid out is drawn in `layout.rs` and in
//! `docs/region-format.md`. All unsafe code of the Rust side is here:
//! `restartable.rs` (the per-CPU adds), `atomic_ref.rs` (a reference in a word), `mapping.rs`, `slots.rs`,
//! `siblings.rs`, `refusal.rs` and `clock.rs` (system calls and what they return), `access.rs` and `system_group.rs`
//! (more of these), `reader.rs` and `texts.rs` (words seen
//! as bytes), `planes.rs` (a cell's copy in another plane), `primitive.rs` (a prefetch) and
//! `models.rs` (a model's region is freed).

#![allow(unsafe_code)]

#[cfg(all(target_os = "linux", not(loom)))]
mod access;
mod arena;
mod atomic_ref;
mod cells;
mod clock;
#[cfg(all(target_os = "linux", not(loom)))]
mod copy;
mod error;
mod exemplars;
mod expire;
mod families;
mod file;
mod groups;
mod guard;
mod hash;
#[cfg(all(target_os = "linux", not(loom)))]
mod holdings;
mod index;
mod layout;
mod mapping;
mod membarrier;
mod memo;
#[cfg(all(test, loom))]
mod models;
mod more;
#[cfg(all(target_os = "linux", not(loom)))]
mod overview;
mod pins;
mod planes;
mod pool;
mod primitive;
#[cfg(all(target_os = "linux", not(loom)))]
mod reader;
mod record;
mod refusal;
mod region;
mod restartable;
mod segments;
mod series;
#[cfg(all(target_os = "linux", not(loom)))]
mod siblings;
mod slots;
mod snapshot;
mod source;
mod sweep;
mod system_group;
mod table;
mod texts;
mod threads;
#[cfg(all(target_os = "linux", not(loom)))]
mod trust;
mod wipe;

pub use atomic_ref::AtomicRef;
pub use cells::{Cell, Cells, Combine, Number, Storage};
pub use error::{FamilyError, OpenError, Overflow};
pub use exemplars::Exemplar;
pub use families::{Family, FamilySpec, Registered};
pub use file::Opened;
pub use guard::Guard;
pub use layout::{LAYOUT_VERSION, MAX_LEN, MIN_LEN};
pub use memo::{Key, Memo, Unknown};
#[cfg(all(target_os = "linux", not(loom)))]
pub use overview::{FamilyUse, Overview, ProcessSlot};
#[cfg(all(target_os = "linux", not(loom)))]
pub use reader::Reader;
pub use region::{Config, Part, Region, Usage};
pub use segments::{Segment, Segments, UsualSegment};
pub use series::Looked;
pub use snapshot::{FamilyCopy, LastUse, LivingProcess, SegmentView, SeriesView, Snapshot};
pub use source::Owner;
pub use system_group::group_named;
#[cfg(all(target_os = "linux", not(loom)))]
pub use trust::Standing;
