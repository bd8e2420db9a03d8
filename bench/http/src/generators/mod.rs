//! The cost of making load for the generator: `talea load` beside wrk, on the same service.

mod comparison;
mod memory;
mod report;

use anyhow::Result;

use self::comparison::Comparison;
use crate::arguments::Generators;
use crate::cores;
use crate::generator::Load;

pub(crate) async fn run(arguments: &Generators) -> Result<()> {
    let Generators { rounds, seconds, .. } = *arguments;
    let load = Load { connections: 0, threads: 1, seconds, cores: Some(cores::pair()?) };
    let mut all = Vec::new();
    for connections in [50, 500] {
        let comparison = Comparison::measure(Load { connections, ..load }, rounds).await?;
        report::print(&comparison);
        all.push(comparison);
    }
    let verdicts: Vec<_> = all.iter().map(Comparison::verdict).collect();
    report::print_verdicts(&verdicts);
    let memory = match arguments.open {
        0 => Vec::new(),
        many => memory::measure(many, load).await?,
    };
    report::print_memory(&memory);
    report::write(&arguments.results, &all, &verdicts, &memory)
}
