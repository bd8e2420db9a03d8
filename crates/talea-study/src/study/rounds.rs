//! Studies that are run some times over, side by side.

use anyhow::{Context, Result};
use talea_load::Meters;
use talea_load::stop::Stop;

use super::case_result::CaseResult;
use super::design::Design;
use super::outcome::{RunEnd, Study};
use super::run::run as run_once;
use super::watcher::Watcher;
use talea_view::screen::note;

/// Runs each design once a round, so that a change with time affects all of them; the design that
/// is first changes from round to round. Gives a study of each, with the numbers of all its rounds.
/// Fails when one of them cannot be run; as `run` says.
pub async fn run(
    designs: &[Design],
    rounds: u64,
    watcher: Option<&dyn Watcher>,
    stop: Stop,
) -> Result<RunEnd<Vec<Study>>> {
    let steps = designs.iter().map(|design| design.scenario.steps.len()).max();
    let meters = Meters::new(steps.unwrap_or(0))?;
    let mut done: Vec<Vec<Study>> = designs.iter().map(|_| Vec::new()).collect();
    let is_one = designs.len() == 1 && rounds == 1;
    for round in 0..rounds {
        for turn in 0..designs.len() {
            let nth = (turn + round as usize) % designs.len();
            // Others in each round, the same for all of one.
            let seed = designs[nth].seed.wrapping_add(round << 32);
            let design = Design { seed, ..designs[nth].clone() };
            if !is_one {
                note(format_args!("round {} of {rounds}: {}", round + 1, design.service));
            }
            match run_once(&design, &meters, watcher, stop.clone()).await {
                Ok(RunEnd::Done(study)) => done[nth].push(study),
                Ok(RunEnd::Stopped(unfinished)) => return Ok(RunEnd::Stopped(unfinished)),
                Err(error) if is_one => return Err(error),
                Err(error) => return Err(error.context(format!("round {}", round + 1))),
            }
        }
    }
    let studies = done.into_iter().map(|rounds| Study::of_rounds(rounds).context("no rounds"));
    Ok(RunEnd::Done(studies.collect::<Result<_>>()?))
}

impl Study {
    /// Puts the rounds of one study together; none of none.
    fn of_rounds(mut rounds: Vec<Self>) -> Option<Self> {
        let scrapes = rounds.iter().map(|round| round.scrapes).sum();
        let mut by_case: Vec<Vec<CaseResult>> = Vec::new();
        for round in &mut rounds {
            by_case.resize_with(round.cases.len(), Vec::new);
            for (all, result) in by_case.iter_mut().zip(round.cases.drain(..)) {
                all.push(result);
            }
        }
        let cases = by_case.into_iter().filter_map(CaseResult::of_rounds).collect();
        let first = rounds.into_iter().next()?;
        Some(Self { cases, scrapes, ..first })
    }
}
