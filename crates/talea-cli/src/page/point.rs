//! The increases from one reading to the next one, as the page gets them.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::numbering::{Bucket, Endpoint, Numbering};
use crate::live::{Counts, Mark, Step};

/// A step, or several added up.
#[derive(Debug, Serialize)]
pub(super) struct Point {
    /// When it ended, in milliseconds since 1970.
    #[serde(rename = "t")]
    pub(super) unix_millis: i64,
    #[serde(rename = "s")]
    seconds: Number,
    /// By how many seconds that may be wrong.
    #[serde(rename = "u")]
    uncertainty: Number,
    #[serde(rename = "n")]
    steps: u64,
    #[serde(rename = "e")]
    endpoints: Vec<Requests>,
    #[serde(rename = "h")]
    health: BTreeMap<&'static str, Number>,
    /// The requests of a load as its clients saw them.
    #[serde(rename = "c", skip_serializing_if = "Option::is_none")]
    clients: Option<Requests>,
    #[serde(rename = "ne", skip_serializing_if = "Vec::is_empty")]
    pub(super) new_endpoints: Vec<Endpoint>,
    #[serde(rename = "nb", skip_serializing_if = "Vec::is_empty")]
    pub(super) new_buckets: Vec<Bucket>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) marks: Vec<Mark>,
}

/// The requests to an endpoint: its number, their count, the sum of their seconds, those in flight at the
/// end, the counts by status, the numbers and counts of buckets in turn, the counts by outcome.
#[derive(Debug, Serialize)]
struct Requests(
    i64,
    Number,
    Number,
    Option<Number>,
    BTreeMap<String, Number>,
    Vec<Number>,
    BTreeMap<String, Number>,
);

/// A number in as few digits as say what it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number(pub(super) f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        const EXACT: f64 = (1u64 << 53) as f64;
        match self.0 {
            whole if whole.fract() == 0.0 && whole.abs() <= EXACT => to.serialize_i64(whole as i64),
            // JSON has no others.
            number if number.is_finite() => to.serialize_f64(rounded(number)),
            _ => to.serialize_none(),
        }
    }
}

/// To ten significant digits.
fn rounded(number: f64) -> f64 {
    format!("{number:.9e}").parse().unwrap_or(number)
}

impl Point {
    /// The number of steps that it is of. Endpoints are left out to which nothing came and that `had_in_flight`
    /// nothing before and have nothing now.
    pub(super) fn of(
        unix_millis: i64,
        (steps, step): (u64, &Step),
        clients: Option<&Counts>,
        numbering: &mut Numbering,
        had_in_flight: impl Fn(&str) -> bool,
    ) -> Self {
        let seconds = step.length.as_secs_f64();
        let mut endpoints = Vec::new();
        for (name, counts) in &step.grown {
            let has_in_flight = counts.in_flight.is_some_and(|in_flight| in_flight != 0.0);
            if has_in_flight || counts.times.durations.count > 0.0 || had_in_flight(name) {
                let number = numbering.endpoint(name, counts.family.as_ref());
                endpoints.push(Requests::of(number as i64, counts, numbering));
            }
        }
        let numbers = step.health.numbers().into_iter();
        Self {
            unix_millis,
            seconds: Number(seconds),
            uncertainty: Number(step.uncertainty.as_secs_f64()),
            steps,
            endpoints,
            health: numbers.map(|(name, number)| (name, Number(number))).collect(),
            clients: clients.map(|counts| Requests::of(-1, counts, numbering)),
            new_endpoints: Vec::new(),
            new_buckets: Vec::new(),
            marks: Vec::new(),
        }
    }
}

impl Requests {
    fn of(number: i64, counts: &Counts, numbering: &mut Numbering) -> Self {
        let not_0 = |counts: &BTreeMap<String, f64>| {
            let not_0 = counts.iter().filter(|(_, count)| **count > 0.0);
            not_0.map(|(name, count)| (name.clone(), Number(*count))).collect()
        };
        let durations = &counts.times.durations;
        let buckets = counts.times.buckets().into_iter();
        Self(
            number,
            Number(durations.count),
            Number(durations.sum),
            counts.in_flight.map(Number),
            not_0(&counts.statuses),
            buckets
                .flat_map(|(bounds, count)| {
                    [Number(numbering.bucket(bounds) as f64), Number(count)]
                })
                .collect(),
            not_0(&counts.outcomes),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_right() {
        for (number, shown) in [
            (0.0, "0"),
            (12.0, "12"),
            (0.1 + 0.2, "0.3"),
            (1.0 / 3.0, "0.3333333333"),
            (123_456_789.123, "123456789.1"),
            (1e300, "1e+300"),
            (5e-324, "5e-324"),
            (f64::NAN, "null"),
            (f64::INFINITY, "null"),
        ] {
            assert_eq!(serde_json::to_string(&Number(number)).unwrap(), shown, "{number}");
        }
    }
}
