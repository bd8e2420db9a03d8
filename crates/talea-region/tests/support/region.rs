//! Regions, their families and values.

use std::path::Path;

use talea_region::{Config, Family, FamilySpec, Opened, Region, SeriesView, Snapshot};

/// A region of so many bytes, in memory.
pub(crate) fn region(len: u64) -> &'static Region {
    Region::anonymous(Config::with_len(len)).unwrap()
}

/// The limits of a region of 1 MiB.
pub(crate) fn config() -> Config {
    Config::with_len(1 << 20)
}

/// A region of 1 MiB in a file, with what is said of that.
pub(crate) fn opened(path: impl AsRef<Path>) -> Opened {
    Region::open(path, config()).unwrap()
}

pub(crate) fn open(path: impl AsRef<Path>) -> &'static Region {
    opened(path).region
}

/// A family with this name.
pub(crate) fn family(region: &'static Region, name: &str, spec: FamilySpec<'_>) -> Family {
    region.family(FamilySpec { name: name.as_bytes(), ..spec }).unwrap().family
}

/// The series of a family in a snapshot; none if it is not there.
pub(crate) fn series<'a>(snapshot: &'a Snapshot, name: &str) -> Vec<SeriesView<'a>> {
    let family = snapshot.families().iter().find(|family| family.name == name.as_bytes());
    family.map(|family| snapshot.series(family).collect()).unwrap_or_default()
}

/// The first value of each series of a family.
pub(crate) fn values(region: &'static Region, name: &str) -> Vec<u64> {
    series(&region.snapshot(), name).iter().map(|series| series.values[0]).collect()
}

/// The label text of each series of a family and its first value, as `text=value`, sorted.
pub(crate) fn shown(region: &'static Region, name: &str) -> Vec<String> {
    let snapshot = region.snapshot();
    let text = |text| String::from_utf8_lossy(text);
    let all = series(&snapshot, name);
    let mut all: Vec<_> =
        all.iter().map(|one| format!("{}={}", text(one.text), one.values[0])).collect();
    all.sort();
    all
}

/// The sum of the first values of a family.
pub(crate) fn total(region: &'static Region, name: &str) -> u64 {
    values(region, name).iter().sum()
}

/// The records of series that are taken.
pub(crate) fn records(region: &'static Region) -> u64 {
    let usage = region.usage();
    usage.records.taken / usage.record_len
}

/// Sweeps; each sweep counts as a minute's.
pub(crate) fn sweep(region: &'static Region, times: u64) {
    (0..times).for_each(|_| region.sweep());
}
