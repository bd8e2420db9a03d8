//! The `talea` binary: arguments in, calls out, one exit status.

use std::process::ExitCode;

use clap::Parser;
use talea_cli::arguments::{Arguments, Command};
use talea_cli::{check, load, stop::Stop, study_command};
#[cfg(target_os = "linux")]
use talea_cli::{inspect, serve, upkeep};

/// It could not be done: wrong usage, no target, no place for the report.
const COULD_NOT: u8 = 2;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(arguments.command) {
        Ok(ending) => ending.into(),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(COULD_NOT)
        }
    }
}

fn run(command: Command) -> anyhow::Result<talea_cli::stop::Ending> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let stop = Stop::on_signals()?;
        match command {
            Command::Load(arguments) => load::command::run(&arguments, stop).await,
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
        }
    })
}
