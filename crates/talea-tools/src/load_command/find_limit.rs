//! `talea load --find-limit`: the highest rate at which conditions hold.
//!
//! Rates are doubled until the conditions do not hold, and then halved between the two (by their geometric mean) until
//! these are within 5 %. A rate that fails is tried once more, since a single pause of the machine may have caused it;
//! the rate that is found is tried twice more, since a single load may have been lucky. If the generator, and not the
//! server, is the limit, the search ends and says so.

use std::fmt;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use talea_load::scenario::Shard;
use talea_load::stop::Stop;
use talea_load::{Arrivals, Meters, Model, Plan, Rate, Stage, Summary};
use talea_statistics::figures::{counted, measured};
use talea_study::compare::Goal;
use talea_study::study::{Case, CaseResult, Clients, Times};
use talea_view::screen::{self, note};

use super::MAX_CONCURRENT;
use crate::arguments::LoadArguments;
use crate::ending::Ending;

const FIRST_RATE: f64 = 10.0;
const TIME: Duration = Duration::from_secs(10);
/// The search ends when the rates between which the limit lies have at most this ratio.
const CLOSE: f64 = 1.05;
const HIGHEST: f64 = 1e6;
/// How often the rate that is found has to hold.
const CONFIRMATIONS: usize = 3;

/// A load at a rate.
#[derive(Clone, Debug, Serialize)]
struct Probe {
    rate: f64,
    /// The conditions that did not hold, with what was found.
    missed: Vec<String>,
    /// Why the generator may have been the limit.
    limits: Vec<String>,
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
}

/// The result of a search.
#[derive(Clone, Debug, Default, Serialize)]
struct Found {
    /// The highest rate at which the conditions held each time.
    holds: Option<f64>,
    /// The lowest rate above it at which they did not.
    fails: Option<f64>,
    /// Why it is not decided what the server can do.
    not_decided: Option<String>,
    probes: Vec<Probe>,
}

/// The model of a load at a rate, or at the first one.
pub(super) fn model(arguments: &LoadArguments, rate: Option<f64>) -> Result<Model> {
    let first = match &arguments.rate {
        None => FIRST_RATE,
        Some(Rate::Constant(rate)) => *rate,
        Some(Rate::Stages(_)) => {
            anyhow::bail!(
                "found stages in --rate, expected the first rate for --find-limit, such as 100"
            )
        }
    };
    let rate = rate.unwrap_or(first);
    let stages = vec![Stage { rate, to: rate, time: arguments.during.unwrap_or(TIME) }];
    let arrivals = Arrivals { stages, poisson: arguments.poisson, shard: Shard::ALL };
    Ok(Model::Open { arrivals, at_most: arguments.clients.unwrap_or(MAX_CONCURRENT) })
}

pub(super) async fn run(
    arguments: &LoadArguments,
    goal: &Goal,
    plan: &Plan,
    meters: &Meters,
    stop: &Stop,
) -> Result<Ending> {
    let mut search = Search { arguments, goal, plan, meters, stop, found: Found::default() };
    let is_done = search.run().await?;
    screen::print_as(arguments.json, &search.found)?;
    Ok(match (is_done, &search.found) {
        (false, _) => Ending::Interrupted,
        (true, Found { not_decided: Some(_), .. }) => Ending::NotDecided,
        (true, Found { holds: None, .. }) => Ending::Failures,
        (true, _) => Ending::Clean,
    })
}

struct Search<'a> {
    arguments: &'a LoadArguments,
    goal: &'a Goal,
    plan: &'a Plan,
    meters: &'a Meters,
    stop: &'a Stop,
    found: Found,
}

impl Search<'_> {
    /// Searches; false if a stop was requested.
    async fn run(&mut self) -> Result<bool> {
        let Model::Open { arrivals, .. } = model(self.arguments, None)? else { return Ok(true) };
        let mut rate = arrivals.stages.first().map_or(FIRST_RATE, |stage| stage.rate);
        let mut lucky = 0;
        loop {
            let Some(holds) = self.tries(rate).await? else { return Ok(false) };
            if self.found.not_decided.is_some() {
                return Ok(true);
            }
            match holds {
                true => self.found.holds = Some(rate),
                false => {
                    self.found.fails = Some(rate);
                    // One that held and does not any more is none that holds.
                    self.found.holds = self.found.holds.filter(|holds| *holds < rate);
                    lucky = 0;
                }
            }
            rate = match (self.found.holds, self.found.fails) {
                (Some(holds), None) if holds >= HIGHEST => return Ok(true),
                (Some(holds), None) => (holds * 2.0).min(HIGHEST),
                (None, Some(fails)) if fails <= 1e-2 => return Ok(true),
                (None, Some(fails)) => fails / 2.0,
                (Some(holds), Some(fails)) if fails / holds <= CLOSE => {
                    lucky += 1;
                    if lucky == CONFIRMATIONS {
                        return Ok(true);
                    }
                    holds
                }
                (Some(holds), Some(fails)) => (holds * fails).sqrt(),
                (None, None) => return Ok(true),
            };
        }
    }

    /// Whether the conditions hold at a rate; one that fails is tried once more. None if a stop was requested.
    async fn tries(&mut self, rate: f64) -> Result<Option<bool>> {
        for _ in 0..2 {
            let model = model(self.arguments, Some(rate))?;
            let plan = Plan { model: model.clone(), ..self.plan.clone() };
            let window = self.meters.window();
            let outcome =
                super::one(&plan, &window, self.stop, self.arguments.output.quiet).await?;
            if self.stop.is_requested() {
                return Ok(None);
            }
            let summary = Summary::new(&plan, &outcome);
            let client = Clients::new(&plan, &outcome, Times::default());
            let case = Case { id: String::new(), model };
            let result = CaseResult::new(&case, client, None);
            let mut missed: Vec<String> =
                result.rounds.iter().flat_map(|round| self.goal.missed_by(round)).collect();
            if summary.starved > 0 {
                missed.push(format!(
                    "{} found all clients busy",
                    counted(summary.starved, "arrival")
                ));
            }
            let probe = Probe {
                rate,
                missed,
                limits: summary.limits.clone(),
                p50_ms: summary.client_p50_ms,
                p99_ms: summary.client_p99_ms,
            };
            if !self.arguments.output.quiet {
                note(&probe);
            }
            let holds = probe.missed.is_empty();
            // More requests that wait make the generator late too: it is the limit if the server kept up.
            let is_generator = !holds && summary.starved == 0 && outcome.health.is_limit();
            if is_generator {
                self.found.not_decided = probe.limits.first().cloned();
            }
            self.found.probes.push(probe);
            if holds || is_generator {
                return Ok(Some(holds));
            }
        }
        Ok(Some(false))
    }
}

impl Found {
    /// How often the conditions held at a rate, of how many loads.
    fn tally(&self, rate: f64) -> String {
        let all = self.probes.iter().filter(|probe| probe.rate == rate);
        let holds = all.clone().filter(|probe| probe.missed.is_empty()).count();
        format!("{holds} of {}", counted(all.count() as u64, "load"))
    }
}

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.missed.is_empty() {
            true => write!(f, "{} a second: holds", measured(self.rate)),
            false => write!(f, "{} a second: {}", measured(self.rate), self.missed.join("; ")),
        }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.holds {
            None => write!(f, "no rate was found at which the conditions hold")?,
            Some(rate) => write!(
                f,
                "the conditions hold at {} a second, in {}",
                measured(rate),
                self.tally(rate)
            )?,
        }
        if let Some(rate) = self.fails {
            write!(f, "; at {} a second they held in {}", measured(rate), self.tally(rate))?;
        }
        if let Some(why) = &self.not_decided {
            write!(f, "\nnot decided what the server can do beyond that: {why}")?;
        }
        Ok(())
    }
}
