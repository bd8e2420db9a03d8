//! Talea in this build compared with an earlier build.

use std::path::Path;

use anyhow::Result;

use crate::task::{self, Task};
use crate::work::{Group, Setting};
use talea_statistics::median;

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
/// in a new process. Subjects that the base does not know are left out.
pub(crate) fn compare(
    base: &Path,
    chosen: &[&'static Group],
    rounds: u32,
    setting: &Setting,
) -> Result<Vec<Pair>> {
    let mut pairs = Vec::new();
    for &group in chosen {
        let ours = group.subjects.iter().filter(|subject| subject.name.starts_with("talea"));
        for (subject, &threads) in ours.flat_map(|s| group.threads.iter().map(move |t| (s, t))) {
            eprintln!("{}, {}, threads: {threads}", group.name, subject.name);
            let task = Task::new(group, subject, threads);
            if let Err(unknown) = task.run_in(base, setting) {
                eprintln!("left out: {unknown:#}");
                continue;
            }
            let mut costs = Vec::new();
            for round in 0..rounds {
                // The builds take turns in being first.
                costs.push(if round % 2 == 0 {
                    let now = task.run_apart(setting)?.ns;
                    (now, task.run_in(base, setting)?.ns)
                } else {
                    let base = task.run_in(base, setting)?.ns;
                    (task.run_apart(setting)?.ns, base)
                });
            }
            pairs.push(Pair {
                bench: task::bench_name(group, setting),
                threads,
                subject: subject.name,
                now_ns: median(costs.iter().map(|&(now, _)| now)),
                base_ns: median(costs.iter().map(|&(_, base)| base)),
                ratio: median(costs.iter().map(|&(now, base)| now / base)),
            });
        }
    }
    Ok(pairs)
}
