//! A scrape of a million series in twenty families, by an agent that reads their region from
//! outside and answers by HTTP, beside what the text alone takes where the series are.
//!
//! The region is a file that this process fills. In each round it makes the text of it twice,
//! as the groups `encode-…` do and of a snapshot that is there; and scrapes `talea serve`,
//! which is built with this program, as a client does that throws away what it reads.

mod agent;
mod filled;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};
use talea::{Escaping, Format};

use self::agent::Agent;
use self::filled::Filled;
use crate::harness::median;
use crate::measure;
use crate::report::Row;
use crate::verdict::Verdict;

/// How the command line and the results call it.
pub(crate) const NAME: &str = "scrape-1m";

pub(crate) const NOTE: &str = "ns: time for all of it. cpu is what the agent's process takes for \
a scrape, idle the memory that it has before the first, peak the most that it ever had.";

pub(crate) const FAMILIES: u64 = 20;
const SERIES: u64 = 1_000_000;
/// Of each round, one after the other.
const TIMES: u32 = 5;

/// A scrape from outside takes at most so many times what the text takes inside.
const MOST_TIMES: f64 = 3.0;
/// Bytes of memory that scrapes may take.
const MOST_BYTES: f64 = 64e6;

/// The resources that an agent uses besides time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Takes {
    /// Of a processor, in nanoseconds.
    pub(crate) cpu_ns: f64,
    /// Bytes of memory before the first scrape.
    pub(crate) idle_bytes: f64,
    /// Bytes of memory at most, ever.
    pub(crate) peak_bytes: f64,
    /// Bytes of what is answered.
    pub(crate) answer_bytes: f64,
}

/// The measurements.
#[derive(Default)]
struct Times {
    encode: Vec<f64>,
    text: Vec<f64>,
    scrape: Vec<f64>,
}

/// Measures it, with series in the order of their families and with those of all families
/// among each other.
pub(crate) fn run(rounds: u32) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (bench, is_mixed) in [(NAME.to_owned(), false), (format!("{NAME}/mixed"), true)] {
        rows.extend(measure(&bench, Filled::new(SERIES, is_mixed)?, rounds)?);
    }
    Ok(rows)
}

fn measure(bench: &str, filled: Filled, rounds: u32) -> Result<Vec<Row>> {
    let agent = Agent::serve(filled.path())?;
    let idle_bytes = agent.peak_bytes()?;
    let (registry, snapshot) = (filled.registry(), filled.registry().snapshot());
    let mut scraper = registry.scraper();
    let mut memory = vec![0; 256 << 10];

    let mut answer = Vec::new();
    agent.scrape(&mut memory, |bytes| answer.extend_from_slice(bytes))?;
    // The agent's own metrics come beside them.
    let ours = |text: &[u8]| text.split(|&byte| byte == b'\n').filter(|line| is_ours(line)).count();
    let (inside, outside) = (ours(scraper.scrape()), ours(&answer));
    ensure!(inside == outside, "inside there are {inside} samples and outside {outside}");
    ensure!(inside as u64 >= SERIES.min(filled.series()), "{inside} samples are too few");

    let mut times = Times::default();
    let before = agent.cpu_ns()?;
    for round in 1..=rounds {
        eprintln!("{bench}, round {round} of {rounds}");
        for _ in 0..TIMES {
            times.encode.push(measure::once(1, || scraper.scrape().len()).0.ns);
            let (text, _) = measure::once(1, || {
                let chunks = snapshot.chunks(Format::Text, Escaping::default(), 64 << 10);
                chunks.map(|chunk| chunk.len()).sum::<usize>()
            });
            times.text.push(text.ns);
            let (scrape, done) = measure::once(1, || agent.scrape(&mut memory, |_| {}));
            done?;
            times.scrape.push(scrape.ns);
        }
    }
    let takes = Takes {
        cpu_ns: (agent.cpu_ns()? - before) / f64::from(rounds * TIMES),
        idle_bytes,
        peak_bytes: agent.peak_bytes()?,
        answer_bytes: answer.len() as f64,
    };
    Ok(rows(bench, &times, takes))
}

fn is_ours(line: &[u8]) -> bool {
    line.starts_with(filled::PREFIX.as_bytes())
}

fn rows(bench: &str, times: &Times, takes: Takes) -> Vec<Row> {
    let scrape = median(times.scrape.iter().copied());
    let row = |subject: &str, times: &[f64], takes| {
        let ns = median(times.iter().copied());
        Row {
            bench: bench.to_owned(),
            threads: 1,
            subject: subject.to_owned(),
            ns: Some(ns),
            allocs_per_op: None,
            bytes_per_op: None,
            ratio_to_talea: Some(ns / scrape),
            instructions: None,
            latencies: None,
            more: None,
            takes,
        }
    };
    vec![
        row("talea-serve", &times.scrape, Some(takes)),
        row("encode", &times.encode, None),
        row("text", &times.text, None),
    ]
}

/// Holds what was found against what is asked.
pub(crate) fn judge(rows: &[Row]) -> Vec<Verdict> {
    let of = |bench: &str, subject: &str| {
        rows.iter().find(|row| row.bench == bench && row.subject == subject)
    };
    let mut verdicts = Vec::new();
    for served in rows.iter().filter(|row| row.takes.is_some()) {
        let (Some(ns), Some(takes)) = (served.ns, served.takes) else { continue };
        if let Some(encode) = of(&served.bench, "encode").and_then(|row| row.ns) {
            let budget = "a scrape from outside, in times of the text inside";
            verdicts.push(Verdict { budget, found: ns / encode, limit: MOST_TIMES });
        }
        let budget = "memory that it takes for that, in bytes";
        let found = takes.peak_bytes - takes.idle_bytes;
        verdicts.push(Verdict { budget, found, limit: MOST_BYTES });
    }
    verdicts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scrape_is_held_against_the_text_and_the_memory() {
        let times = Times { encode: vec![2.0], text: vec![1.0], scrape: vec![5.0, 7.0, 6.0] };
        let takes = Takes { cpu_ns: 1.0, idle_bytes: 8e6, peak_bytes: 73e6, answer_bytes: 1.0 };
        let rows = rows("x", &times, takes);
        let [time, memory] = &judge(&rows)[..] else { panic!("two verdicts were expected") };
        assert!(time.found == 3.0 && time.is_met());
        assert!(!memory.is_met());
    }
}
