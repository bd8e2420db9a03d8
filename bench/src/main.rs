//! Talea compared with other libraries, in one run: each does the same work in turns. Figures
//! are medians, and the ratios that the budgets are about.
//!
//! A *group* is one kind of work (`groups/`), a *subject* is a library that does it. `harness.rs`
//! lets subjects take turns, `measure.rs` makes one measurement. Beside the groups, `latencies.rs`
//! measures memory and errors of histograms, `instructions/` counts instructions, `scrape/`
//! measures an agent that serves a region, `http_layer/` the cost of metering a request. `report.rs` prints and writes the results.

mod agent;
mod arguments;
mod base;
mod calibrated_work;
mod groups;
mod harness;
mod histograms;
mod http_layer;
mod instructions;
mod latencies;
mod measure;
mod memory;
mod process;
mod randomness;
mod recorder;
mod report;
mod row;
mod scrape;
mod task;
mod thresholds;
mod verdict;
mod work;

use anyhow::Result;
use clap::Parser;

use crate::arguments::Arguments;
use crate::report::Results;

#[global_allocator]
static ALLOCATOR: densa_alloc::CountingAllocator = densa_alloc::CountingAllocator::system();

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let setting = arguments.setting();
    if let Some(task) = &arguments.measure {
        return process::answer(&task.run_here(&setting)?);
    }
    if let Some(case) = &arguments.http_layer {
        return http_layer::answer(case);
    }
    if let Some(library) = &arguments.latencies {
        return latencies::answer(library);
    }
    let chosen: Vec<_> =
        groups::ALL.iter().copied().filter(|group| arguments.asks_for(group.name)).collect();
    if let Some(base) = &arguments.base {
        report::print_pairs(&base::compare(base, &chosen, arguments.rounds, &setting)?);
        return Ok(());
    }
    let mut results = Results::open(&arguments.results, !arguments.only.is_empty())?;
    for group in chosen {
        let rows = harness::run(group, arguments.rounds, &setting)?;
        report::print(group, &rows);
        results.add(rows)?;
        if group.name == latencies::GROUP {
            let rows = latencies::run()?;
            report::print_latencies(&rows);
            results.add(rows)?;
        }
    }
    if arguments.asks_for(scrape::NAME) {
        let rows = scrape::run(arguments.rounds)?;
        report::print_scrape(&rows, &scrape::judge(&rows));
        results.add(rows)?;
    }
    if arguments.asks_for(http_layer::NAME) {
        let rows = http_layer::run(arguments.rounds)?;
        report::print_http_layer(&rows, &http_layer::judge(&rows));
        results.add(rows)?;
    }
    if arguments.asks_for(instructions::NAME) {
        let rows = instructions::count();
        report::print_instructions(&rows, &instructions::judge(&rows));
        results.add(rows)?;
    }
    eprintln!("written to {}", arguments.results.display());
    Ok(())
}
