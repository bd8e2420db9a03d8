//! Talea beside its peers, in one run: the same work done by each, alternating,
//! medians, and the ratios that the budgets are about.
//!
//! A *group* is one kind of work (`groups/`), a *subject* is a library that does
//! it. `harness.rs` says how they take turns, `measure.rs` what one measurement
//! is, `latencies.rs` what histograms take and tell, `instructions/` what is counted beside
//! that, `store_table/` what Talea alone does, `scrape/` what it takes to
//! serve a region from outside, `http_layer/` what a request costs more, `report.rs` what comes
//! out.

mod arguments;
mod base;
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
mod report;
mod scrape;
mod store_table;
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
        return process::answer(task, &setting);
    }
    let chosen = groups::chosen(&arguments.only);
    if let Some(beside) = arguments.store_table {
        return store_table::answer(beside);
    }
    if let Some(case) = arguments.http_layer {
        return http_layer::answer(case);
    }
    if let Some(library) = arguments.latencies {
        return latencies::answer(library);
    }
    if let Some(base) = &arguments.base {
        return base::compare(base, &chosen, arguments.rounds, &setting);
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
    if arguments.asks_for(store_table::NAME) {
        let lines = store_table::run(arguments.rounds)?;
        report::print_store_table(&lines);
        results.add(store_table::rows(&lines))?;
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
