//! The cost of the boundary: calls in C and the same ones in Rust, alternating, on a kept handle and
//! by two label values.
//!
//! Run `cargo test --release -p talea-ffi --test cost -- --ignored --nocapture`.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

mod support;

use std::hint::black_box;
use std::process::Command;
use std::time::Instant;

use support::{Linked, compile, here, run};
use talea::{Bytes, Counter, Histogram, Opts, Registry};
use tempfile::TempDir;

const ROUNDS: usize = 9;
const TIMES: u32 = 5_000_000;

fn nanoseconds(mut call: impl FnMut()) -> f64 {
    let began = Instant::now();
    (0..TIMES).for_each(|_| call());
    began.elapsed().as_secs_f64() * 1e9 / f64::from(TIMES)
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

#[test]
#[ignore = "it measures, which needs a release build and a quiet machine"]
fn the_boundary_costs_at_most_fifteen_nanoseconds() {
    let folder = TempDir::new().unwrap();
    let program = compile(&here().join("tests/c/cost.c"), folder.path(), Linked::Shared, &[]);
    let c = |what: &str| -> f64 {
        let said = run(Command::new(&program).args([what, &TIMES.to_string()]));
        said.trim().parse().unwrap()
    };
    let registry = Registry::for_test().unwrap();
    let labels = ["method", "country"];
    let values = ["card", "pe"];
    let opts = Opts::new("orders", "Orders.");
    let orders = registry.family::<Counter>(opts, &labels).unwrap();
    let order = orders.with_values(&values).keep();
    let all: Counter = registry.register(Opts::new("all", "All.")).unwrap();
    let pricing =
        registry.family::<Histogram<Bytes>>(Opts::new("pricing", "Prices."), &labels).unwrap();
    let price = pricing.with_values(&values).keep();
    let rust: [(&str, &dyn Fn() -> f64); 5] = [
        ("kept", &|| nanoseconds(|| black_box(&order).inc())),
        ("kept-striped", &|| nanoseconds(|| black_box(&all).inc())),
        ("two-values", &|| nanoseconds(|| black_box(&orders).with_values(&values).inc())),
        ("observe-kept", &|| nanoseconds(|| black_box(&price).observe(20_000_000))),
        ("observe-two-values", &|| {
            nanoseconds(|| black_box(&pricing).with_values(&values).observe(20_000_000))
        }),
    ];
    for (what, rust) in rust {
        let rounds: Vec<(f64, f64)> = (0..ROUNDS).map(|_| (c(what), rust())).collect();
        let in_c = median(rounds.iter().map(|round| round.0).collect());
        let in_rust = median(rounds.iter().map(|round| round.1).collect());
        println!("{what:20} C {in_c:6.2} ns, Rust {in_rust:6.2} ns, {:+.2}", in_c - in_rust);
        // A call across a library, its checks and its guard are some nanoseconds.
        assert!(in_c < in_rust + 15.0, "{what}: {in_c} ns, in Rust {in_rust}");
    }
    println!("observe-double       C {:6.2} ns", c("observe-double"));
}
