//! Numbers of endpoints and of buckets, which points use in place of names and bounds.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use talea_view::families::Between;

/// The most endpoints that have a number of their own, and the most buckets. Requests of strangers could make
/// names without end.
const MOST_ENDPOINTS: usize = 10_000;
/// The most of one region, so that there are some for the others.
const MOST_OF_REGION: usize = 5_000;
const MOST_BUCKETS: usize = 50_000;
/// The endpoint that stands for all further ones, and the bucket for all further ones, of any durations.
const FURTHER: &str = "(further endpoints)";
const ANY: Between = Between { low: 0.0, high: None };

/// The numbers of a run. They only become more.
#[derive(Debug, Default)]
pub(super) struct Numbering {
    endpoints: Vec<Endpoint>,
    of_endpoints: HashMap<Arc<str>, usize>,
    /// How many endpoints each region has.
    of_regions: HashMap<Arc<str>, usize>,
    buckets: Vec<Bucket>,
    of_buckets: HashMap<(u64, Option<u64>), usize>,
}

/// An endpoint: its number, its name, the family that it was found in, and its region, where series name it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Endpoint(usize, Arc<str>, Arc<str>, Arc<str>);

impl Serialize for Endpoint {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        (self.0, &*self.1, &*self.2, &*self.3).serialize(to)
    }
}

/// A bucket: its number, and its bounds in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Bucket(usize, f64, Option<f64>);

impl Numbering {
    pub(super) fn endpoint(
        &mut self,
        name: &str,
        family: Option<&Arc<str>>,
        region: &str,
    ) -> usize {
        if let Some(&number) = self.of_endpoints.get(name) {
            return number;
        }
        let is_full = self.endpoints.len() + 1 >= MOST_ENDPOINTS;
        if is_full && name != FURTHER {
            return self.endpoint(FURTHER, None, "");
        }
        let region = Arc::<str>::from(region);
        let count = self.of_regions.entry(Arc::clone(&region)).or_default();
        let further = format!("{FURTHER} {region}");
        if !region.is_empty() && *count + 1 >= MOST_OF_REGION && name != further {
            return self.endpoint(&further, None, &region);
        }
        *count += 1;
        let (number, name) = (self.endpoints.len(), Arc::<str>::from(name));
        let family = family.map_or_else(|| Arc::from(""), Arc::clone);
        self.endpoints.push(Endpoint(number, Arc::clone(&name), family, region));
        self.of_endpoints.insert(name, number);
        number
    }

    pub(super) fn bucket(&mut self, bounds: Between) -> usize {
        let key = |of: Between| (of.low.to_bits(), of.high.map(f64::to_bits));
        if let Some(&number) = self.of_buckets.get(&key(bounds)) {
            return number;
        }
        if self.buckets.len() + 1 >= MOST_BUCKETS && bounds != ANY {
            return self.bucket(ANY);
        }
        let number = self.buckets.len();
        self.buckets.push(Bucket(number, bounds.low, bounds.high));
        self.of_buckets.insert(key(bounds), number);
        number
    }

    /// Those from these numbers on.
    pub(super) fn since(
        &self,
        (endpoints, buckets): (usize, usize),
    ) -> (Vec<Endpoint>, Vec<Bucket>) {
        (self.endpoints[endpoints..].to_vec(), self.buckets[buckets..].to_vec())
    }

    pub(super) fn len(&self) -> (usize, usize) {
        (self.endpoints.len(), self.buckets.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_with_names_without_end_leaves_numbers_to_the_others() {
        let mut numbering = Numbering::default();
        for number in 0..MOST_ENDPOINTS * 2 {
            numbering.endpoint(&format!("GET /{number} odd"), None, "odd");
        }
        let numbers = ["GET /a shop", "GET /b shop"].map(|name| {
            let number = numbering.endpoint(name, None, "shop");
            assert_eq!(&*numbering.endpoints[number].1, name);
            number
        });
        assert_eq!(numbers, [MOST_OF_REGION, MOST_OF_REGION + 1]);
        assert_eq!(&*numbering.endpoints[MOST_OF_REGION - 1].1, "(further endpoints) odd");
    }

    #[test]
    fn names_without_end_take_a_bounded_number_of_numbers() {
        let mut numbering = Numbering::default();
        for round in 0..2 {
            for number in 0..MOST_ENDPOINTS * 2 {
                let found = numbering.endpoint(&format!("GET /{number}"), None, "");
                assert_eq!(found, number.min(MOST_ENDPOINTS - 1), "round {round}");
            }
            for number in 0..MOST_BUCKETS * 2 {
                let low = number as f64;
                let found = numbering.bucket(Between { low, high: Some(low + 1.0) });
                assert_eq!(found, number.min(MOST_BUCKETS - 1), "round {round}");
            }
        }
        assert_eq!(numbering.len(), (MOST_ENDPOINTS, MOST_BUCKETS));
    }
}
