//! Claims about each type of metric and about what a family does with its series.

mod families;
mod gauges;
mod infos;
mod observables;
mod state_sets;
mod wiping;

use talea::{Error, Registry, Snapshot};

fn registry() -> Registry {
    Registry::for_test().unwrap()
}

/// The reason of an error, behind the metric's name.
#[track_caller]
fn reason<T>(result: Result<T, Error>) -> String {
    let told = result.err().expect("it was accepted").to_string();
    let begin = told.starts_with("cannot register the metric \"");
    let (_, reason) = told.split_once("\": ").filter(|_| begin).expect("the metric is named");
    reason.to_owned()
}

/// How many series a family shows.
fn count(snapshot: &Snapshot, name: &str) -> usize {
    snapshot.select(name, &[]).count()
}
