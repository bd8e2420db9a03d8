//! The increases from one reading to the next one, as the page gets them.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::numbering::{Bucket, Endpoint, Numbering};
use crate::live::{Counts, Mark, Moment, Step, Value};

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
    health: Numbers,
    /// The same of each region, if there are several.
    #[serde(rename = "hr", skip_serializing_if = "BTreeMap::is_empty")]
    health_by_region: BTreeMap<String, Numbers>,
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

/// Numbers by name.
type Numbers = BTreeMap<&'static str, Number>;

/// The most regions whose numbers are sent.
const REGIONS: usize = 100;

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
    /// The number of steps that it is of. An endpoint is left out if nothing of it changed: nothing came to it,
    /// nothing of it ended, and it has as many in flight as `in_flight` has, the numbers that were shown last.
    pub(super) fn of(
        unix_millis: i64,
        (steps, step): (u64, &Step),
        clients: Option<&Counts>,
        numbering: &mut Numbering,
        in_flight: &mut InFlight,
    ) -> Self {
        let seconds = step.length.as_secs_f64();
        let mut endpoints = Vec::new();
        for (name, counts) in &step.grown {
            let before = in_flight.0.get(name).copied();
            let has_grown = counts.times.count > 0.0
                || counts.statuses.values().chain(counts.outcomes.values()).any(|it| *it > 0.0);
            let is_in_flight = counts.in_flight.is_some_and(|number| number != 0.0);
            if has_grown || is_in_flight || before.is_some_and(|number| number != 0.0) {
                let number = numbering.endpoint(name, counts.family.as_ref(), &counts.region);
                endpoints.push(Requests::of(number as i64, counts, numbering));
            }
        }
        // An endpoint that is gone has nothing in flight any more.
        let gone = in_flight.0.iter().filter(|it| *it.1 != 0.0 && !step.grown.contains_key(it.0));
        for (name, _) in gone {
            let number = numbering.endpoint(name, None, "");
            endpoints.push(Requests::of(number as i64, &Counts::default(), numbering));
        }
        *in_flight = InFlight::at_the_end_of(step);
        let by_region = step.health.by_region().into_iter().filter(|it| !it.0.is_empty());
        let by_region = by_region.map(|(region, numbers)| (region.to_owned(), shown(numbers)));
        let by_region: BTreeMap<String, Numbers> = by_region.take(REGIONS).collect();
        Self {
            unix_millis,
            seconds: Number(seconds),
            uncertainty: Number(step.uncertainty.as_secs_f64()),
            steps,
            endpoints,
            health: shown(step.health.numbers()),
            health_by_region: if by_region.len() > 1 { by_region } else { BTreeMap::new() },
            clients: clients.map(|counts| Requests::of(-1, counts, numbering)),
            new_endpoints: Vec::new(),
            new_buckets: Vec::new(),
            marks: Vec::new(),
        }
    }
}

fn shown(numbers: BTreeMap<&'static str, f64>) -> Numbers {
    numbers.into_iter().map(|(name, number)| (name, Number(number))).collect()
}

/// How many requests each endpoint had in flight when it was shown last, as far as that is known.
#[derive(Debug, Default)]
pub(super) struct InFlight(BTreeMap<String, f64>);

impl InFlight {
    pub(super) fn of(moment: &Moment) -> Self {
        let all = moment.requests.0.iter().filter_map(|(name, series)| {
            let numbers = series.values().filter_map(|it| match it.value {
                Value::InFlight(number) => Some(number),
                _ => None,
            });
            Some((name.clone(), numbers.reduce(|sum, number| sum + number)?))
        });
        Self(all.collect())
    }

    fn at_the_end_of(step: &Step) -> Self {
        let all = step.grown.iter();
        Self(all.filter_map(|(name, counts)| Some((name.clone(), counts.in_flight?))).collect())
    }
}

impl Requests {
    fn of(number: i64, counts: &Counts, numbering: &mut Numbering) -> Self {
        let not_0 = |counts: &BTreeMap<String, f64>| {
            let not_0 = counts.iter().filter(|(_, count)| **count > 0.0);
            not_0.map(|(name, count)| (name.clone(), Number(*count))).collect()
        };
        let times = &counts.times;
        let buckets = times.buckets().into_iter();
        Self(
            number,
            Number(times.count),
            Number(times.sum),
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
