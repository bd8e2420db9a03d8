//! All families at one time.

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use talea_page::{Family, Kind, Number, Series, Value};

use super::ANSWERED;

/// All families at one time.
#[derive(Clone, Debug)]
pub struct Reading {
    /// All values are of an instant between these.
    pub began: Instant,
    pub ended: Instant,
    /// In milliseconds since 1970.
    pub unix_millis: i64,
    pub families: Vec<Family>,
    /// How many processes of the region live.
    pub processes: Option<usize>,
}

impl Reading {
    /// A reading of the past, at so much time after an instant that is the same for all of them.
    pub fn recorded(after: Duration, unix_millis: i64, families: Vec<Family>) -> Self {
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
pub fn answered(read: Result<Vec<Family>>) -> Vec<Family> {
    let value = if read.is_ok() { 1.0 } else { 0.0 };
    let number = Number { value, exemplar: None };
    let up = Series { value: Value::Number(number), ..Series::default() };
    let name = ANSWERED.to_owned();
    let up = Family { name, kind: Kind::Gauge, series: vec![up], ..Family::default() };
    read.unwrap_or_default().into_iter().chain([up]).collect()
}
