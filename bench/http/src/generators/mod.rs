//! The cost of making load for the generator: `talea load` beside wrk, on the same service.
//!
//! `generator.rs` says how each is started and what it says, `turns.rs` how they take turns,
//! `round.rs` what one measurement is, `memory.rs` what connections cost, `report.rs` what comes
//! out.

mod generator;
mod memory;
mod report;
mod round;
mod turns;

use anyhow::Result;

use self::memory::Memory;
use self::turns::Course;
use crate::arguments::Generators;
use crate::cores;

/// Runs the experiment.
pub(crate) async fn run(arguments: &Generators) -> Result<()> {
    let cores = cores::pair()?;
    let mut courses = Vec::new();
    for &connections in &arguments.connections {
        let course = Course::run(arguments, connections, cores).await?;
        report::print(&course);
        courses.push(course);
    }
    let verdicts: Vec<_> = courses.iter().map(Course::verdict).collect();
    report::print_verdicts(&verdicts);
    let memory = match arguments.open {
        0 => None,
        many => Some(Memory::measure(many, arguments.seconds, cores).await?),
    };
    memory.iter().for_each(report::print_memory);
    report::write(&arguments.results, &courses, &verdicts, memory.as_ref())?;
    eprintln!("written to {}", arguments.results.display());
    Ok(())
}
