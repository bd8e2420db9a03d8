//! The files of reports, and their folder: each file is written whole or not at all.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;
use talea_view::{complete_in, temporary_in};

use super::comparison::comparison_page;
use super::html;
use crate::compare::{Comparison, Judgement};
use crate::study::Study;

/// A folder that can be written to.
#[derive(Debug)]
pub struct ReportFolder(PathBuf);

/// Where a report was written.
#[derive(Debug)]
pub struct ReportFiles {
    pub html: PathBuf,
    pub json: PathBuf,
}

/// The JSON of a report.
#[derive(Serialize)]
pub struct Judged<'a, T> {
    #[serde(flatten)]
    pub of: &'a T,
    /// The results of `--fail-if`.
    pub conditions: &'a [Judgement],
}

impl ReportFolder {
    /// Makes the folder where it is missing, and tries whether a file can be written to it, so that
    /// a study that cannot be reported does not begin.
    pub fn prepare(path: &Path) -> Result<Self> {
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
    pub fn write(&self, study: &Study, conditions: &[Judgement]) -> Result<ReportFiles> {
        let json = serde_json::to_vec(&Judged { of: study, conditions })?;
        self.write_both("report", json, &html::page(study, conditions))
    }

    /// Writes `comparison.html` and `comparison.json`.
    /// The error names the folder. Its former contents are still there then.
    pub fn write_comparison(
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
