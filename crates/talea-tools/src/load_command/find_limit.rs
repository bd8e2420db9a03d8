//! `talea load --find-limit`: the highest rate at which conditions hold.
//!
//! `limit_search` says which rate is next. If the generator, and not the server, is the limit, the search ends and says so.

use std::fmt;

use anyhow::Result;
use serde::Serialize;
use talea_load::scenario::Shard;
use talea_load::stop::Stop;
use talea_load::{Arrivals, Meters, Model, Plan, Rate, Stage, Summary};
use talea_statistics::figures::{counted, measured, whole};
use talea_study::compare::Goal;
use talea_study::study::{Case, CaseResult, Clients, Times};
use talea_view::screen::{self, note};

use super::limit_search::{Limit, LimitSearch};
use super::{MAX_CONCURRENT, TIME};
use crate::arguments::LoadArguments;
use crate::ending::Ending;

const FIRST_RATE: f64 = 10.0;

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
    /// The rates between which the limit lies, at which half of such loads meet the conditions.
    limit: Option<Limit>,
    /// The highest rate at which the conditions held.
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
        let first = arrivals.stages.first().map_or(FIRST_RATE, |stage| stage.rate);
        let mut search = LimitSearch::from(first);
        while let Some(rate) = search.next() {
            let Some(holds) = self.holds(rate).await? else { return Ok(false) };
            if self.found.not_decided.is_some() {
                return Ok(true);
            }
            search.note(holds);
            (self.found.holds, self.found.fails) = search.so_far();
        }
        self.found.limit = search.limit();
        Ok(true)
    }

    /// Whether the conditions hold in a load at a rate; none if a stop was requested.
    async fn holds(&mut self, rate: f64) -> Result<Option<bool>> {
        let model = model(self.arguments, Some(rate))?;
        let plan = Plan { model: model.clone(), ..self.plan.clone() };
        let window = self.meters.window();
        let outcome = super::one(&plan, &window, self.stop, self.arguments.output.quiet).await?;
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
            missed.push(format!("{} found all clients busy", counted(summary.starved, "arrival")));
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
        if !holds && summary.starved == 0 && outcome.health.is_limit() {
            self.found.not_decided = probe.limits.first().cloned();
        }
        self.found.probes.push(probe);
        Ok(Some(holds))
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
        if let Some(Limit { low, high, certainty }) = self.limit {
            let [low, high] = [low, high].map(measured);
            let certainty = whole((certainty * 100.0).round() as u64);
            writeln!(
                f,
                "the limit lies between {low} and {high} a second (certainty {certainty} %)"
            )?;
        }
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
