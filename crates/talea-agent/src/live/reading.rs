//! All families at one time.

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use talea_view::families::protobuf::{Kind, Metric, MetricFamily, Number};

use super::ANSWERED;

/// All families at one time.
#[derive(Clone, Debug)]
pub struct Reading {
    /// All values are of an instant between these.
    pub began: Instant,
    pub ended: Instant,
    /// In milliseconds since 1970.
    pub unix_millis: i64,
    pub families: Vec<MetricFamily>,
    /// How many processes of the region live.
    pub processes: Option<usize>,
}

impl Reading {
    /// A reading of the past, at so much time after an instant that is the same for all of them.
    pub fn recorded(after: Duration, unix_millis: i64, families: Vec<MetricFamily>) -> Self {
        static BEGIN: OnceLock<Instant> = OnceLock::new();
        let at = *BEGIN.get_or_init(Instant::now) + after;
        Self { began: at, ended: at, unix_millis, families, processes: None }
    }
}

/// Now, in milliseconds since 1970.
pub fn unix_millis() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// The families of a service, and whether it answered: if it did not, what it had counted is not gone.
pub fn answered(read: Result<Vec<MetricFamily>>) -> Vec<MetricFamily> {
    let value = if read.is_ok() { 1.0 } else { 0.0 };
    let up = Metric { gauge: Some(Number { value, exemplar: None }), ..Metric::default() };
    let name = ANSWERED.to_owned();
    let up =
        MetricFamily { name, kind: Kind::Gauge as i32, metric: vec![up], ..Default::default() };
    read.unwrap_or_default().into_iter().chain([up]).collect()
}
