//! The cost of metering for a service: the experiment of servant-prometheus, with the same service
//! in several variants.

mod budget;
mod report;
mod variants;

use anyhow::Result;

use self::report::Results;
use self::variants::VARIANTS;
use crate::arguments::Metering;
use crate::cores;
use crate::generator::{Generator, Load};
use crate::{measurement, turns};

/// Connections that wrk keeps busy.
const CONNECTIONS: u64 = 30;

/// Runs the experiment: pinned, which the budgets are about, and as the reference ran it.
pub(crate) async fn run(arguments: &Metering) -> Result<()> {
    let seconds = arguments.seconds;
    let load = |threads, cores| Load { connections: CONNECTIONS, threads, seconds, cores };
    let setups = [
        ("pinned", arguments.rounds, load(1, Some(cores::pair()?))),
        ("as the reference ran it", arguments.reference_rounds, load(2, None)),
    ];
    let mut all = Vec::new();
    for (setup, rounds, load) in setups.into_iter().filter(|(_, rounds, _)| *rounds > 0) {
        let names = VARIANTS.map(|(name, _)| name);
        let measure = async |variant: usize| {
            measurement::measure(VARIANTS[variant].1, Generator::Wrk, load).await
        };
        let found = turns::run(setup, rounds, &names, measure).await?;
        let results = Results { setup, rounds, seconds, found };
        report::print(&results);
        all.push(results);
    }
    let verdicts = all.first().map(|pinned| budget::judge(&pinned.found)).unwrap_or_default();
    report::print_verdicts(&verdicts);
    report::write(&arguments.results, &all, &verdicts)
}
