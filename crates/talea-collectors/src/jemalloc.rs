//! Jemalloc's statistics of the memory that it hands out.
//!
//! | metric | meaning |
//! |---|---|
//! | `jemalloc_allocated_bytes` | memory that the program holds, rounded up to jemalloc's size classes |
//! | `jemalloc_active_bytes` | pages that hold any of it |
//! | `jemalloc_metadata_bytes` | memory that jemalloc needs for itself |
//! | `jemalloc_resident_bytes` | pages that are in RAM, at most: active ones, metadata, and unused ones that are kept |
//! | `jemalloc_mapped_bytes` | extents that are mapped and in use |
//! | `jemalloc_retained_bytes` | address space that is kept for later, without RAM |
//!
//! They are metrics of their own rather than one with a label: they overlap, so a sum over them
//! would have no meaning. Resident minus allocated is the cost of fragmentation and caches. If
//! processes share a registry, each metric is the sum over the living ones.
//!
//! Cost of a snapshot: jemalloc adds up its arenas, of which it has four a CPU; 6 µs, or
//! 43 µs after 64 threads allocated, on two CPUs.
//!
//! ```
//! use talea_collectors::jemalloc::Jemalloc;
//!
//! #[global_allocator]
//! static ALLOCATOR: Jemalloc = Jemalloc;
//!
//! fn main() -> Result<(), talea::Error> {
//!     let registry = talea::Registry::for_test()?;
//!     talea_collectors::jemalloc::register(&registry)?;
//!     assert!(registry.snapshot().expect_value("jemalloc_allocated_bytes", &[]) > 0.0);
//!     Ok(())
//! }
//! ```

use std::hint::black_box;
use talea::{Combine, Error, Gauge, Opts, Registry};
use tikv_jemalloc_ctl::{Result, epoch, stats, thread};

/// The allocator that the metrics describe, for `#[global_allocator]`. It is the allocator of the crate
/// `tikv-jemallocator` 0.7, whose features configure it; a program can have one version of that
/// crate.
pub use tikv_jemallocator::Jemalloc;

/// A name, a help text, and the function that reads the statistic.
type Statistic = (&'static str, &'static str, fn() -> Result<usize>);

const STATISTICS: [Statistic; 6] = [
    (
        "jemalloc_allocated_bytes",
        "Memory that the program holds, in bytes, rounded up to size classes.",
        stats::allocated::read,
    ),
    ("jemalloc_active_bytes", "Pages that hold memory of the program.", stats::active::read),
    ("jemalloc_metadata_bytes", "Memory that jemalloc needs for itself.", stats::metadata::read),
    (
        "jemalloc_resident_bytes",
        "Pages of jemalloc that are in RAM at most.",
        stats::resident::read,
    ),
    ("jemalloc_mapped_bytes", "Extents that are mapped and in use.", stats::mapped::read),
    (
        "jemalloc_retained_bytes",
        "Address space that is kept for later, without RAM.",
        stats::retained::read,
    ),
];

/// The size of an allocation that shows whether jemalloc is the allocator.
const PROBE: usize = 1 << 20;

/// Registers the metrics of jemalloc, and reads them for the first time.
///
/// # Errors
///
/// This program uses another allocator, so that the statistics would be of one without allocations;
/// or a metric cannot be registered: see [`Registry::register`].
pub fn register(registry: &Registry) -> std::result::Result<(), Error> {
    if !allocates() {
        return Err(Error::Register {
            name: STATISTICS[0].0.to_owned(),
            reason: "this program allocates by another allocator; make \
                     `talea_collectors::jemalloc::Jemalloc` its `#[global_allocator]`, or do \
                     not register jemalloc"
                .to_owned(),
        });
    }
    let shown = STATISTICS
        .into_iter()
        .map(|(name, help, read)| {
            let gauge: Gauge = registry.register(Opts::new(name, help).combine(Combine::Sum))?;
            Ok((gauge, read))
        })
        .collect::<std::result::Result<Vec<_>, Error>>()?;
    let refresh = move || {
        // Jemalloc updates its statistics when its epoch advances. A value that cannot be read
        // stays as it was.
        let _ = epoch::advance();
        for (gauge, read) in &shown {
            if let Ok(bytes) = read() {
                gauge.set(bytes as i64);
            }
        }
    };
    refresh();
    registry.on_snapshot(refresh);
    Ok(())
}

/// Whether this program allocates by jemalloc, which counts what each thread asks for.
fn allocates() -> bool {
    let asked_for = || thread::allocatedp::read().map(|counter| counter.get());
    let before = asked_for();
    drop(black_box(Vec::<u8>::with_capacity(PROBE)));
    matches!((before, asked_for()), (Ok(before), Ok(after)) if after - before >= PROBE as u64)
}
