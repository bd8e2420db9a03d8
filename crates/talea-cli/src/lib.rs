//! The `talea` program as a library, module by module. Public is what its tests start in their own
//! process.
//!
//! - `study`: the load cases against a service in a child process, with the service's own
//!   metrics sampled while each case runs.
//! - `compare`: two or more variants of a service beside each other, as ratios with intervals.
//! - `report`: the results of a study, as a table, as JSON and as one HTML page.
//! - `check`: a text of metrics, held against its format.
//! - [`web`]: the agent's web configuration: TLS, passwords, headers.
//! - `inspect`: the region that a service counts in, read from outside.
//! - `upkeep`: `wipe` and `expire`, for such a region.
//! - [`serve`]: the agent, which serves any number of regions as one page.
//! - `history`: what an agent's page showed, by seconds and minutes; `postmortem` reads the last minute.
//! - `live`: what happens from one reading to the next; `page` shows it in a browser, `top` in a terminal.
//!
//! The load itself is the crate `talea-load`.
//!
//! The way of a study: cases → target (the child process) → for each case reset, baseline, load
//! and samples → case results → report. Client numbers come from `talea-load` alone, server numbers from
//! the target's metrics alone; only `report` sets them side by side.

// Without `talea top`, its arguments and readings are unused.
#[cfg_attr(not(feature = "top"), allow(dead_code, unused_imports))]
mod arguments;
mod check;
mod compare;
#[cfg(feature = "completions")]
mod completions;
pub mod descriptors;
pub mod ending;
mod families;
#[cfg(target_os = "linux")]
mod history;
#[cfg(target_os = "linux")]
mod inspect;
#[cfg(target_os = "linux")]
#[cfg_attr(not(feature = "top"), allow(dead_code, unused_imports))]
mod live;
mod live_page;
mod load_command;
mod machine;
#[cfg(target_os = "linux")]
mod page;
#[cfg(target_os = "linux")]
mod postmortem;
#[cfg(target_os = "linux")]
mod printable;
mod progress;
#[cfg(target_os = "linux")]
mod region_command;
mod region_place;
mod report;
mod screen;
#[cfg(target_os = "linux")]
pub mod serve;
mod study;
mod study_command;
#[cfg(all(target_os = "linux", feature = "top"))]
mod top;
#[cfg(target_os = "linux")]
mod upkeep;
pub mod web;

use std::process::ExitCode;

use clap::Parser;
use talea_load::stop::Stop;

use self::arguments::{Arguments, Command};
use self::ending::Ending;

/// The exit status of a command that could not be done: wrong usage, no target, no place for the
/// report.
const NOT_DONE: u8 = 2;

/// Runs the command that this process was started with; its errors go to standard error.
pub fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(ending) => ending.into(),
        Err(error) => {
            screen::note(format_args!("error: {error:#}"));
            ExitCode::from(NOT_DONE)
        }
    }
}

fn run(command: Command) -> anyhow::Result<Ending> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let stop = Stop::on_signals(matches!(command, Command::Study(_)), study::kill_all)?;
        match command {
            Command::Load(arguments) => load_command::run(&arguments, stop).await,
            Command::Study(arguments) => study_command::run(&arguments, stop).await,
            Command::Check(arguments) => check::command::run(&arguments, stop).await,
            #[cfg(target_os = "linux")]
            Command::Inspect(arguments) => inspect::command::run(arguments, stop).await,
            #[cfg(target_os = "linux")]
            Command::Wipe(arguments) => upkeep::wipe(arguments, stop).await,
            #[cfg(target_os = "linux")]
            Command::Expire(arguments) => upkeep::expire(arguments, stop).await,
            #[cfg(target_os = "linux")]
            Command::Serve(arguments) => serve::command::run(arguments, stop).await,
            #[cfg(all(target_os = "linux", feature = "top"))]
            Command::Top(arguments) => top::run(arguments, stop).await,
            #[cfg(target_os = "linux")]
            Command::Postmortem(arguments) => postmortem::run(arguments, stop).await,
            #[cfg(feature = "completions")]
            Command::Completions { shell } => completions::print(shell),
            #[cfg(feature = "completions")]
            Command::Man { folder } => completions::write_manual(&folder),
        }
    })
}
