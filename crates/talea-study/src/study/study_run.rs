//! The run of a study: case after case, and how far it got.

use std::fmt;
use std::io::{Read, Seek};
use std::ops::RangeInclusive;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use talea_load::scenario::{Names, Quantity, Shard};
use talea_load::stop::Stop;
use talea_load::{self, Meters, Model, Plan, Until, Window};
use talea_statistics::figures::{counted, measured, whole};
use tokio::process::Command;

use super::case::Case;
use super::case_result::CaseResult;
use super::clients::Clients;
use super::design::{Addresses, Design, Service};
use super::endpoints::EndpointTimes;
use super::process_group::ProcessGroup;
use super::prometheus::{Prometheus, PrometheusResult, differences};
use super::reading::Reading;
use super::sampler::{Sampler, Samples};
use super::scraper::Scraper;
use super::server::Server;
use super::watcher::Watcher;
use crate::progress::Progress;
use talea_view::screen::note;

/// A study that runs. Its results stay when it is stopped.
pub(super) struct StudyRun<'a> {
    design: &'a Design,
    meters: &'a Meters,
    watcher: Option<&'a dyn Watcher>,
    pub(super) results: Vec<CaseResult>,
    pub(super) scrapes: u64,
    pub(super) missing_metrics: Vec<String>,
    prometheus: Option<Prometheus>,
    /// Of `--before-case`, while it runs.
    command: Option<ProcessGroup>,
    under_way: Option<(&'a Case, Window)>,
}

/// The target once it serves: where, how it is read, and how it was before any client came.
struct ServingTarget {
    addresses: Addresses,
    metrics: Option<(Scraper, Reading)>,
}

/// How far a study got that was stopped.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct StoppedStudy {
    pub finished: Vec<String>,
    /// The case that was under way, how many of its requests were done, and of how many
    /// where that is known.
    pub stopped_in: Option<(String, u64, Option<u64>)>,
    pub not_begun: Vec<String>,
}

impl<'a> StudyRun<'a> {
    pub(super) fn new(
        design: &'a Design,
        meters: &'a Meters,
        watcher: Option<&'a dyn Watcher>,
    ) -> Self {
        if let Some(watcher) = watcher {
            let case = |case: &Case| (case.id.clone(), case.model.to_string());
            let cases = design.cases.iter().map(case).collect();
            watcher.begin_run(&design.service.to_string(), cases, meters);
        }
        Self {
            design,
            meters,
            watcher,
            results: Vec::new(),
            scrapes: 0,
            missing_metrics: Vec::new(),
            prometheus: None,
            command: None,
            under_way: None,
        }
    }

    /// Ends the processes that run beside the service.
    pub(super) async fn end(&mut self) {
        if let Some(command) = self.command.take() {
            command.terminate();
            command.ended().await;
        }
        if let Some(prometheus) = self.prometheus.take() {
            prometheus.stop().await;
        }
    }

    pub(super) fn unfinished(&self) -> StoppedStudy {
        let ids = |cases: &[Case]| cases.iter().map(|case| case.id.clone()).collect();
        let cases = &self.design.cases;
        let finished = self.results.len();
        let begun = finished + usize::from(self.under_way.is_some());
        let stopped_in = self.under_way.as_ref();
        StoppedStudy {
            finished: ids(&cases[..finished]),
            stopped_in: stopped_in.map(|(case, window)| {
                let runs = case.model.iterations();
                let all = runs.zip(self.design.scenario.requests_of_iteration());
                (case.id.clone(), window.requests_done(), all.map(|(runs, each)| runs * each))
            }),
            not_begun: ids(&cases[begun..]),
        }
    }

    pub(super) async fn run(&mut self, addresses: Addresses) -> Result<()> {
        let mut served = self.served(addresses).await?;
        for (number, case) in self.design.cases.iter().enumerate() {
            self.under_way = Some((case, self.meters.window()));
            self.prepare(case, &mut served).await.with_context(|| case.to_string())?;
            let window = self.meters.window();
            self.under_way = Some((case, window.clone()));
            if let Some(watcher) = self.watcher {
                let plan = self.plan(&served.addresses, case.model.clone());
                watcher.begin_case(number, &window, &plan);
            }
            let result = self.run_case(case, &window, &mut served).await;
            let result = result.with_context(|| case.to_string())?;
            if let Some(watcher) = self.watcher {
                watcher.end_case(number, &result);
            }
            if !self.design.quiet {
                note(summary_line(case, &result));
            }
            self.under_way = None;
            self.results.push(result);
        }
        self.scrapes += served.metrics.map_or(0, |(scraper, _)| scraper.scrapes);
        Ok(())
    }

    /// Reads the service's metrics for the first time.
    async fn served(&mut self, addresses: Addresses) -> Result<ServingTarget> {
        let Some(target) = addresses.metrics.clone() else {
            if self.design.prometheus.is_some() {
                bail!(
                    "a Prometheus has nothing to scrape: name the service's metrics by --metrics-url"
                );
            }
            return Ok(ServingTarget { addresses, metrics: None });
        };
        let names = Arc::new(self.design.names.clone());
        let mut scraper = Scraper::new(target, Arc::clone(&names));
        if let Some(watcher) = self.watcher {
            watcher.serves(scraper.another());
        }
        let (_, mut idle) = match self.design.service {
            // It may accept connections before it answers.
            Service::Program(_) => scraper.scrape_beside(Some(&addresses.items)).await?,
            Service::Running(_) => scraper.scrape().await?,
        };
        if idle.get(Quantity::Requests).is_none() && self.design.must_count {
            // Some services have a metric only once they have something to count.
            self.once(&addresses).await?;
            idle = scraper.scrape().await?.1;
        }
        let counts = idle.get(Quantity::Requests).is_some() || !self.design.must_count;
        if let (false, Some(requests)) = (counts, names.get(Quantity::Requests)) {
            bail!(
                "{} has no metric {requests}, also after a request: name it in the scenario's \
                 [metrics], or choose the service's names with --names (now {})",
                addresses.metrics.as_ref().map_or(String::new(), ToString::to_string),
                names.base,
            );
        }
        self.missing_metrics = idle.missing(&names);
        if let Some(source) = &self.design.prometheus {
            self.prometheus = Some(Prometheus::of(source, &addresses, names, &idle).await?);
        }
        Ok(ServingTarget { addresses, metrics: Some((scraper, idle)) })
    }

    /// Runs the scenario once, uncounted.
    async fn once(&self, addresses: &Addresses) -> Result<()> {
        let model = Model::Closed { clients: 1, until: Until::Iterations(1) };
        self.uncounted(addresses, model).await
    }

    async fn uncounted(&self, addresses: &Addresses, model: Model) -> Result<()> {
        let plan = Plan { seed: !self.design.seed, ..self.plan(addresses, model) };
        let outcome = talea_load::run(&plan, &self.meters.window(), Stop::never()).await;
        outcome.map(drop).map_err(|error| anyhow!(error))
    }

    fn plan(&self, addresses: &Addresses, model: Model) -> Plan {
        Plan {
            target: addresses.items.clone(),
            scenario: Arc::clone(&self.design.scenario),
            model,
            protocol: self.design.protocol,
            timeout: self.design.timeout,
            seed: self.design.seed,
            samples: false,
            threads: None,
            shard: Shard::ALL,
        }
    }

    /// Warms the service up, and empties its database.
    async fn prepare(&mut self, case: &Case, served: &mut ServingTarget) -> Result<()> {
        if let Some(time) = self.design.warm_up {
            self.uncounted(&served.addresses, case.model.only_for(time)).await?;
        }
        served.settle().await?;
        if let Some(command) = &self.design.before_case {
            self.in_a_shell(command).await?;
            // It may have restarted the service.
            served.settle().await?;
        }
        match &mut served.metrics {
            Some((scraper, _)) if self.design.service.resets() => scraper.reset().await,
            _ => Ok(()),
        }
    }

    async fn in_a_shell(&mut self, command: &str) -> Result<()> {
        // In a file: a service that the command starts may write to it for longer than the command runs.
        let mut errors =
            tempfile::tempfile().context("cannot create a file for the output of --before-case")?;
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::null());
        // A signal to the study alone must end the command too.
        #[cfg(unix)]
        shell.process_group(0);
        let child = shell.stderr(errors.try_clone()?).spawn();
        let mut child =
            child.with_context(|| format!("--before-case {command:?} cannot be run"))?;
        self.command = Some(ProcessGroup::of(&child));
        let status = child.wait().await?;
        // The service that it started runs on.
        self.command = None;
        if !status.success() {
            let mut said = Vec::new();
            errors.rewind()?;
            errors.read_to_end(&mut said)?;
            let said = String::from_utf8_lossy(&said);
            bail!("--before-case {command:?} failed ({status}): {}", said.trim());
        }
        Ok(())
    }

    async fn run_case(
        &mut self,
        case: &Case,
        window: &Window,
        served: &mut ServingTarget,
    ) -> Result<CaseResult> {
        let plan = self.plan(&served.addresses, case.model.clone());
        // Its requests are no part of the case, which begins after them.
        let plan = talea_load::set_up(&plan).await.map_err(|error| anyhow!(error))?;
        let resets = self.design.service.resets();
        let scraped_before = match &mut self.prometheus {
            Some(prometheus) => Some(prometheus.scraped().await?),
            None => None,
        };
        let times_before = served.endpoint_times().await;
        let (begun, baseline) = served.baseline().await?;

        let progress =
            Progress::begin(&case.to_string(), plan.requests(), window.clone(), self.design.quiet);
        let sampler = Sampler::begin(begun, baseline, window.clone())?;
        let outcome = talea_load::run(&plan, window, Stop::never()).await;
        let outcome = outcome.map_err(|error| anyhow!(error))?;
        let samples = sampler.end().await?;
        progress.end();

        self.scrapes += samples.scrapes;
        let client = Clients::new(&plan, &outcome, samples.timeline.times());
        let times = served.endpoint_times().await;
        let server = served.metrics.as_ref().map(|_| {
            let names = &self.design.names;
            let server = server(&samples, resets, names);
            let scrapes = self.scrapes_of(&samples);
            let server = server.with_scrapes(client.requests_sent, scrapes, names.counts_scrapes);
            match times.zip(times_before) {
                Some((now, before)) => server.with_endpoints(now.since(&before)),
                // Without the one before, the other has what was before the case too.
                None => server,
            }
        });
        talea_load::tear_down(&plan).await.map_err(|error| anyhow!(error))?;
        let mut result = CaseResult::new(case, client, server);
        if let (Some(prometheus), Some(from)) = (&mut self.prometheus, scraped_before) {
            let to = prometheus.scraped().await?;
            let sampled =
                result.server.as_ref().context("a service with Prometheus has metrics")?;
            let PrometheusResult { server, queries } =
                prometheus.case_result(from, to, resets, sampled).await?;
            result.differences = differences(sampled, &server);
            result.queries = queries;
            result.prometheus = Some(server);
        }
        Ok(result)
    }
}

impl StudyRun<'_> {
    /// How many scrapes the counter of requests has in a case if the service counts them, at least and at most. Of
    /// the baseline and the last one, the counter has one: a service counts a request before its answer or after.
    fn scrapes_of(&self, samples: &Samples) -> RangeInclusive<u64> {
        let answered = samples.samples.len().saturating_sub(1) as u64;
        // The live page and a Prometheus scrape once a second.
        let others =
            u64::from(self.watcher.is_some()) + u64::from(self.design.prometheus.is_some());
        let seconds = samples.samples.last().map_or(0, |last| last.at.as_secs());
        answered..=samples.scrapes.max(answered) + others * (seconds + 2)
    }
}

/// The values of the server's metrics. Without a reading after the last answer, or without the
/// counter of requests in it, it is not known how many requests there were.
fn server(samples: &Samples, reset: bool, names: &Names) -> Server {
    let mut server = Server::of(&samples.samples, samples.missed, reset);
    let last = samples.samples.last().map(|sample| &sample.reading);
    let lacks = server.requests_received.is_some()
        && last.is_some_and(|last| last.get(Quantity::Requests).is_none());
    let lacking = names.get(Quantity::Requests).filter(|_| lacks);
    let unread = samples.unread.as_ref().map(|error| format!("{error:#}"));
    server.unread = unread.or(lacking.map(|requests| format!("the page has no metric {requests}")));
    if server.unread.is_some() {
        server.requests_received = None;
    }
    server
}

impl ServingTarget {
    /// Waits until the tasks of the case before are gone, so that they are not in the baseline.
    /// Goes on after 5 s all the same: the baseline is what it is then.
    async fn settle(&mut self) -> Result<()> {
        const TRIES: u32 = 100;
        const EVERY: Duration = Duration::from_millis(50);
        let Some((scraper, idle)) = &mut self.metrics else { return Ok(()) };
        for _ in 0..TRIES {
            if !is_busy(&scraper.scrape_at_last().await?.1, idle) {
                break;
            }
            tokio::time::sleep(EVERY).await;
        }
        Ok(())
    }

    /// The response times of each endpoint so far; none without metrics, or if they cannot be read.
    async fn endpoint_times(&mut self) -> Option<EndpointTimes> {
        self.metrics.as_mut()?.0.endpoint_times().await
    }

    /// When the case begins, and what was read then.
    async fn baseline(&mut self) -> Result<(Instant, Option<(Scraper, Reading)>)> {
        let Some((scraper, _)) = &mut self.metrics else { return Ok((Instant::now(), None)) };
        let (at, reading) = scraper.scrape_at_last().await?;
        Ok((at, Some((scraper.another(), reading))))
    }
}

/// Whether more is under way than when the server was idle.
fn is_busy(now: &Reading, idle: &Reading) -> bool {
    [Quantity::Tasks, Quantity::InFlight]
        .into_iter()
        .any(|of| now.get(of).zip(idle.get(of)).is_some_and(|(now, then)| now > then))
}

/// From this time on the summary of a case has the growth of memory.
const SOAK: Duration = Duration::from_secs(60);

fn summary_line(case: &Case, result: &CaseResult) -> String {
    let client = &result.client;
    let received = result.server.as_ref().and_then(|server| server.requests_received);
    let received = received.map(|received| format!(", received {}", whole(received)));
    let growth = result.server.as_ref().and_then(|server| server.memory_growth);
    // In a shorter time it is that of the first requests.
    let growth = growth.filter(|_| client.seconds >= SOAK.as_secs_f64());
    let growth = growth.map(|growth| format!(", memory {growth}"));
    format!(
        "{case}: sent {}{}, failed {} in {} s{}",
        counted(client.requests_sent, "request"),
        received.unwrap_or_default(),
        whole(client.failed),
        measured(client.seconds),
        growth.unwrap_or_default(),
    )
}

impl fmt::Display for StoppedStudy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |cases: &[String]| match cases {
            [] => "none".to_owned(),
            cases => cases.join(", "),
        };
        write!(f, "finished: {}", list(&self.finished))?;
        if let Some((case, requests, of)) = &self.stopped_in {
            write!(f, "; stopped in {case} after ")?;
            match of {
                Some(of) => write!(f, "{} of {}", whole(*requests), counted(*of, "request"))?,
                None => f.write_str(&counted(*requests, "request"))?,
            }
        }
        write!(f, "; not begun: {}", list(&self.not_begun))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_load::Protocol;
    use talea_load::scenario::Scenario;

    #[test]
    fn a_stopped_study_says_what_is_finished_and_what_is_not() {
        let scenario = Scenario::crud();
        let items = "http://127.0.0.1:1/items".parse().unwrap();
        let design = Design {
            service: Service::Running(Box::new(Addresses { items, metrics: None })),
            cases: ["A", "B", "5x1s"].map(|case| case.parse().unwrap()).to_vec(),
            names: scenario.metrics.names(None).unwrap(),
            scenario: Arc::new(scenario),
            protocol: Protocol::Http1 { keep_alive: true },
            timeout: Duration::from_secs(1),
            seed: 1,
            warm_up: None,
            before_case: None,
            prometheus: None,
            must_count: true,
            quiet: false,
            command: "talea study".to_owned(),
        };
        let meters = Meters::new(1).unwrap();
        let mut run = StudyRun::new(&design, &meters, None);
        assert_eq!(run.unfinished().to_string(), "finished: none; not begun: A, B, 5x1s");
        run.under_way = Some((&design.cases[0], meters.window()));
        assert_eq!(
            run.unfinished().to_string(),
            "finished: none; stopped in A after 0 of 1,000 requests; not begun: B, 5x1s"
        );
        run.under_way = Some((&design.cases[2], meters.window()));
        assert!(run.unfinished().to_string().contains("stopped in 5x1s after 0 requests"));
        let mut stopped = run.unfinished();
        stopped.finished = ["A", "B"].map(str::to_owned).to_vec();
        assert!(stopped.to_string().starts_with("finished: A, B; stopped in 5x1s"), "{stopped}");
        for (of, words) in [(None, "after 1 request;"), (Some(1_000), "after 1 of 1,000 requests;")]
        {
            stopped.stopped_in = Some(("A".to_owned(), 1, of));
            assert!(stopped.to_string().contains(words), "{stopped}");
        }
    }

    #[test]
    fn a_last_reading_without_the_counter_of_requests_does_not_say_how_many_there_were() {
        let names = Scenario::crud().metrics.names(None).unwrap();
        let mut samples = Samples::default();
        let pages = ["http_requests_total 5\n", "http_requests_total 8\n", "x 1\n"];
        let readings = pages.map(|page| Reading::from_text(page, &names).unwrap());
        samples.samples = super::super::series::tests::samples((0..).zip(readings));
        let server = server(&samples, false, &names);
        assert_eq!(server.requests_received, None);
        let words = server.disagreement(10).unwrap();
        assert!(
            words.contains("it is not known how many") && words.contains("http_requests_total")
        );
    }
}
