//! The `Debug` form of handles.

use crate::support::metrics::{opts, registry};
use talea::{Counter, DynamicLabels, Family, Gauge, Histogram, Info, Seconds, StateSet};

#[test]
fn a_handle_shows_itself_and_not_the_memory_behind_it() {
    enum Silent {}
    impl talea::LabelValue for Silent {
        fn write(&self, _: &mut talea::LabelText) {}
    }
    let registry = registry();
    let count: Counter = registry.register(opts("a")).unwrap();
    let gauge: Gauge = registry.register(opts("b")).unwrap();
    let time: Histogram<Seconds> = registry.register(opts("c")).unwrap();
    let family: Family<DynamicLabels, Counter> = registry.family(opts("d"), &["x"]).unwrap();
    let info: Info<()> = registry.register(opts("e")).unwrap();
    for shown in [
        format!("{count:?} {gauge:?}"),
        format!("{time:?} {:?}", time.start_timer()),
        format!("{family:?} {:?}", family.with_values(&["x"])),
        format!("{info:?} {:?} {registry:?}", StateSet::<Silent>::new()),
    ] {
        assert!(shown.len() < 2_000, "{} bytes", shown.len());
    }
}
