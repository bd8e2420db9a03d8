//! `talea load`: checks, runs, prints.

mod find_limit;
mod limit_search;
mod merge;
mod rounds;
mod shard;

use std::io::{ErrorKind, Write};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Error, Result, anyhow, bail};
use talea_load::samples::SamplesFile;
use talea_load::scenario::Shard;
use talea_load::stop::Stop;
use talea_load::{
    self, Arrivals, MemoryWatch, Meters, Model, Outcome, Plan, Summary, Target, Until, Window,
};

use self::rounds::Rounds;
use crate::arguments::{LoadArguments, LoadCommand};
use crate::ending::Ending;
use crate::live_page::LivePage;
use crate::results::Results;
use talea_load::descriptors;
use talea_study::compare::{Condition, report_conditions};
use talea_study::progress::Progress;
use talea_study::study::{Case, CaseResult, Clients, Measures, Server, Times};
use talea_view::screen::{self, note};

/// Runs the load and prints its summary to standard output.
/// Fails when it cannot begin: no scenario, too few descriptors, or nothing at the URL.
pub(crate) async fn run(arguments: &LoadArguments, mut stop: Stop) -> Result<Ending> {
    if let Some(LoadCommand::Merge(arguments)) = &arguments.then {
        return merge::run(arguments);
    }
    let of_limit = arguments.find_limit.iter().flat_map(|goal| &goal.0);
    let watches_memory = !arguments.server_pid.is_empty();
    let mut conditions = arguments.fail_if.iter().chain(of_limit);
    conditions.try_for_each(|condition| ensure_is_of_load(condition, watches_memory))?;
    let plan = plan(arguments)?;
    let steps: Vec<&str> = plan.scenario.steps.iter().map(|step| step.name.as_str()).collect();
    arguments.fail_if.iter().try_for_each(|condition| condition.ensure_is_about(&[], &steps))?;
    if let Some(goal) = &arguments.find_limit {
        goal.0.iter().try_for_each(|condition| condition.ensure_is_about(&[], &steps))?;
    }
    arguments.output.prepare()?;
    // Fails before the load if it is not there.
    drop(memory_watch(arguments)?);
    let samples = arguments.samples.as_deref().map(SamplesFile::prepare).transpose()?;
    descriptors::ensure(plan.model.clients())?;
    let reached = tokio::select! {
        reached = plan.target.clone().reached(arguments.connection.timeout) => reached,
        () = stop.requested() => return Ok(Ending::Interrupted),
    };
    let target = reached.map_err(|error| unreachable(&plan.target, &error))?;
    let plan = Plan { target, ..plan };
    if arguments.dry_run {
        return dry_run(&plan, &mut stop).await;
    }

    let plan = tokio::select! {
        plan = talea_load::set_up(&plan) => plan.map_err(Error::msg)?,
        () = stop.requested() => return Ok(Ending::Interrupted),
    };
    let meters = Meters::new(plan.scenario.steps.len())?;
    let meters = match &arguments.region {
        Some(path) => meters.published_in(path, &plan)?,
        None => meters,
    };
    if let Some(goal) = &arguments.find_limit {
        let ending = find_limit::run(arguments, goal, &plan, &meters, &stop).await;
        talea_load::tear_down(&plan).await.map_err(Error::msg)?;
        return ending;
    }
    if arguments.record.is_some() {
        return shard::run(arguments, &plan, &meters, stop).await;
    }
    let live = LivePage::start(arguments.live.live, "load")?;
    if let Some(watcher) = live.watcher() {
        let rounds = (0..arguments.rounds)
            .map(|round: u64| ((round + 1).to_string(), plan.model.to_string()))
            .collect();
        watcher.begin_run(&plan.target.to_string(), rounds, &meters);
    }
    let warmed_up = warmed_up(arguments, &plan, &meters, &stop).await?;
    shard::wait_until(arguments.start_at, &mut stop).await;
    let (mut rounds, mut measures) = (Vec::new(), Vec::new());
    let mut kept = Vec::new();
    for round in 0..arguments.rounds {
        if stop.is_requested() {
            break;
        }
        // Others in each round, the same in each repetition.
        let plan = Plan { seed: plan.seed.wrapping_add(round << 32), ..plan.clone() };
        let window = meters.window();
        let number = usize::try_from(round)?;
        if let Some(watcher) = live.watcher() {
            watcher.begin_case(number, &window, &plan);
        }
        let watch = memory_watch(arguments)?;
        let mut outcome = one(&plan, &window, &stop, arguments.output.quiet).await?;
        let memory = watch.map(MemoryWatch::end);
        kept.push(std::mem::take(&mut outcome.samples));
        let mut summary = Summary::new(&plan, &outcome);
        summary.server_memory.clone_from(&memory);
        summary.requests_of_warm_up = if round == 0 { warmed_up } else { 0 };
        rounds.push(summary);
        let case = Case { id: (round + 1).to_string(), model: plan.model.clone() };
        let client = Clients::new(&plan, &outcome, Times::default());
        let server = memory.map(|memory| Server {
            peak_memory_bytes: Some(memory.peak_bytes),
            memory_growth: memory.growth,
            ..Server::default()
        });
        let result = CaseResult::new(&case, client, server);
        if let Some(watcher) = live.watcher() {
            watcher.end_case(number, &result);
        }
        // A round that was cut short is no sample of a round, unless there is nothing else.
        if !outcome.interrupted || measures.is_empty() {
            measures.extend(result.rounds);
        }
    }
    live.end(None);
    // It is made also after a stop: it may remove what the setup made.
    let torn_down = talea_load::tear_down(&plan).await.map_err(Error::msg);
    if rounds.is_empty() {
        note("stopped before a request was counted");
        return Ok(Ending::Interrupted);
    }
    // Of the two neither is lost when the other cannot be written.
    let printed = print(arguments, &rounds, &measures);
    if let Some(file) = &samples {
        file.write(&plan.scenario, &mut kept)?;
    }
    let judge = |condition: &Condition| condition.judge_load(&measures);
    let judgements: Vec<_> = arguments.fail_if.iter().map(judge).collect();
    let written = arguments.output.write(&Results::of_load(&rounds, &judgements));
    printed?;
    written?;
    torn_down?;
    let finding = report_conditions(&arguments.fail_if, arguments.output.quiet, |condition| {
        vec![condition.judge_load(&measures)]
    });
    let interrupted = stop.is_requested() && {
        let all = rounds.len() as u64 == arguments.rounds;
        !all || rounds.iter().any(|round| round.interrupted)
    };
    if interrupted {
        return Ok(Ending::Interrupted);
    }
    Ok(Ending::of(rounds.iter().all(|round| round.failed == 0), finding?))
}

/// Fails if a condition is not about a single load: its clients, and the server's memory if that is watched.
fn ensure_is_of_load(condition: &Condition, watches_memory: bool) -> Result<()> {
    if condition.compares() {
        bail!("--fail-if {condition} needs something to compare with; give a limit with a unit");
    }
    if watches_memory && condition.is_about_memory() {
        return Ok(());
    }
    if condition.is_about_memory() {
        bail!("the condition {condition} needs the server's process; add --server-pid PID");
    }
    if condition.is_about_server() {
        bail!(
            "the condition {condition} needs the service's metrics, which `talea load` does not read; \
             use `talea study --url URL --metrics-url URL`"
        );
    }
    Ok(())
}

/// The watch over the server's memory, if it is asked for.
fn memory_watch(arguments: &LoadArguments) -> Result<Option<MemoryWatch>> {
    let pids = &arguments.server_pid;
    let watch = (!pids.is_empty()).then(|| MemoryWatch::begin(pids)).transpose();
    watch.with_context(|| format!("--server-pid: the memory of {pids:?} cannot be read"))
}

async fn dry_run(plan: &Plan, stop: &mut Stop) -> Result<Ending> {
    let failed = tokio::select! {
        failed = talea_load::dry_run(plan, show) => failed.map_err(Error::msg)?,
        () = stop.requested() => return Ok(Ending::Interrupted),
    };
    Ok(if failed == 0 { Ending::Clean } else { Ending::Failures })
}

/// Nobody reads the rest of a pipe that is closed.
fn show(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

async fn one(plan: &Plan, window: &Window, stop: &Stop, quiet: bool) -> Result<Outcome> {
    let label = plan.model.to_string();
    let progress = Progress::begin(&label, plan.requests(), window.clone(), quiet);
    let outcome = talea_load::run(plan, window, stop.clone()).await;
    progress.end();
    outcome.map_err(|error| anyhow!(error))
}

/// Makes the load to warm up, if it is asked for: how many requests were sent.
async fn warmed_up(
    arguments: &LoadArguments,
    plan: &Plan,
    meters: &Meters,
    stop: &Stop,
) -> Result<u64> {
    let Some(time) = arguments.warm_up else { return Ok(0) };
    let model = plan.model.only_for(time);
    let plan = Plan { model, samples: false, seed: !plan.seed, ..plan.clone() };
    let outcome = one(&plan, &meters.window(), stop, arguments.output.quiet).await;
    Ok(outcome.context("while warming up")?.tally.sent)
}

fn print(arguments: &LoadArguments, rounds: &[Summary], measures: &[Measures]) -> Result<()> {
    match rounds {
        [only] if arguments.rounds == 1 => screen::print_as(arguments.json, only),
        rounds => screen::print_as(arguments.json, &Rounds::new(rounds.to_vec(), measures)),
    }
}

fn plan(arguments: &LoadArguments) -> Result<Plan> {
    let protocol = arguments.connection.protocol();
    let url = arguments.url.as_ref().context("no URL")?;
    let target = arguments.connection.tls.to(url, protocol.alpn())?;
    let shard = arguments.shard.unwrap_or(Shard::ALL);
    Ok(Plan {
        target,
        scenario: Arc::new(arguments.requests.scenario()?),
        model: model(arguments)?.of_shard(shard).map_err(Error::msg)?,
        protocol,
        timeout: arguments.connection.timeout,
        seed: arguments.seed,
        samples: arguments.samples.is_some(),
        threads: arguments.threads,
        shard,
    })
}

fn model(arguments: &LoadArguments) -> Result<Model> {
    let time = arguments.during;
    if arguments.dry_run {
        return Ok(Model::Closed { clients: 1, until: Until::Iterations(1) });
    }
    if arguments.find_limit.is_some() {
        return find_limit::model(arguments, None);
    }
    if let Some(rate) = &arguments.rate {
        let stages = rate.stages(time, TIME).map_err(|error| anyhow!(error))?;
        let arrivals = Arrivals { stages, poisson: arguments.poisson, shard: Shard::ALL };
        return Ok(Model::Open { arrivals, at_most: arguments.clients.unwrap_or(MAX_CONCURRENT) });
    }
    let until = match (arguments.iterations, arguments.total) {
        (Some(iterations), _) => Until::Iterations(iterations),
        (None, Some(total)) => Until::Total(total),
        (None, None) => Until::Time(time.unwrap_or(TIME)),
    };
    let clients = arguments.clients.unwrap_or(CLIENTS.min(arguments.total.unwrap_or(CLIENTS)));
    Ok(Model::Closed { clients, until })
}

/// The clients of a closed model, where nothing else is said: as many as oha and hey have.
const CLIENTS: u64 = 50;
/// The length of a load, where nothing else is said.
const TIME: Duration = Duration::from_secs(10);

/// How many may be under way at once in an open model.
const MAX_CONCURRENT: u64 = 1000;

fn unreachable(url: &Target, error: &std::io::Error) -> anyhow::Error {
    let what_to_do = match error.kind() {
        ErrorKind::ConnectionRefused => {
            "Nothing listens there: start the service, or correct the URL."
        }
        ErrorKind::TimedOut => {
            "No connection in time: check that the host is up and no firewall \
            is in between."
        }
        // Its words say it.
        ErrorKind::InvalidData | ErrorKind::UnexpectedEof => return anyhow!("{url}: {error}"),
        _ => "Check the URL's host and port.",
    };
    anyhow!("{url} cannot be reached: {error}.\n{what_to_do}")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::arguments::{Arguments, Command};

    #[test]
    fn a_url_alone_is_a_load_of_fifty_clients_for_ten_seconds() {
        for (options, expected) in [
            ("", "50 clients for 10.0 s"),
            ("-n 3", "3 clients, 3 iterations together"),
            ("-n 300", "50 clients, 300 iterations together"),
            ("-m 2", "50 clients × 2 iterations"),
            ("-c 1 -z 2s", "1 client for 2.00 s"),
            ("--rate 5", "arrivals: 5.00 a second for 10.0 s"),
            ("--rate 5:1s", "arrivals: 5.00 a second for 1.00 s"),
        ] {
            let words =
                ["talea", "load", "http://a/"].into_iter().chain(options.split_whitespace());
            let Command::Load(arguments) = Arguments::try_parse_from(words).unwrap().command else {
                panic!("a load")
            };
            assert_eq!(model(&arguments).unwrap().to_string(), expected, "{options}");
        }
    }
}
