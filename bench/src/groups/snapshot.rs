//! All values of 100,000 counters with one dynamic label, copied out for a
//! reader in the same process. (measured and prometheus-client write text right
//! away, and metrics keeps its copy to itself.)

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anyhow::{Result, ensure};
use talea::Registry;

use super::encode::{SERIES, filled_prometheus, filled_talea};
use crate::work::{Group, Place, Setting, Subject, Work, work};

pub(super) const GROUP: Group = Group {
    name: "snapshot-100k",
    threads: &[1],
    subjects: &[Subject::new("talea", talea), Subject::new("prometheus", prometheus)],
    place: Place::Apart,
    note: "ns: time for one snapshot of all series.",
};

fn talea(_: &Setting) -> Result<Box<dyn Work>> {
    let count = |registry: &Registry| {
        registry.snapshot().families().map(|family| family.series().count()).sum::<usize>()
    };
    let registry = filled_talea()?;
    let found = count(&registry);
    ensure!(found == SERIES, "{found} series in the snapshot, {SERIES} were expected");
    work(
        (registry, AtomicU64::new(0)),
        |(registry, taken), _, n| {
            for _ in 0..n {
                let families = black_box(registry.snapshot()).families().len();
                taken.fetch_add(families as u64, Relaxed);
            }
        },
        |(_, taken)| Ok(taken.load(Relaxed)),
    )
}

fn prometheus(_: &Setting) -> Result<Box<dyn Work>> {
    let registry = filled_prometheus()?;
    let found = registry.gather().iter().map(|family| family.get_metric().len()).sum::<usize>();
    ensure!(found == SERIES, "{found} series were gathered, {SERIES} were expected");
    work(
        (registry, AtomicU64::new(0)),
        |(registry, taken), _, n| {
            for _ in 0..n {
                let families = black_box(registry.gather()).len();
                taken.fetch_add(families as u64, Relaxed);
            }
        },
        |(_, taken)| Ok(taken.load(Relaxed)),
    )
}
