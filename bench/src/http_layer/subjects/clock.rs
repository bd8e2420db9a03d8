//! The least that a duration costs: the clock read when it begins and when it ends.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anyhow::Result;
use fastant::Instant;

use crate::http_layer::case::Case;
use crate::work::{Work, work};

pub(super) fn two_reads(_: Case) -> Result<Box<dyn Work>> {
    work(
        AtomicU64::new(0),
        |count, _, n| {
            for _ in 0..n {
                black_box(black_box(Instant::now()).elapsed());
            }
            count.fetch_add(n, Relaxed);
        },
        |count| Ok(count.load(Relaxed)),
    )
}
