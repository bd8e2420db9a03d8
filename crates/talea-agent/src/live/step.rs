//! The increases from one reading to the next one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::health::Health;
use super::reading::Reading;
use super::regions::{KnownRegions, Regions};
use super::requests::{Counts, Requests, family_of};
use talea_page::Series;

/// The most series whose counts are kept while they are missing.
const MOST_HIDDEN: usize = 10_000;

/// A reading, as far as steps need it.
#[derive(Clone, Debug)]
pub struct Moment {
    began: Instant,
    pub(crate) ended: Instant,
    pub(crate) requests: Requests,
    /// The latest counts of series whose family is missing: an agent cannot read their region.
    hidden: Requests,
    regions: KnownRegions,
    pub(crate) health: Health,
    pub(crate) processes: Option<usize>,
}

/// The increases between two readings.
#[derive(Clone, Debug)]
pub struct Step {
    pub(crate) ended: Instant,
    /// From the middle of a reading to the middle of the next one.
    pub(crate) length: Duration,
    /// By how much that may be wrong.
    pub(crate) uncertainty: Duration,
    /// Also endpoints to which nothing came. Requests in flight are those at its end.
    pub(crate) grown: BTreeMap<String, Counts>,
    /// As it was at its end.
    pub(crate) health: Health,
}

impl Moment {
    /// A reading, after the one before.
    pub(crate) fn of(reading: &Reading, before: Option<&Self>) -> Self {
        let mut health = Health::of(&reading.families, reading.ended);
        before.into_iter().for_each(|before| health.follow(&before.health));
        Self::with(Requests::of(&reading.families), health, reading, before)
    }

    /// The observations of a family's series that `is_wanted`, as if they were requests to one endpoint.
    pub(crate) fn of_histogram(
        family: &str,
        is_wanted: impl Fn(&Series) -> bool,
        reading: &Reading,
        before: Option<&Self>,
    ) -> Self {
        let requests = Requests::of_histogram(&reading.families, family, is_wanted);
        Self::with(requests, Health::default(), reading, before)
    }

    fn with(requests: Requests, health: Health, reading: &Reading, before: Option<&Self>) -> Self {
        let Reading { families, unix_millis, .. } = reading;
        let regions = KnownRegions::of(families, *unix_millis, before.map(|it| &it.regions));
        let unreadable = Regions::unreadable(families);
        let shown = requests.0.values().flatten();
        let shown: BTreeSet<(&str, &str)> =
            shown.map(|(key, it)| (family_of(key), regions.known(&it.region))).collect();
        let known = before.into_iter().flat_map(|it| it.hidden.0.iter().chain(&it.requests.0));
        let known = known.flat_map(|(name, all)| all.iter().map(move |(key, it)| (name, key, it)));
        let mut hidden = Requests::default();
        for (name, key, series) in known
            .filter(|(_, key, it)| {
                // One that is missing from a family that is shown was removed.
                let may_come = regions.may_miss(&it.region) || unreadable.have(&it.region);
                may_come && !shown.contains(&(family_of(key), regions.known(&it.region)))
            })
            .take(MOST_HIDDEN)
        {
            hidden.0.entry(name.clone()).or_default().insert(key.clone(), series.clone());
        }
        Self {
            began: reading.began,
            ended: reading.ended,
            requests,
            hidden,
            regions,
            health,
            processes: reading.processes,
        }
    }

    fn middle(&self) -> Instant {
        self.began + self.took() / 2
    }

    fn took(&self) -> Duration {
        self.ended.saturating_duration_since(self.began)
    }
}

impl Step {
    /// A series that counts less than before began anew from 0, and so did one whose region was made meanwhile.
    /// Counts from before its region was found are no increase.
    pub(crate) fn between(before: &Moment, now: &Moment) -> Self {
        let (old, new) = (&now.regions.old, &now.regions.new);
        let grown = now.requests.0.iter().map(|(name, series)| {
            let known = [&before.requests, &before.hidden].map(|it| it.0.get(name));
            let mut counts = Counts::default();
            for (key, series) in series {
                if counts.region.is_empty() {
                    now.regions.known(&series.region).clone_into(&mut counts.region);
                }
                let before = match &*series.region {
                    region if old.have(region) => Some(series),
                    region if new.have(region) => None,
                    _ => known.iter().flatten().find_map(|known| known.get(key)),
                };
                counts.add_increase(before.map(|it| &it.value), &series.value);
            }
            (name.clone(), counts)
        });
        Self {
            ended: now.ended,
            length: now.middle().saturating_duration_since(before.middle()),
            uncertainty: (before.took() + now.took()) / 2,
            grown: grown.collect(),
            health: now.health.clone(),
        }
    }

    pub(crate) fn extend(&mut self, next: Self) {
        let mut all = std::mem::take(&mut self.grown);
        // An endpoint that is gone has nothing in flight any more.
        all.values_mut().for_each(|counts| counts.in_flight = None);
        for (name, counts) in next.grown {
            let sum = all.entry(name).or_default();
            sum.add(&counts);
            sum.in_flight = counts.in_flight;
        }
        *self = Self {
            ended: next.ended,
            length: self.length + next.length,
            // The ends of both together are two readings; the one between does not matter.
            uncertainty: self.uncertainty.max(next.uncertainty),
            grown: all,
            health: next.health,
        };
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::regions::{CREATED, UP};
    use super::*;
    use talea_page::Family;
    use talea_view::families::pages::{self, gauge, requests};

    /// The requests to all endpoints from one reading to the next, of pages that are read at these seconds.
    pub(crate) fn grown(pages: impl IntoIterator<Item = (u64, Vec<Family>)>) -> Vec<f64> {
        let pages = pages.into_iter();
        let moments = pages.scan(None, |last: &mut Option<Moment>, (second, families)| {
            let at = Duration::from_secs(second);
            let reading = Reading::recorded(at, at.as_millis() as i64, families);
            *last = Some(Moment::of(&reading, last.as_ref()));
            last.clone()
        });
        let moments: Vec<Moment> = moments.collect();
        let steps = moments.windows(2).map(|pair| Step::between(&pair[0], &pair[1]).grown);
        steps.map(|grown| grown.values().map(|it| it.times.count).sum()).collect()
    }

    /// Regions, each with the second when it was made and the number of its requests, if it has any series of them.
    fn page(regions: &[(&str, u64, Option<u64>)]) -> String {
        let of = |name: &str| format!("region=\"{name}\"");
        let labels: Vec<String> = regions.iter().map(|it| of(it.0)).collect();
        let created = labels.iter().zip(regions).map(|(labels, it)| (&**labels, it.1));
        let counts = regions.iter().filter_map(|(name, _, count)| {
            Some((format!("{},method=\"GET\",route=\"/a\"", of(name)), (*count)?))
        });
        let counts: Vec<(String, u64)> = counts.collect();
        let counts: Vec<_> = counts.iter().map(|(labels, count)| (&**labels, *count)).collect();
        gauge(CREATED, &created.collect::<Vec<_>>()) + &requests(&counts)
    }

    fn grown_of(pages: &[(u64, String)]) -> Vec<f64> {
        grown(pages.iter().map(|(second, page)| (*second, pages::read(page))))
    }

    #[test]
    fn an_endpoint_whose_family_was_left_out_counts_on_from_what_it_had() {
        let shop = |count| ("shop", 10, count);
        let pages = [
            (100, page(&[shop(Some(1_000))])),
            // Another region defines the family otherwise, and is newer.
            (102, page(&[shop(None), ("canary", 101, Some(20))])),
            (103, page(&[shop(Some(1_007))])),
            // One of the same name that was made since; it goes, and comes back.
            (105, page(&[shop(None), ("canary", 104, Some(30))])),
            (106, page(&[shop(Some(1_010))])),
            (107, page(&[shop(None), ("canary", 104, Some(50))])),
            (108, page(&[shop(None), ("canary", 104, Some(51))])),
        ];
        assert_eq!(grown_of(&pages), [20.0, 7.0, 30.0, 3.0, 0.0, 1.0]);
    }

    #[test]
    fn what_a_region_counted_before_it_was_found_is_no_increase() {
        let of = |name, created, count| (name, created, Some(count));
        let shop = |count| of("shop", 10, count);
        let up = gauge(UP, &[("region=\"bar\"", 0), ("region=\"shop\"", 1)]);
        let pages = [
            (100, page(&[shop(5)])),
            // One that was made before the reading before, and one that was made after it.
            (101, page(&[shop(7), of("bar", 50, 1_000)])),
            (102, page(&[shop(7), of("bar", 50, 1_003), of("new", 101, 20)])),
            (103, page(&[shop(7), of("new", 101, 21)]) + &up),
            (104, page(&[shop(7), of("bar", 50, 1_013), of("new", 101, 21)])),
        ];
        assert_eq!(grown_of(&pages), [2.0, 23.0, 1.0, 10.0]);
    }

    #[test]
    fn a_region_that_takes_the_place_of_another_is_none_that_counts_on() {
        let shop = |created, count| page(&[("shop", created, Some(count))]);
        let pages = [
            (100, shop(10, 7)),
            (102, shop(101, 9)),
            // Of the two of the same name, one is older.
            (103, shop(50, 1_000)),
            (104, shop(50, 1_003)),
            // It has no series yet.
            (106, gauge(CREATED, &[("region=\"shop\"", 105)])),
            (107, shop(105, 2_000)),
        ];
        assert_eq!(grown_of(&pages), [9.0, 0.0, 3.0, 0.0, 2_000.0]);
    }

    #[test]
    fn a_series_that_goes_makes_no_traffic_of_others_of_its_endpoint() {
        let of = |counts: &[(u16, u64)]| {
            let labels = |status| format!("method=\"GET\",route=\"/a\",status=\"{status}\"");
            let counts: Vec<_> = counts.iter().map(|(status, n)| (labels(status), *n)).collect();
            requests(&counts.iter().map(|(labels, n)| (&**labels, *n)).collect::<Vec<_>>())
        };
        let pages = [
            (100, of(&[(200, 10_000), (404, 50)])),
            (101, of(&[(200, 10_005)])),
            (102, of(&[(200, 10_006), (404, 60)])),
        ];
        assert_eq!(grown_of(&pages), [5.0, 61.0]);
    }

    #[test]
    fn an_endpoint_of_a_region_that_could_not_be_read_counts_on_from_what_it_had() {
        // Beside another region, which is served all the time.
        let up = |is_up: u8| gauge(UP, &[("region=\"shop\"", is_up), ("region=\"bar\"", 1)]);
        let counted =
            |count| up(1) + &requests(&[("region=\"shop\",method=\"GET\",route=\"/a\"", count)]);
        // Of a region that an agent does not know at all, the endpoint begins anew.
        let only_bar = gauge(UP, &[("region=\"bar\"", 1)]);
        for (between, expected) in [(up(0), 7.0), (only_bar, 1_007.0)] {
            let pages = [counted(1_000), between.clone(), between, counted(1_007)];
            let pages = pages.iter().map(|page| pages::read(page));
            assert_eq!(grown((0..).zip(pages)), [0.0, 0.0, expected]);
        }
    }

    #[test]
    fn an_endpoint_that_a_services_own_page_lacks_counts_on_from_what_it_had() {
        let counted = |count| requests(&[("method=\"GET\",route=\"/a\"", count)]);
        // The page is empty, or has another family alone.
        for between in [String::new(), gauge("process_open_fds", &[("", 5)])] {
            let pages = [counted(1_000), between.clone(), between, counted(1_007), counted(3)];
            let pages = pages.iter().map(|page| pages::read(page));
            assert_eq!(grown((0..).zip(pages)), [0.0, 0.0, 7.0, 3.0]);
        }
    }

    #[test]
    fn what_a_service_counted_before_it_did_not_answer_is_not_counted_again() {
        let page =
            |count| Ok(pages::read(&pages::requests(&[("method=\"GET\",route=\"/a\"", count)])));
        let silent = || Err(anyhow::anyhow!("no response in time"));
        let readings = [page(1_000), silent(), silent(), page(1_007)];
        assert_eq!(grown((0..).zip(readings.map(super::super::answered))), [0.0, 0.0, 7.0]);
    }
}
