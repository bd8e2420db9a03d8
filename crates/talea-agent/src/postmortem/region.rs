//! The values that a region still holds of processes that died.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use talea::outside::Look;

use crate::live::{Reading, Window};
use talea_page::{Exemplar, Family};
use talea_view::families;

/// How many exemplars are shown.
const EXEMPLARS: usize = 10;

#[derive(Debug, Serialize)]
pub struct Remains {
    pub(crate) source: String,
    pub(crate) processes: Vec<Process>,
    /// All requests that the region ever counted, to the last one.
    pub(crate) endpoints: Vec<Total>,
    /// The latest references to single requests, the latest first.
    pub(crate) exemplars: Vec<Reference>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Process {
    pub(crate) pid: u64,
    pub(crate) alive: bool,
    pub(crate) started_unix_millis: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct Total {
    pub(crate) name: String,
    pub(crate) requests: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct Reference {
    pub(crate) family: String,
    pub(crate) series: String,
    pub(crate) labels: Vec<(String, String)>,
    pub(crate) value: f64,
    pub(crate) unix_millis: i64,
}

impl Remains {
    pub fn of(source: String, look: &Look) -> anyhow::Result<Self> {
        let families = look.snapshot.to_families();
        let exemplars = exemplars(&families);
        let mut window = Window::new(std::time::Duration::from_secs(1));
        let now = std::time::Instant::now();
        window.add(&Reading { began: now, ended: now, unix_millis: 0, families, processes: None });
        let table = window.table();
        let endpoints = table
            .rows
            .iter()
            .map(|row| Total { name: row.name.clone(), requests: row.requests as u64 })
            .filter(|total| total.requests > 0);
        Ok(Self {
            source,
            processes: look
                .overview
                .processes
                .iter()
                .map(|it: &talea::outside::ProcessSlot| Process {
                    pid: it.pid,
                    alive: it.is_alive,
                    started_unix_millis: it.started_unix_nanos / 1_000_000,
                })
                .collect(),
            endpoints: endpoints.collect(),
            exemplars,
        })
    }
}

fn exemplars(families: &[Family]) -> Vec<Reference> {
    let mut found = Vec::new();
    for family in families {
        for metric in &family.series {
            let series = families::endpoint_of(&metric.labels);
            found.extend(metric.exemplars().map(|it| reference(&family.name, &series, it)));
        }
    }
    // A bucket of either kind may keep the same one.
    found.sort_by(|one, other| {
        other.unix_millis.cmp(&one.unix_millis).then_with(|| one.family.cmp(&other.family))
    });
    found.dedup_by(|one, other| {
        (&one.labels, one.unix_millis, &one.family)
            == (&other.labels, other.unix_millis, &other.family)
    });
    found.truncate(EXEMPLARS);
    found
}

fn unix_millis_of(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn reference(family: &str, series: &str, exemplar: &Exemplar) -> Reference {
    Reference {
        family: family.to_owned(),
        series: series.to_owned(),
        labels: exemplar.labels.iter().map(|it| (it.name.clone(), it.value.clone())).collect(),
        value: exemplar.value,
        unix_millis: exemplar.time.map_or(0, unix_millis_of),
    }
}
