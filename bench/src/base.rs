//! Ourselves beside an earlier build of ourselves.

use std::path::Path;

use anyhow::Result;

use crate::harness::median;
use crate::process;
use crate::report;
use crate::work::{Group, Setting};

/// How Talea did in both builds.
pub(crate) struct Pair {
    pub(crate) bench: String,
    pub(crate) threads: usize,
    pub(crate) subject: &'static str,
    pub(crate) now_ns: f64,
    pub(crate) base_ns: f64,
    /// The median of each round's ratio, now to base.
    pub(crate) ratio: f64,
}

/// Measures Talea in this build and in the base, one after the other, each time
/// in a new process, and prints the paired ratios. What the base does not know
/// is left out.
pub(crate) fn compare(
    base: &Path,
    chosen: &[&'static Group],
    rounds: u32,
    setting: &Setting,
) -> Result<()> {
    let own = std::env::current_exe()?;
    let mut pairs = Vec::new();
    for group in chosen {
        let ours = group.subjects.iter().filter(|subject| subject.name.starts_with("talea"));
        for (subject, &threads) in ours.flat_map(|s| group.threads.iter().map(move |t| (s, t))) {
            eprintln!("{}, {}, threads: {threads}", group.name, subject.name);
            let measure =
                |of: &Path| process::measure_in(of, group.name, subject.name, threads, setting);
            if let Err(unknown) = measure(base) {
                eprintln!("left out: {unknown:#}");
                continue;
            }
            let mut costs = Vec::new();
            for round in 0..rounds {
                // The first one changes from round to round.
                costs.push(if round % 2 == 0 {
                    let now = measure(&own)?.ns;
                    (now, measure(base)?.ns)
                } else {
                    let base = measure(base)?.ns;
                    (measure(&own)?.ns, base)
                });
            }
            pairs.push(Pair {
                bench: process::bench_name(group, setting),
                threads,
                subject: subject.name,
                now_ns: median(costs.iter().map(|&(now, _)| now)),
                base_ns: median(costs.iter().map(|&(_, base)| base)),
                ratio: median(costs.iter().map(|&(now, base)| now / base)),
            });
        }
    }
    report::print_pairs(&pairs);
    Ok(())
}
