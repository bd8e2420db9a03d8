//! `talea load merge`: the results of shards, put together.

use anyhow::{Context, Error, Result};
use talea_load::{Merged, ShardRecord};
use talea_study::compare::{Condition, report_conditions};
use talea_study::study::{CaseResult, Clients};
use talea_view::screen::{note, print, print_json};

use crate::arguments::MergeArguments;
use crate::ending::Ending;
use crate::results::Results;

pub(super) fn run(arguments: &MergeArguments) -> Result<Ending> {
    arguments
        .fail_if
        .iter()
        .try_for_each(|condition| super::ensure_is_of_load(condition, false))?;
    let mut records = Vec::new();
    let mut faults = Vec::new();
    for path in &arguments.files {
        let bytes =
            std::fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
        let (found, broken) = ShardRecord::all_in(&String::from_utf8_lossy(&bytes));
        if found.is_empty() || broken > 0 {
            faults.push(format!(
                "{} has no whole result: its shard died, or the file is not one of --record",
                path.display()
            ));
        }
        records.extend(found);
    }
    let is_broken = !faults.is_empty();
    let mut merged = Merged::of(records).map_err(|error| match faults.first() {
        Some(fault) => Error::msg(fault.clone()).context(error),
        None => Error::msg(error),
    })?;
    merged.faults.splice(0..0, faults);
    let client = Clients::of_summary(&merged.summary, &merged.distributions.responses);
    let rounds = CaseResult { client, ..CaseResult::default() }.with_measures().rounds;
    let steps: Vec<&str> = merged.summary.steps.iter().map(|step| step.name.as_str()).collect();
    arguments.fail_if.iter().try_for_each(|condition| condition.ensure_is_about(&[], &steps))?;
    match arguments.json {
        true => print_json(&merged)?,
        false => print(&merged.summary)?,
    }
    for fault in &merged.faults {
        note(format_args!("FAULT: {fault}"));
    }
    let judge = |condition: &Condition| vec![condition.judge_load(&rounds)];
    let judgements: Vec<_> = arguments.fail_if.iter().flat_map(judge).collect();
    arguments
        .output
        .write(&Results::of_load(std::slice::from_ref(&merged.summary), &judgements))?;
    let finding = report_conditions(&arguments.fail_if, arguments.output.quiet, judge)?;
    let is_clean = merged.summary.failed == 0 && !merged.is_incomplete && !is_broken;
    Ok(Ending::of(is_clean, finding))
}
