//! Reports updates of metrics that are not installed.
//!
//! To update a metric before it is installed is no fault, for example at the start of a program.
//! So [`discarded`] counts the updates by the place in the program where their metric was made, and
//! forgets the counts of a place when a metric of it is installed. The rest is reported when a registry
//! of the process next refreshes its values (before a snapshot, or in the thread that keeps them
//! fresh): it is added to [`NAME`] there, and each place is named once on standard error.

use std::sync::OnceLock;

use talea_region::Region;

use super::{Registry, declared};
use crate::definition::opts::Opts;
use crate::error::counted;
use crate::metric::Counter;
use crate::metric::discarded::{self, Discarded, Origin};
use crate::notice::notice;

/// The name of the counter, without its ending.
const NAME: &str = "talea_uninstalled_updates";
const HELP: &str = "Updates that were discarded, since their metric was not installed.";

/// The most places that a line names.
const NAMED: usize = 5;

/// Reports updates that are discarded from now on in a registry. It must be the process's own:
/// tests run side by side in one process, and each would see the updates of others.
pub(crate) fn report_in(registry: &Registry) {
    discarded::start();
    let (region, counter) = (registry.region, OnceLock::new());
    registry.on_snapshot(move || report(region, &counter));
}

fn report(region: &'static Region, counter: &OnceLock<Counter>) {
    let Some(Discarded { updates, new_places }) = discarded::take() else { return };
    if counter.get().is_none() {
        // By a registry of its own: a clone of the one that reports would keep that alive.
        if let Ok(registered) = Registry::of(region).register(Opts::new(NAME, HELP)) {
            let _ = counter.set(registered);
        }
    }
    if let Some(counter) = counter.get() {
        counter.add(updates);
    }
    if !new_places.is_empty() {
        print(updates, &new_places);
    }
}

/// Prints the line on standard error.
fn print(discarded: u64, places: &[Option<Origin>]) {
    let mut known: Vec<Origin> = places.iter().copied().flatten().collect();
    known.sort_unstable();
    known.truncate(NAMED);
    let mut made: Vec<String> = known.iter().map(ToString::to_string).collect();
    if places.len() > known.len() {
        made.push(counted(places.len() - known.len(), "further place"));
    }
    let updates = counted(discarded as usize, "update");
    let were = if discarded == 1 { "was" } else { "were" };
    let advice = if declared::are_waiting() {
        "statics with #[talea::register] are in talea::default_registry(): call it first in main and use \
         it instead of Registry::new(), or call install_statics() of your registry; install sets by \
         talea::install"
    } else {
        "install their set by talea::install, or register them"
    };
    notice(format_args!(
        "{updates} {were} discarded, since the metrics are not installed that are made at \
         {}; {advice}, and keep handles of a family after that. {NAME}_total counts further updates",
        made.join(", ")
    ));
}

#[cfg(test)]
mod tests {
    use std::panic::Location;
    use std::process;
    use std::sync::{Mutex, PoisonError};

    use super::*;

    /// The counts are counts of this process.
    static ALONE: Mutex<()> = Mutex::new(());

    #[track_caller]
    fn here() -> Origin {
        Location::caller()
    }

    #[test]
    fn a_child_does_not_report_the_updates_of_its_parent() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let registry = Registry::for_test().unwrap();
        let (origin, counter) = (here(), OnceLock::new());
        // As after a fork: the memory belongs to another process.
        discarded::count_in(process::id() ^ 1);
        (0..3).for_each(|_| discarded::note(origin));
        report(registry.region, &counter);
        assert!(counter.get().is_none());
        (0..2).for_each(|_| discarded::note(origin));
        report(registry.region, &counter);
        assert_eq!(counter.get().map(Counter::get), Some(2));
        registry.snapshot().assert_value("talea_uninstalled_updates_total", &[], 2.0);
    }

    #[test]
    fn each_update_counts_though_there_are_more_places_than_the_table_holds() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let registry = Registry::for_test().unwrap();
        let (origins, counter) = ([here(), here(), here(), here()], OnceLock::new());
        discarded::count_in(process::id());
        origins
            .iter()
            .zip(1..)
            .for_each(|(origin, n)| (0..n).for_each(|_| discarded::note(origin)));
        report(registry.region, &counter);
        assert_eq!(counter.get().map(Counter::get), Some(1 + 2 + 3 + 4));
        // A place with a count of its own can be forgotten, and no other.
        origins.iter().for_each(|origin| discarded::note(origin));
        origins.iter().for_each(|origin| discarded::forget(origin));
        report(registry.region, &counter);
        let left = counter.get().map_or(0, Counter::get) - 10;
        assert!((2..4).contains(&left), "{left}");
    }
}
