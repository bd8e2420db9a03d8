//! `talea study`: checks, runs, prints, writes reports; of one service, of variants side by side,
//! or of studies that were made before.

mod design;
mod variant;

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use talea_load::stop::Stop;

use crate::arguments::{CompareArguments, StudyArguments, StudyCommand};
use crate::ending::Ending;
use crate::live_page::LivePage;
use talea_load::descriptors;
use talea_study::compare::{self, Comparison, Condition, Judgement, report_conditions};
use talea_study::report::{self, Judged, ReportFolder};
use talea_study::study::{Case, CaseResult, RunEnd, Study, rounds};
use talea_view::screen::{note, print, print_json};

/// How often variants are run side by side, where it is not said.
const ROUNDS_OF_VARIANTS: u64 = 5;

/// Does what the arguments ask for; results go to standard output and to the report's folder.
/// Fails when it cannot begin (a case twice, too few descriptors, no service, no folder) or cannot
/// end.
pub(crate) async fn run(arguments: &StudyArguments, stop: Stop) -> Result<Ending> {
    if let Some(StudyCommand::Compare(arguments)) = &arguments.then {
        return compare(arguments);
    }
    let (cases, _) = arguments.chosen_cases();
    Case::all_distinct(&cases)?;
    arguments.fail_if.iter().try_for_each(|condition| condition.ensure_is_about(&cases))?;
    let most = cases.iter().map(|case| case.model.clients()).max().unwrap_or(0);
    descriptors::ensure(most)?;
    match arguments.ab.is_empty() {
        true => one(arguments, stop).await,
        false => side_by_side(arguments, stop).await,
    }
}

async fn one(arguments: &StudyArguments, stop: Stop) -> Result<Ending> {
    if let Some(condition) = arguments.fail_if.iter().find(|condition| condition.compares()) {
        bail!("--fail-if {condition} needs something to compare with; use --ab");
    }
    let design = design::design(arguments, design::service(arguments)?)?;
    let folder = ReportFolder::prepare(&arguments.out)?;
    let live = LivePage::start(arguments.live.live, "study")?;
    let rounds = arguments.rounds.unwrap_or(1);
    let Some(studies) = finished(rounds::run(&[design], rounds, live.watcher(), stop).await?)
    else {
        live.end(None);
        return Ok(Ending::Interrupted);
    };
    let study = studies.first().context("a study was asked for")?;
    // Of the two neither is lost when the other cannot be written.
    let judge = |condition: &Condition| condition.judge(&study.cases);
    let written = folder.write(study, &judged(&arguments.fail_if, judge));
    print(report::table(&study.cases))?;
    if let (_, Some(words)) = arguments.chosen_cases() {
        print(words)?;
    }
    let written = written?;
    let (html, json) = (written.html.display(), written.json.display());
    print(format_args!("\nReport: {html}\nThe same as JSON: {json}"))?;
    live.end(Some(html.to_string()));
    let holds = report_conditions(&arguments.fail_if, judge)?;
    Ok(ending(holds, &studies))
}

/// Variants of a service, or services, in turns.
async fn side_by_side(arguments: &StudyArguments, stop: Stop) -> Result<Ending> {
    let designs = arguments.ab.iter().map(|variant| {
        let service = design::variant(arguments, variant)?;
        design::design(arguments, service)
    });
    let designs = designs.collect::<Result<Vec<_>>>()?;
    let folder = ReportFolder::prepare(&arguments.out)?;
    let of_each =
        (1..=designs.len()).map(|n| ReportFolder::prepare(&arguments.out.join(n.to_string())));
    let of_each = of_each.collect::<Result<Vec<_>>>()?;
    let live = LivePage::start(arguments.live.live, "study")?;
    let rounds = arguments.rounds.unwrap_or(ROUNDS_OF_VARIANTS);
    let Some(studies) = finished(rounds::run(&designs, rounds, live.watcher(), stop).await?) else {
        live.end(None);
        return Ok(Ending::Interrupted);
    };
    let each_written = of_each.iter().zip(&studies).try_for_each(|(folder, study)| {
        folder
            .write(study, &judged(&arguments.fail_if, |condition| condition.judge(&study.cases)))
            .map(drop)
    });
    let named: Vec<_> = arguments.ab.iter().cloned().zip(studies.iter().cloned()).collect();
    let comparison = Comparison::of(&named, true).context("variants were asked for")?;
    let command = designs.first().map_or("", |design| &design.command);
    let judge = |condition: &Condition| judge_variants(condition, &comparison, &named);
    let judgements = judged(&arguments.fail_if, judge);
    let written = folder.write_comparison(&comparison, &judgements, command);
    print(compare::text(&comparison))?;
    let written = each_written.and(written)?;
    print(format_args!(
        "\nReport: {}\nThe same as JSON: {}\nEach variant's own: {} …",
        written.html.display(),
        written.json.display(),
        arguments.out.join("1/report.html").display(),
    ))?;
    live.end(Some(written.html.display().to_string()));
    let holds = report_conditions(&arguments.fail_if, judge)?;
    Ok(ending(holds, &studies))
}

fn compare(arguments: &CompareArguments) -> Result<Ending> {
    let studies =
        arguments.reports.iter().map(|path| Ok((path.display().to_string(), read(path)?)));
    let studies = studies.collect::<Result<Vec<(String, Study)>>>()?;
    let comparison = Comparison::of(&studies, false).context("reports were asked for")?;
    let judge = |condition: &Condition| judge_variants(condition, &comparison, &studies[1..]);
    match arguments.json {
        true => {
            let conditions = &judged(&arguments.fail_if, judge);
            print_json(&Judged { of: &comparison, conditions })?;
        }
        false => print(compare::text(&comparison))?,
    }
    if let Some(other) = comparison.others.iter().find(|other| other.is_empty()) {
        bail!("{} has no case of {}: nothing was compared", other.name, comparison.base);
    }
    let holds = report_conditions(&arguments.fail_if, judge)?;
    Ok(if holds { Ending::Failures } else { Ending::Clean })
}

fn judged(
    conditions: &[Condition],
    judge: impl Fn(&Condition) -> Vec<Judgement>,
) -> Vec<Judgement> {
    conditions.iter().flat_map(judge).collect()
}

/// Judges a comparison, and each of some variants by itself.
fn judge_variants(
    condition: &Condition,
    comparison: &Comparison,
    variants: &[(String, Study)],
) -> Vec<Judgement> {
    let mut judgements = condition.judge_comparison(comparison);
    for (name, study) in variants {
        judgements.extend(condition.judge(&study.cases).into_iter().map(|it| it.of(name)));
    }
    judgements
}

fn read(path: &Path) -> Result<Study> {
    let text = std::fs::read_to_string(path);
    let text = text.with_context(|| format!("{} cannot be read", path.display()))?;
    let study = serde_json::from_str(&text);
    study.map_err(|error| {
        anyhow!("{}: {error}; expected the report.json of a study", path.display())
    })
}

/// The study; none if it was stopped, which is reported.
fn finished(ended: RunEnd<Vec<Study>>) -> Option<Vec<Study>> {
    match ended {
        RunEnd::Done(studies) => Some(studies),
        RunEnd::Stopped(unfinished) => {
            note(format_args!("stopped; {unfinished}. No report was written."));
            None
        }
    }
}

fn ending(holds: bool, studies: &[Study]) -> Ending {
    let clean = studies.iter().flat_map(|study| &study.cases).all(CaseResult::is_clean);
    if clean && !holds { Ending::Clean } else { Ending::Failures }
}
