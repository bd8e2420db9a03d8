//! The parameters of a request, above all of one for the past.

use std::collections::HashMap;

use crate::live::region_of;
use talea_page::Label;
use talea_view::families::endpoint_of;

/// The most bins that a range is given in.
const MOST_BINS: i64 = 480;
const USUAL_BINS: i64 = 240;
/// A bin is at least so long: there is nothing between readings.
const SHORTEST_BIN: i64 = 1_000;
/// No time is further from 1970.
const FURTHEST: i64 = 1 << 50;

pub fn parameters(query: Option<String>) -> HashMap<String, String> {
    let query = query.unwrap_or_default();
    form_urlencoded::parse(query.as_bytes()).into_owned().collect()
}

/// Some series of a family.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Selection {
    /// Those of one region alone.
    region: Option<String>,
    /// Those of one endpoint alone.
    endpoint: Option<String>,
    /// Those with these labels alone.
    labels: Vec<(String, String)>,
}

impl Selection {
    /// Reads `region`, `endpoint` and `label.NAME`.
    pub(super) fn of(query: &HashMap<String, String>) -> Self {
        let labels = query.iter().filter_map(|(name, value)| {
            Some((name.strip_prefix("label.")?.to_owned(), value.clone()))
        });
        Self {
            region: query.get("region").cloned(),
            endpoint: query.get("endpoint").cloned(),
            labels: labels.collect(),
        }
    }

    pub(super) fn has(&self, labels: &[Label]) -> bool {
        self.region.as_ref().is_none_or(|region| region_of(labels) == region)
            && self.endpoint.as_ref().is_none_or(|endpoint| endpoint_of(labels) == *endpoint)
            && self.labels.iter().all(|(name, value)| {
                labels.iter().any(|label| label.name == *name && label.value == *value)
            })
    }
}

/// A part of the past, in bins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimeRange {
    /// In milliseconds since 1970.
    pub(super) from: i64,
    pub(super) to: i64,
    /// The length of a bin in milliseconds.
    pub(super) bin: i64,
}

impl TimeRange {
    /// Reads `from`, `to` and `bins`. The error is for the client.
    pub(super) fn of(query: &HashMap<String, String>, now: i64) -> Result<Self, String> {
        let from = number(query, "from", None)?;
        let to = number(query, "to", Some(now))?;
        if from >= to {
            return Err(format!("from: found {from}, expected a time before {to}"));
        }
        let bins = number(query, "bins", Some(USUAL_BINS))?;
        if !(1..=MOST_BINS).contains(&bins) {
            return Err(format!("bins: found {bins}, expected 1 to {MOST_BINS}"));
        }
        let bin = (to - from).div_euclid(bins) + i64::from((to - from) % bins != 0);
        // Whole seconds, so that each has as many readings.
        let bin = (bin.max(SHORTEST_BIN) + 999) / 1000 * 1000;
        Ok(Self { from, to, bin })
    }

    /// The bin that a time is in; bins begin at multiples of their length, the first one in part.
    pub(super) fn bin_of(&self, unix_millis: i64) -> i64 {
        // A step that ends at a boundary is of the bin before it.
        (unix_millis - 1).div_euclid(self.bin)
    }
}

fn number(query: &HashMap<String, String>, name: &str, usual: Option<i64>) -> Result<i64, String> {
    let Some(text) = query.get(name) else {
        return usual
            .ok_or_else(|| format!("{name}: found nothing, expected milliseconds since 1970"));
    };
    let number = text.parse::<i64>().ok().filter(|number| (-FURTHEST..FURTHEST).contains(number));
    number.ok_or_else(|| format!("{name}: found {text:?}, expected a whole number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_whole_and_bounded() {
        let of = |text: &str| {
            let pairs = text.split('&').map(|pair| pair.split_once('=').unwrap());
            let query = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            TimeRange::of(&query, 1_000_000)
        };
        let expected = TimeRange { from: 400_000, to: 1_000_000, bin: 3_000 };
        assert_eq!(of("from=400000"), Ok(expected));
        assert_eq!(of("from=999999&to=1000001&bins=480").unwrap().bin, 1_000);
        assert_eq!(of("from=0&to=86400000&bins=7").unwrap().bin % 1000, 0);
        for (text, found) in [
            ("to=1", "from: found nothing"),
            ("from=x", "from: found \"x\""),
            ("from=5&to=5", "from: found 5"),
            ("from=1&bins=481", "bins: found 481"),
            ("from=1&bins=-1", "bins: found -1"),
            ("from=-9223372036854775808", "from: found"),
            ("from=1&to=9223372036854775807", "to: found"),
        ] {
            assert!(of(text).unwrap_err().starts_with(found), "{text}: {:?}", of(text));
        }
    }
}
