//! The memory of connections: of a few, of many, and the difference.

use anyhow::{Result, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::Serialize;

use super::generator::Generator;
use super::round;
use super::turns::{ALL, TALEA, WRK};
use crate::cores::Pair;

/// The number of connections that many are compared with.
const FEW: u64 = 100;
/// Descriptors that a process needs beside its connections.
const BESIDE: u64 = 64;
/// Many connections take a while until all are open.
const AT_LEAST: u32 = 15;

/// The results by generator.
#[derive(Debug, Serialize)]
pub(super) struct Memory(pub(super) [Row; 2]);

/// Bytes of one generator.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) generator: &'static str,
    pub(super) connections: [u64; 2],
    /// The most memory that it had with so many.
    pub(super) peak: [u64; 2],
    pub(super) a_connection: f64,
}

impl Memory {
    /// Measures with so many connections.
    pub(super) async fn measure(many: u64, seconds: u32, cores: Pair) -> Result<Self> {
        allow(many + BESIDE)?;
        let seconds = seconds.max(AT_LEAST);
        let mut rows = Vec::new();
        for subject in [&ALL[WRK], &ALL[TALEA]] {
            let mut peak = [0; 2];
            for (peak, connections) in peak.iter_mut().zip([FEW, many]) {
                eprintln!("memory of {} with {connections} connections", subject.name);
                *peak = peak_of(subject.generator, connections, seconds, cores).await?;
            }
            rows.push(Row {
                generator: subject.name,
                connections: [FEW, many],
                peak,
                a_connection: (peak[1] as f64 - peak[0] as f64) / (many - FEW) as f64,
            });
        }
        let Ok(rows) = rows.try_into() else { bail!("each generator has a row") };
        Ok(Self(rows))
    }
}

async fn peak_of(generator: Generator, connections: u64, seconds: u32, cores: Pair) -> Result<u64> {
    Ok(round::measure_once(generator, connections, seconds, cores).await?.memory)
}

/// Lets this process, and its children, have so many descriptors.
fn allow(needed: u64) -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|soft| soft >= needed) {
        return Ok(());
    }
    let raised = Rlimit { current: limit.maximum.or(Some(needed)), maximum: limit.maximum };
    if limit.maximum.is_none_or(|hard| hard >= needed)
        && setrlimit(Resource::Nofile, raised).is_ok()
    {
        return Ok(());
    }
    bail!(
        "{needed} descriptors are needed, {} are allowed; raise the limit (ulimit -n), or ask for \
         fewer connections with --open",
        limit.maximum.unwrap_or_default()
    )
}
