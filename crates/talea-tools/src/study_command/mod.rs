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
use crate::results::Results;
use talea_load::descriptors;
use talea_study::compare::{self, Comparison, Condition, Finding, Judgement, report_conditions};
use talea_study::report::{self, Judged, ReportFolder};
use talea_study::study::{Case, CaseResult, Design, RunEnd, Study, rounds};
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
    ensure_are_about(&arguments.fail_if, &design)?;
    let folder = ReportFolder::prepare(&arguments.out)?;
    arguments.output.prepare()?;
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
    let judgements = judged(&arguments.fail_if, judge);
    let written = folder.write(study, &judgements);
    let results = Results::of_studies(&[(String::new(), study.clone())], &judgements);
    let results = arguments.output.write(&results);
    print(report::table(&study.cases))?;
    if let (_, Some(words)) = arguments.chosen_cases() {
        print(words)?;
    }
    let written = written?;
    results?;
    let (html, json) = (written.html.display(), written.json.display());
    print(format_args!("\nReport: {html}\nThe same as JSON: {json}"))?;
    live.end(Some(html.to_string()));
    let finding = report_conditions(&arguments.fail_if, arguments.output.quiet, judge)?;
    Ok(ending(finding, &studies))
}

/// Variants of a service, or services, in turns.
async fn side_by_side(arguments: &StudyArguments, stop: Stop) -> Result<Ending> {
    let designs = arguments.ab.iter().map(|variant| {
        let service = design::variant(arguments, variant)?;
        design::design(arguments, service)
    });
    let designs = designs.collect::<Result<Vec<_>>>()?;
    designs.iter().try_for_each(|design| ensure_are_about(&arguments.fail_if, design))?;
    let folder = ReportFolder::prepare(&arguments.out)?;
    arguments.output.prepare()?;
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
    let judge = |condition: &Condition| judge_variants(condition, &named, true);
    let judgements = judged(&arguments.fail_if, judge);
    let written = folder.write_comparison(&comparison, &judgements, command);
    let results = arguments.output.write(&Results::of_studies(&named, &judgements));
    print(compare::text(&comparison))?;
    let written = each_written.and(written)?;
    results?;
    print(format_args!(
        "\nReport: {}\nThe same as JSON: {}\nEach variant's own: {} …",
        written.html.display(),
        written.json.display(),
        arguments.out.join("1/report.html").display(),
    ))?;
    live.end(Some(written.html.display().to_string()));
    let finding = report_conditions(&arguments.fail_if, arguments.output.quiet, judge)?;
    Ok(ending(finding, &studies))
}

fn compare(arguments: &CompareArguments) -> Result<Ending> {
    let studies =
        arguments.reports.iter().map(|path| Ok((path.display().to_string(), read(path)?)));
    let studies = studies.collect::<Result<Vec<(String, Study)>>>()?;
    let comparison = Comparison::of(&studies, false).context("reports were asked for")?;
    let judge = |condition: &Condition| judge_variants(condition, &studies, false);
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
    Ok(Ending::of(true, report_conditions(&arguments.fail_if, false, judge)?))
}

fn judged(
    conditions: &[Condition],
    judge: impl Fn(&Condition) -> Vec<Judgement>,
) -> Vec<Judgement> {
    conditions.iter().flat_map(judge).collect()
}

/// Judges variants beside the first, and each by itself. Of reports from files the first is only compared with.
fn judge_variants(
    condition: &Condition,
    variants: &[(String, Study)],
    are_side_by_side: bool,
) -> Vec<Judgement> {
    let mut judgements = condition.judge_comparison(variants, are_side_by_side);
    for (name, study) in variants.iter().skip(usize::from(!are_side_by_side)) {
        judgements.extend(condition.judge(&study.cases).into_iter().map(|it| it.of(name)));
    }
    judgements
}

fn ensure_are_about(conditions: &[Condition], design: &Design) -> Result<()> {
    let steps: Vec<&str> = design.scenario.steps.iter().map(|step| step.name.as_str()).collect();
    if let Some(condition) = conditions.iter().find(|it| it.is_about_server())
        && !design.service.has_metrics()
    {
        bail!("--fail-if {condition} needs the service's metrics; add --metrics-url URL");
    }
    conditions.iter().try_for_each(|condition| condition.ensure_is_about(&design.cases, &steps))
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

fn ending(finding: Finding, studies: &[Study]) -> Ending {
    let clean = studies.iter().flat_map(|study| &study.cases).all(CaseResult::is_clean);
    Ending::of(clean, finding)
}
