//! All values of 100,000 counters with one dynamic label, copied out for a reader in the same
//! process and, as an agent does, by a reader that does not map the region but reads its file.
//! (measured and prometheus-client write text right away, and metrics does not expose its copy.
//! None of them can be read from outside other than by its text.)

use std::hint::black_box;

use anyhow::{Result, ensure};
use talea::Registry;
use talea_region::Reader;

use super::encode::{SERIES, filled_prometheus, filled_talea};
use crate::work::{Group, Place, Setting, Subject, Work, repeated};

pub(super) const GROUP: Group = Group {
    name: "snapshot-100k",
    threads: &[1],
    subjects: &[
        Subject::new("talea", talea),
        Subject::new("talea-outside", talea_outside),
        Subject::new("prometheus", prometheus),
    ],
    place: Place::Apart,
    note: "ns: time for one snapshot of all series. talea-outside does not map the region, but \
           copies out of its file the memory in use.",
};

fn talea(_: &Setting) -> Result<Box<dyn Work>> {
    let count = |registry: &Registry| {
        registry.snapshot().families().map(|family| family.series().count()).sum::<usize>()
    };
    let registry = filled_talea::<SERIES>()?;
    let found = count(&registry);
    ensure!(found == SERIES, "{found} series in the snapshot, {SERIES} were expected");
    repeated(registry, |registry| black_box(registry.snapshot()).families().len() as u64)
}

/// The region is this process's own, which its reader makes no use of.
fn talea_outside(_: &Setting) -> Result<Box<dyn Work>> {
    let registry = filled_talea::<SERIES>()?;
    let reader = Reader::of_process(std::process::id())?;
    let snapshot = reader.snapshot()?;
    // There is one more, the overflow series.
    let users = |family| snapshot.series(family).filter(|one| one.text.starts_with(b"user="));
    let found = snapshot.families().iter().flat_map(users).count();
    ensure!(found == SERIES, "{found} series were read, {SERIES} were expected");
    repeated((registry, reader), |(_, reader)| {
        // An error is a missing snapshot, which the check finds.
        black_box(reader.snapshot()).map_or(0, |all| all.families().len() as u64)
    })
}

fn prometheus(_: &Setting) -> Result<Box<dyn Work>> {
    let registry = filled_prometheus::<SERIES>()?;
    let found = registry.gather().iter().map(|family| family.get_metric().len()).sum::<usize>();
    ensure!(found == SERIES, "{found} series were gathered, {SERIES} were expected");
    repeated(registry, |registry| black_box(registry.gather()).len() as u64)
}
