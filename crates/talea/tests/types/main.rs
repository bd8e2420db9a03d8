//! Claims about each type of metric and about what a family does with its series.

mod families;
mod gauges;
mod infos;
mod observables;
mod state_sets;
mod timers;
mod wiping;

use talea::{
    Counter, DynamicLabels, Error, Family, Gauge, Histogram, Info, Opts, Registry, Seconds,
    Snapshot, StateSet,
};

fn registry() -> Registry {
    Registry::for_test().unwrap()
}

/// The reason of an error, behind the metric's name.
#[track_caller]
fn reason<T>(result: Result<T, Error>) -> String {
    let message = result.err().expect("it was accepted").to_string();
    let begin = message.starts_with("cannot register the metric \"");
    let (_, reason) = message.split_once("\": ").filter(|_| begin).expect("the metric is named");
    reason.to_owned()
}

/// How many series a family shows.
fn count(snapshot: &Snapshot, name: &str) -> usize {
    snapshot.select(name, &[]).count()
}

#[test]
fn a_handle_shows_itself_and_not_the_memory_behind_it() {
    enum Silent {}
    impl talea::LabelValue for Silent {
        fn write(&self, _: &mut talea::LabelText) {}
    }
    let registry = registry();
    let opts = |name| Opts::new(name, "Some.");
    let count: Counter = registry.register(opts("a")).unwrap();
    let gauge: Gauge = registry.register(opts("b")).unwrap();
    let time: Histogram<Seconds> = registry.register(opts("c")).unwrap();
    let family: Family<DynamicLabels, Counter> = registry.family(opts("d"), &["x"]).unwrap();
    let info: Info<()> = registry.register(opts("e")).unwrap();
    for shown in [
        format!("{count:?} {gauge:?}"),
        format!("{time:?} {:?}", time.time()),
        format!("{family:?} {:?}", family.with_values(&["x"])),
        format!("{info:?} {:?} {registry:?}", StateSet::<Silent>::new()),
    ] {
        assert!(shown.len() < 2_000, "{} bytes", shown.len());
    }
}
