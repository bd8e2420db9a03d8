//! A scrape of a million series in twenty families by an agent, which reads their region from
//! outside and answers by HTTP, beside the time of the text alone in the process that has them.
//!
//! The region is a file that this process fills. In each round this process makes the text from
//! the registry, as the groups `encode-…` do, and from an existing snapshot. Then it scrapes
//! `talea serve`, which is built with this program, and discards the answer.

mod agent;
mod filled_region;

use anyhow::{Result, ensure};
use talea::{Escaping, Format};

use self::filled_region::FilledRegion;
use crate::agent::Agent;
use crate::measure;
use crate::row::{AgentCost, Row};
use crate::verdict::Verdict;
use talea_statistics::median;

pub(crate) const NAME: &str = "scrape-1m";

pub(crate) const NOTE: &str = "ms: time of the whole scrape or text. cpu ms: CPU time of the agent's \
process for a scrape. idle MB: its memory before the first scrape; peak MB: the most so far.";

const SERIES: u64 = 1_000_000;
/// Measurements in a round, one after the other.
const TIMES: u32 = 5;

/// The budget of a scrape from outside, as a multiple of the time of the text inside.
const MOST_TIMES: f64 = 3.0;
/// The budget of scrapes, in bytes of memory.
const MOST_BYTES: f64 = 64e6;

/// The measurements, in nanoseconds.
#[derive(Default)]
struct Times {
    encode: Vec<f64>,
    text: Vec<f64>,
    scrape: Vec<f64>,
}

/// Measures with series in the order of their families, and with the series of all families
/// interleaved.
pub(crate) fn run(rounds: u32) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (bench, is_mixed) in [(NAME.to_owned(), false), (format!("{NAME}/mixed"), true)] {
        rows.extend(measure(&bench, FilledRegion::new(SERIES, is_mixed)?, rounds)?);
    }
    Ok(rows)
}

fn measure(bench: &str, filled: FilledRegion, rounds: u32) -> Result<Vec<Row>> {
    let agent = Agent::serve_with(filled.path(), &[])?;
    let idle_bytes = agent.peak_bytes()?;
    let (registry, snapshot) = (filled.registry(), filled.registry().snapshot());
    let mut scraper = registry.scraper();
    let mut memory = vec![0; 256 << 10];

    let mut answer = Vec::new();
    agent.scrape(&mut memory, |bytes| answer.extend_from_slice(bytes))?;
    // The agent's answer has metrics of its own too.
    let ours = |text: &[u8]| text.split(|&byte| byte == b'\n').filter(|line| is_ours(line)).count();
    let (inside, outside) = (ours(scraper.scrape()), ours(&answer));
    ensure!(inside == outside, "inside there are {inside} samples and outside {outside}");
    ensure!(inside as u64 >= SERIES, "{inside} samples are too few");

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
    let takes = AgentCost {
        cpu_ns: (agent.cpu_ns()? - before) / f64::from(rounds * TIMES),
        idle_bytes,
        peak_bytes: agent.peak_bytes()?,
        answer_bytes: answer.len() as f64,
    };
    Ok(rows(bench, &times, takes))
}

fn is_ours(line: &[u8]) -> bool {
    line.starts_with(filled_region::PREFIX.as_bytes())
}

fn rows(bench: &str, times: &Times, takes: AgentCost) -> Vec<Row> {
    let scrape = median(times.scrape.iter().copied());
    let row = |subject: &str, times: &[f64], takes| {
        let ns = median(times.iter().copied());
        Row { ns: Some(ns), ratio_to_talea: Some(ns / scrape), takes, ..Row::new(bench, subject) }
    };
    vec![
        row("talea-serve", &times.scrape, Some(takes)),
        row("encode", &times.encode, None),
        row("text", &times.text, None),
    ]
}

pub(crate) fn judge(rows: &[Row]) -> Vec<Verdict> {
    let encode =
        |bench: &str| rows.iter().find(|row| row.bench == bench && row.subject == "encode")?.ns;
    let mut verdicts = Vec::new();
    for served in rows {
        let (Some(ns), Some(takes)) = (served.ns, served.takes) else { continue };
        if let Some(encode) = encode(&served.bench) {
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
        let takes = AgentCost { cpu_ns: 1.0, idle_bytes: 8e6, peak_bytes: 73e6, answer_bytes: 1.0 };
        let rows = rows("x", &times, takes);
        let [time, memory] = &judge(&rows)[..] else { panic!("two verdicts were expected") };
        assert!(time.found == 3.0 && time.is_met());
        assert!(!memory.is_met());
    }
}
