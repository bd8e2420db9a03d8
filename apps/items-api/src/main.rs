//! The `items-api` program.

use clap::Parser;
use items_api::{arguments::Arguments, service};
use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    match service::run(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("items-api: {error:#}");
            ExitCode::FAILURE
        }
    }
}
