//! One line of the table: a region filled with other series, and the operations in it.

use std::time::Duration;

use anyhow::{Result, ensure};
use talea::{
    Config, Counter, DynamicLabels, Error, Family, Gauge, Histogram, Labels, Metric, Opts,
    Registry, Seconds, UpDownCounter,
};

use crate::measure::{self, Cost};
use crate::randomness::Key;

pub(crate) const OPERATIONS: [&str; 4] = ["create", "increment", "collect", "wipe"];

/// The cost of each operation.
pub(crate) type Costs = [Cost; OPERATIONS.len()];

/// Does each operation once, and checks its effect.
pub(super) fn measure(own: u64, others: u64) -> Result<Costs> {
    // The same size for any number of others.
    let registry = Registry::with_config(Config::with_len(1 << 30))?;
    fill_with_others(&registry, others)?;
    let is_own = |name: &str| name.starts_with("own_");
    let collect = || registry.snapshot_of(is_own).to_text();

    let (create, done) = measure::once(1, || record_each(&registry, own));
    done?;
    let (increment, done) = measure::once(1, || record_each(&registry, own));
    done?;
    let (collecting, text) = measure::once(1, collect);
    let (wipe, is_wiped) = measure::once(1, || registry.wipe(is_own));

    let shown = talea_parse::text(&text)?;
    let counters = shown.iter().filter(|sample| sample.name.starts_with("own_counter_"));
    let counted: f64 = counters.map(|sample| sample.value).sum();
    ensure!(
        counted == 2.0 * own as f64,
        "{own} counters were incremented twice and show {counted}"
    );
    // A counter, a gauge, an up-down counter, and the 17 samples of a histogram.
    ensure!(shown.len() as u64 == 20 * own, "{own} of each type show {} samples", shown.len());
    let left = talea_parse::text(&collect())?.len() as u64;
    ensure!(
        is_wiped && left == own,
        "{left} samples are left, {own} up-down counters were expected"
    );
    Ok([create, increment, collecting, wipe])
}

#[derive(Labels)]
struct By<'a> {
    key: &'a str,
}

/// Fills a few families in turn, as libraries that are independent of each other do.
fn fill_with_others(registry: &Registry, series: u64) -> Result<()> {
    let family = |n: u64| {
        let name = format!("others_{n}");
        registry.register(Opts::new(&name, "Not ours.").limit(series))
    };
    let families = (0..4).map(family).collect::<Result<Vec<Family<By<'static>, Counter>>, _>>()?;
    for (n, family) in (0..series).zip(families.iter().cycle()) {
        family.with(By { key: Key::of(n).as_str() }).inc();
    }
    let dropped: u64 = families.iter().map(Family::dropped).sum();
    ensure!(dropped == 0, "{dropped} of {series} series found no room");
    Ok(())
}

/// Makes `families` of each type, or finds them by their names, and records once in each.
fn record_each(registry: &Registry, families: u64) -> Result<(), Error> {
    const OF: [&str; 1] = ["us"];
    for n in 0..families {
        own::<Counter>(registry, &format!("own_counter_{n}"))?.with_values(&OF).inc();
        own::<Gauge>(registry, &format!("own_gauge_{n}"))?.with_values(&OF).inc();
        let histogram = own::<Histogram<Seconds>>(registry, &format!("own_histogram_{n}"))?;
        histogram.with_values(&OF).observe(Duration::from_secs(1));
        own::<UpDownCounter>(registry, &format!("own_open_{n}"))?.with_values(&OF).inc();
    }
    Ok(())
}

fn own<M: Metric>(registry: &Registry, name: &str) -> Result<Family<DynamicLabels, M>, Error> {
    registry.family(Opts::new(name, "Ours."), &["of"])
}
