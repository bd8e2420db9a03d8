//! What metering adds to a call in process, by door: tonic, actix-web and reqwest, each bare, with Talea's meter, and
//! with a meter that its users take today. `scripts/bench-doors` runs it; `bench/README.md` has results.
//!
//! Subjects take turns; each batch of a subject has a batch of the bare door beside it, before it or after it by turns.
//! What it adds is the median of the differences. The budgets: six times two readings of the clock, and a fifth of what
//! the other meter adds.

mod actix;
mod outgoing;
mod tonic_service;

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use talea_region::thread_cpu_nanos;

/// A door with a meter or without, which makes a number of calls.
struct Subject {
    name: &'static str,
    calls: Box<dyn FnMut(u64)>,
}

/// The subjects of a door: bare, Talea's, another one.
struct Door {
    name: &'static str,
    subjects: [Subject; 3],
}

const ROUNDS: usize = 401;
const BATCH: Duration = Duration::from_millis(2);

impl Subject {
    fn new(name: &'static str, calls: impl FnMut(u64) + 'static) -> Self {
        Self { name, calls: Box::new(calls) }
    }

    /// Nanoseconds of CPU time a call, in which other programs have no part.
    fn measure(&mut self, calls: u64) -> f64 {
        let start = thread_cpu_nanos();
        (self.calls)(calls);
        (thread_cpu_nanos() - start) as f64 / calls as f64
    }

    /// The first calls make their series.
    fn warm_up(&mut self) {
        self.measure(1_000);
    }

    /// The calls of a batch.
    fn calibrate(&mut self) -> u64 {
        self.warm_up();
        (BATCH.as_nanos() as f64 / self.measure(1_000)).max(1.0) as u64
    }
}

impl Door {
    /// What a call takes bare, and what each meter adds: medians, in nanoseconds.
    fn measure(&mut self) -> (f64, [f64; 2]) {
        let [bare, metered @ ..] = &mut self.subjects;
        let calls = bare.calibrate();
        metered.iter_mut().for_each(|subject| subject.warm_up());
        let (mut alone, mut added) = (Vec::new(), [Vec::new(), Vec::new()]);
        for round in 0..ROUNDS {
            for (subject, added) in metered.iter_mut().zip(&mut added) {
                let (with, without) = if round % 2 == 0 {
                    let without = bare.measure(calls);
                    (subject.measure(calls), without)
                } else {
                    (subject.measure(calls), bare.measure(calls))
                };
                alone.push(without);
                added.push(with - without);
            }
        }
        (median(alone), added.map(median))
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Two readings of the clock of Talea's meters, in nanoseconds.
fn two_clock_reads() -> f64 {
    let mut pairs = Subject::new("two clock reads", |calls| {
        for _ in 0..calls {
            black_box(fastant::Instant::now().elapsed());
        }
    });
    let calls = pairs.calibrate();
    median((0..ROUNDS).map(|_| pairs.measure(calls)).collect())
}

fn main() -> Result<ExitCode> {
    let clock = two_clock_reads();
    println!("two clock reads: {clock:.1} ns");
    println!(
        "{:<10} {:>9}  {:<28} {:>9} {:>12} {:>8}",
        "door", "bare, ns", "meter", "adds, ns", "clock reads", "of other"
    );
    let mut is_met = true;
    for mut door in [tonic_service::door()?, actix::door()?, outgoing::door()?] {
        let (bare, added) = door.measure();
        for (subject, ns) in door.subjects[1..].iter().zip(added) {
            let (pairs, share) = (ns / clock, ns / added[1]);
            println!(
                "{:<10} {bare:>9.0}  {:<28} {ns:>9.0} {pairs:>12.1} {share:>8.2}",
                door.name, subject.name
            );
        }
        is_met &= added[0] <= 6.0 * clock && added[0] <= added[1] / 5.0;
    }
    println!("budgets, 6 clock reads and a fifth: {}", if is_met { "met" } else { "missed" });
    Ok(if is_met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
