//! Measurements in processes of their own: this program runs itself, or an earlier build of
//! itself, with a hidden argument that names the measurement. The answer is one line of JSON.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) fn this_program() -> Result<Command> {
    Ok(Command::new(std::env::current_exe().context("finding this program")?))
}

pub(crate) fn ask<T: DeserializeOwned>(command: &mut Command) -> Result<T> {
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("starting {command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", output.status);
    let answer = serde_json::from_slice(&output.stdout);
    answer.with_context(|| format!("reading the answer of {command:?}"))
}

/// Prints the answer to the process that asked.
pub(crate) fn answer(found: &impl Serialize) -> Result<()> {
    println!("{}", serde_json::to_string(found)?);
    Ok(())
}
