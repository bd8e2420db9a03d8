//! `talea completions` and `talea man`: what shells and `man` know of the commands, from the same
//! definition as the command line itself.

use std::path::Path;

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::Shell;

use crate::arguments::Arguments;
use crate::ending::Ending;
use talea_view::screen;

/// Prints the completions for a shell.
/// Fails if they cannot be written.
pub(crate) fn print(shell: Shell) -> Result<Ending> {
    let mut all = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "talea", &mut all);
    screen::write(&all).context("the completions cannot be written")?;
    Ok(Ending::Clean)
}

/// Writes the manual pages.
/// Fails if they cannot be written.
pub(crate) fn write_manual(folder: &Path) -> Result<Ending> {
    let written = std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Arguments::command(), folder));
    let folder = folder.display();
    written.with_context(|| {
        format!("the manual pages cannot be written to {folder}; name a folder of yours")
    })?;
    Ok(Ending::Clean)
}
