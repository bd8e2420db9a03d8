//! Claims about the memory that histograms take: those of docs/explanations/memory.md.

use std::time::Duration;

use talea::{
    Bytes, Config, DynamicLabels, Family, Floats, Histogram, Opts, Registry, Seconds, Usage,
};

/// CPUs whose planes are in use, and schemas, of the table.
const CPUS: [u64; 4] = [2, 16, 64, 256];
const SCHEMAS: [i8; 3] = [3, 4, 5];

/// A region for so many CPUs, and what endpoints observe.
struct Stage {
    registry: Registry,
    durations: Family<DynamicLabels, Histogram<Seconds>>,
    sizes: Family<DynamicLabels, Histogram<Bytes>>,
}

impl Stage {
    fn new(cpus: u64, schema: i8) -> Self {
        let config = Config { planes: cpus, ..Config::with_len(64 << 20) };
        let registry = Registry::with_config(config).unwrap();
        // Endpoints are declared, so their labels are as good as fixed.
        let opts = |name| Opts::new(name, "Some.").schema(schema).max_buckets(400).striped(true);
        let durations = registry.family(opts("duration"), &["endpoint"]).unwrap();
        let sizes = registry.family(opts("response_size"), &["endpoint"]).unwrap();
        Self { registry, durations, sizes }
    }

    /// Has an endpoint answer: durations of a median of 2 ms and sizes of 4 KiB, both
    /// log-normal with a deviation of a factor e.
    fn observe(&self, endpoint: usize, times: usize) {
        let endpoint = endpoint.to_string();
        let durations = self.durations.with_values(&[&endpoint]);
        let sizes = self.sizes.with_values(&[&endpoint]);
        for factor in log_normal().take(times) {
            durations.observe(Duration::from_nanos((2e6 * factor) as u64));
            sizes.observe((4096.0 * factor) as u64);
        }
    }
}

/// Factors by a fixed generator: twelve evenly spread numbers sum up to a normal one.
fn log_normal() -> impl Iterator<Item = f64> {
    let mut state = 1_u64;
    let mut even = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    std::iter::repeat_with(move || ((0..12).map(|_| even()).sum::<f64>() - 6.0).exp())
}

/// Bytes of the region that are taken where each CPU has its plane, beside the shared one, which has no
/// lazy cells.
fn bytes(usage: &Usage, cpus: u64) -> u64 {
    let once = usage.records.taken + usage.text.taken + usage.single_cells.taken;
    once + usage.striped_cells.taken * (cpus + 1) + usage.lazy_cells.taken * cpus
}

#[test]
fn an_endpoint_costs_what_the_docs_say() {
    let docs = include_str!("../../../../docs/explanations/memory.md");
    let rows = SCHEMAS.map(|schema| {
        let costs = CPUS.map(|cpus| {
            let stage = Stage::new(cpus, schema);
            let before = bytes(&stage.registry.usage(), cpus);
            stage.observe(0, 10_000);
            (bytes(&stage.registry.usage(), cpus) - before).div_ceil(1000)
        });
        format!("| {schema} | {} |", costs.map(|cost| cost.to_string()).join(" | "))
    });
    assert!(
        docs.contains(&rows.join("\n")),
        "docs/explanations/memory.md does not have\n{}",
        rows.join("\n")
    );
}

#[test]
fn a_hundred_endpoints_fit_the_default_region_on_64_cpus() {
    for schema in SCHEMAS {
        let stage = Stage::new(64, schema);
        (0..100).for_each(|endpoint| stage.observe(endpoint, 1000));
        let snapshot = stage.registry.snapshot();
        for name in ["duration_seconds", "response_size_bytes"] {
            let family = snapshot.family(name).unwrap();
            assert_eq!((family.dropped(), family.series().count()), (0, 100), "{name}");
            for series in family.series() {
                let talea::Value::Histogram(found) = series.value() else { panic!("{series:?}") };
                assert_eq!(found.count(), 1000, "{series:?}");
                let native = found.native().unwrap();
                assert_eq!(native.schema(), schema, "no octave had to do without a segment");
            }
        }
        let usage = stage.registry.usage();
        let all = bytes(&usage, 64);
        let plane = usage.striped_cells.taken + usage.lazy_cells.taken;
        println!("schema {schema}: {all} bytes, {plane} a plane");
        assert!(all < 64 << 20, "schema {schema}: {all} bytes");
    }
}

#[test]
fn a_histogram_of_floats_takes_memory_for_the_octaves_that_it_has() {
    let registry = Registry::for_test().unwrap();
    let buckets = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];
    let opts = Opts::new("pricing", "Time to price a basket.").buckets(&buckets);
    let all: Family<DynamicLabels, Histogram<Floats>> =
        registry.family(opts, &["country"]).unwrap();
    let taken = |country: &str, values: &[f64]| {
        let before = registry.usage().single_cells.taken;
        values.iter().for_each(|&value| all.with_values(&[country]).observe(value));
        registry.usage().single_cells.taken - before
    };
    let first = taken("pe", &[1.0]);
    assert!(first <= 720, "{first} bytes");
    // All of these octaves are among the first 16.
    let next = taken("pe", &[0.001, 0.01, 0.1, 0.5, 3.0, 12.0]);
    assert!(next <= 6 * 160, "{next} bytes");
    // Any other one is in a block that is made for it and its neighbours.
    let far = taken("pe", &[1e6]);
    assert!((16 * 8..=16 * 8 + 160).contains(&far), "{far} bytes");
    let near_that = taken("pe", &[3e6, -1.0]);
    assert!(near_that <= 16 * 8 + 2 * 160, "{near_that} bytes");
    let found = registry.snapshot().expect_histogram("pricing", &[("country", "pe")]);
    assert_eq!(found.count(), 10);
}
