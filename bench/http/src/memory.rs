//! The memory of connections: of a few, of many, and the difference.

use anyhow::{Result, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::Serialize;

use crate::comparison::{GENERATORS, TALEA, WRK};
use crate::generator::Load;
use crate::measurement;

/// The number of connections that many are compared with.
const FEW: u64 = 100;
/// Descriptors that a process needs beside its connections.
const BESIDE: u64 = 64;
/// Seconds of load: many connections take a while until all are open.
const AT_LEAST: u32 = 15;

/// Bytes of one generator.
#[derive(Debug, Serialize)]
pub(crate) struct MemoryRow {
    pub(crate) generator: &'static str,
    pub(crate) connections: [u64; 2],
    /// The most memory that it had with so many.
    pub(crate) peak: [u64; 2],
    pub(crate) a_connection: f64,
}

/// Measures wrk and `talea load` with a few connections and with many.
pub(crate) async fn measure(many: u64, load: Load) -> Result<Vec<MemoryRow>> {
    allow(many + BESIDE)?;
    let seconds = load.seconds.max(AT_LEAST);
    let mut rows = Vec::new();
    for place in [WRK, TALEA] {
        let (name, generator) = GENERATORS[place];
        let mut peak = [0; 2];
        for (peak, connections) in peak.iter_mut().zip([FEW, many]) {
            eprintln!("memory of {name} with {connections} connections");
            let load = Load { connections, seconds, ..load };
            *peak = measurement::measure(generator, load).await?.load.memory;
        }
        let a_connection = (peak[1] as f64 - peak[0] as f64) / (many - FEW) as f64;
        rows.push(MemoryRow { generator: name, connections: [FEW, many], peak, a_connection });
    }
    Ok(rows)
}

/// Allows this process and its children `needed` descriptors.
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
