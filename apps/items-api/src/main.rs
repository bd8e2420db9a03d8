//! The `items-api` program.

use clap::Parser;
use items_api::{arguments::Arguments, log, service};
use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    match service::run(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log::line(in_words(&error));
            ExitCode::FAILURE
        }
    }
}

/// An error and its causes, except those that the text before has already.
fn in_words(error: &anyhow::Error) -> String {
    let mut words = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !words.contains(&cause) {
            words = format!("{words}: {cause}");
        }
    }
    words
}
