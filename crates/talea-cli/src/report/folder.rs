//! The files of reports, and their folder: each file is written whole or not at all.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;
use tempfile::{Builder, NamedTempFile};

use super::comparison::comparison_page;
use super::html;
use crate::compare::{Comparison, Judgement};
use crate::study::Study;

/// A folder that can be written to.
#[derive(Debug)]
pub(crate) struct ReportFolder(PathBuf);

/// Where a report was written.
#[derive(Debug)]
pub(crate) struct ReportFiles {
    pub html: PathBuf,
    pub json: PathBuf,
}

/// The JSON of a report.
#[derive(Serialize)]
pub(crate) struct Judged<'a, T> {
    #[serde(flatten)]
    pub of: &'a T,
    /// The results of `--fail-if`.
    pub conditions: &'a [Judgement],
}

impl ReportFolder {
    /// Makes the folder where it is missing, and tries whether a file can be written to it, so that
    /// a study that cannot be reported does not begin.
    pub(crate) fn prepare(path: &Path) -> Result<Self> {
        let cannot = || {
            let path = path.display();
            format!("the report cannot be written to {path}: name another folder with --out DIR")
        };
        fs::create_dir_all(path).with_context(cannot)?;
        temporary_in(path).with_context(cannot)?;
        Ok(Self(path.to_owned()))
    }

    /// Writes `report.html` and `report.json`. A report of an earlier study is replaced when both
    /// files of the new one are complete.
    /// The error names the folder. Its former contents are still there then.
    pub(crate) fn write(&self, study: &Study, conditions: &[Judgement]) -> Result<ReportFiles> {
        let json = serde_json::to_vec(&Judged { of: study, conditions })?;
        self.write_both("report", json, &html::page(study, conditions))
    }

    /// Writes `comparison.html` and `comparison.json`.
    /// The error names the folder. Its former contents are still there then.
    pub(crate) fn write_comparison(
        &self,
        comparison: &Comparison,
        conditions: &[Judgement],
        command: &str,
    ) -> Result<ReportFiles> {
        let json = serde_json::to_vec_pretty(&Judged { of: comparison, conditions })?;
        self.write_both("comparison", json, &comparison_page(comparison, conditions, command))
    }

    /// Neither file appears before both are complete.
    fn write_both(&self, name: &str, mut json: Vec<u8>, html: &str) -> Result<ReportFiles> {
        let cannot = || format!("the report cannot be written to {}", self.0.display());
        json.push(b'\n');
        let json = complete_in(&self.0, &json).with_context(cannot)?;
        let html = complete_in(&self.0, html.as_bytes()).with_context(cannot)?;
        let path = |ending| self.0.join(format!("{name}.{ending}"));
        let written = ReportFiles { html: path("html"), json: path("json") };
        json.persist(&written.json).with_context(cannot)?;
        html.persist(&written.html).with_context(cannot)?;
        Ok(written)
    }
}

/// Writes a file, or leaves the former one as it was. A pipe or a device is written to, and stays.
#[cfg(target_os = "linux")]
pub(crate) fn write_whole(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let place = match fs::metadata(path) {
        Ok(there) if !there.is_file() => return fs::write(path, content),
        // A link stays too.
        Ok(_) => fs::canonicalize(path)?,
        Err(_) => path.to_owned(),
    };
    let folder = place.parent().unwrap_or(Path::new(""));
    complete_in(folder, content)?.persist(place)?;
    Ok(())
}

/// A complete file under a temporary name.
fn complete_in(folder: &Path, content: &[u8]) -> std::io::Result<NamedTempFile> {
    let mut file = temporary_in(folder)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    Ok(file)
}

fn temporary_in(folder: &Path) -> std::io::Result<NamedTempFile> {
    let mut builder = Builder::new();
    builder.prefix(".report-").suffix(".tmp");
    // As any file that the user makes: the mask takes away what it takes away.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder)
}
