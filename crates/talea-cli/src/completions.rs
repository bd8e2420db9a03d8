//! `talea completions` and `talea man`: what shells and `man` know of the commands, from the same
//! definition as the command line itself.

use std::path::Path;

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::Shell;

use crate::arguments::Arguments;
use crate::stop::Ending;

/// Prints the completions for a shell.
pub(crate) fn print(shell: Shell) -> Result<Ending> {
    let mut all = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "talea", &mut all);
    // A reader may take the beginning alone.
    let _ = std::io::Write::write_all(&mut std::io::stdout(), &all);
    Ok(Ending::Clean)
}

/// Writes the manual pages.
/// Fails if they cannot be written.
pub(crate) fn write_manual(folder: &Path) -> Result<Ending> {
    let written = std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Arguments::command(), folder));
    written.with_context(|| {
        format!(
            "the manual pages cannot be written to {}; name a folder of yours",
            folder.display()
        )
    })?;
    Ok(Ending::Clean)
}
