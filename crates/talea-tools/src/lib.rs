//! The `talea` program: its arguments, and a module for each of its commands.
//!
//! Loads, studies and reports are the crates `talea-load` and `talea-study`; the agent, its history and its
//! pages the crate `talea-agent`. This is the only crate that knows both.
//!
//! - `check`: a text of metrics, held against its format.
//! - `inspect`: the region that a service counts in, read from outside.
//! - `upkeep`: `wipe` and `expire`, for such a region.
//! - `run_command`: a job with a region of its own.
//! - `proxy_command`: a reverse proxy that meters a service from outside.
//! - `openapi`: scenarios from OpenAPI documents.
//! - `results`: figures and conditions in files for other programs.
//! - `serve_push`: the receivers that the agent pushes to.
//! - `top`: the endpoints of a service in a terminal.
//! - `live_page`: the agent's live page for a study or a load while it runs.

// Without `talea top`, its arguments and readings are unused.
#[cfg_attr(not(feature = "top"), allow(dead_code, unused_imports))]
mod arguments;
mod check;
#[cfg(feature = "completions")]
mod completions;
mod ending;
#[cfg(target_os = "linux")]
mod inspect;
mod live_page;
mod load_command;
mod openapi;
#[cfg(target_os = "linux")]
#[cfg_attr(not(feature = "top"), allow(dead_code))]
mod page_source;
#[cfg(target_os = "linux")]
mod postmortem_command;
#[cfg(target_os = "linux")]
mod proxy_command;
#[cfg(target_os = "linux")]
mod region_command;
mod results;
#[cfg(target_os = "linux")]
mod run_command;
#[cfg(target_os = "linux")]
mod serve_command;
#[cfg(target_os = "linux")]
mod serve_push;
mod study_command;
#[cfg(all(target_os = "linux", feature = "top"))]
mod top;
#[cfg(target_os = "linux")]
mod upkeep;

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
            talea_view::screen::note(format_args!("error: {error:#}"));
            ExitCode::from(NOT_DONE)
        }
    }
}

fn run(command: Command) -> anyhow::Result<Ending> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        // Its signals are for the command that it runs.
        #[cfg(target_os = "linux")]
        if let Command::Run(arguments) = command {
            return run_command::run(arguments).await;
        }
        let stop =
            Stop::on_signals(matches!(command, Command::Study(_)), talea_study::study::kill_all)?;
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
            Command::Run(_) => unreachable!("it was run before"),
            #[cfg(target_os = "linux")]
            Command::Serve(arguments) => serve_command::run(*arguments, stop).await,
            #[cfg(target_os = "linux")]
            Command::Proxy(arguments) => proxy_command::run(arguments, stop).await,
            #[cfg(all(target_os = "linux", feature = "top"))]
            Command::Top(arguments) => top::run(arguments, stop).await,
            #[cfg(target_os = "linux")]
            Command::Postmortem(arguments) => postmortem_command::run(arguments, stop).await,
            #[cfg(feature = "completions")]
            Command::Completions { shell } => completions::print(shell),
            #[cfg(feature = "completions")]
            Command::Man { folder } => completions::write_manual(&folder),
        }
    })
}
