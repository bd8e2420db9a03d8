//! `talea study`: checks, runs, prints, writes the report.

use std::env::consts::EXE_SUFFIX;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::{Case, Design, Ended};
use crate::arguments::StudyArguments;
use crate::descriptors;
use crate::report::{self, Folder};
use crate::stop::{Ending, Stop};

/// Runs the study, prints its table to standard output, and writes its report.
///
/// # Errors
/// When it cannot begin (a case twice, too few descriptors, no program, no folder) or cannot end.
pub async fn run(arguments: &StudyArguments, stop: Stop) -> Result<Ending> {
    Case::all_distinct(&arguments.cases)?;
    let most = arguments.cases.iter().map(|case| case.clients).max().unwrap_or(0);
    descriptors::ensure(most)?;
    let folder = Folder::prepare(&arguments.out)?;
    let design = Design {
        cases: arguments.cases.clone(),
        api: api(arguments.api.as_deref())?,
        timeout: arguments.timeout,
    };

    let study = match super::run(&design, stop).await? {
        Ended::Done(study) => study,
        Ended::Stopped(unfinished) => {
            eprintln!("stopped; {unfinished}. No report was written.");
            return Ok(Ending::Interrupted);
        }
    };
    println!("{}", report::table(&study.cases));
    let written = folder.write(&study)?;
    println!("\nReport: {}\nThe same as JSON: {}", written.html.display(), written.json.display());
    let clean = study.cases.iter().all(super::Finding::is_clean);
    Ok(if clean { Ending::Clean } else { Ending::Failures })
}

/// The program to study: the one that was named, else the one beside this program.
fn api(named: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = named {
        if !path.is_file() {
            bail!("--api names {}, where no program is", path.display());
        }
        return Ok(path.to_owned());
    }
    let this = std::env::current_exe().context("cannot tell where this program is")?;
    let beside = this.with_file_name(format!("items-api{EXE_SUFFIX}"));
    if !beside.is_file() {
        bail!(
            "no items-api at {}: build it (`cargo build --release -p items-api`) or name it with \
             --api PATH",
            beside.display()
        );
    }
    Ok(beside)
}

/// The command line as it would be typed.
pub(super) fn as_typed(arguments: impl Iterator<Item = String>) -> String {
    let words = arguments.skip(1).map(|word| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./,:=+%@".contains(&byte);
        if !word.is_empty() && word.bytes().all(plain) {
            word
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    std::iter::once("talea".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_typed_again() {
        let words = ["/x/talea", "study", "--cases", "A,10x20", "--out", "my report's"];
        assert_eq!(
            as_typed(words.map(str::to_owned).into_iter()),
            r"talea study --cases A,10x20 --out 'my report'\''s'"
        );
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = api(Some(Path::new("/nowhere/items-api"))).unwrap_err().to_string();
        assert!(error.contains("/nowhere/items-api"), "{error}");
    }
}
