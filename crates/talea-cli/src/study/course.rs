//! The course of a study: case after case, and how far it got.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};

use super::Design;
use super::case::Case;
use super::finding::Finding;
use super::reading::Reading;
use super::sampler::Sampler;
use super::scraper::Scraper;
use super::subject::{Addresses, Subject};
use crate::figures::{counted, measured, whole};
use crate::load::{self, Meters, Model, Protocol, Until, Window};
use crate::progress::Progress;
use crate::scenario::Scenario;
use crate::stop::Stop;

/// A study on its way. What it found stays when it is stopped.
pub(super) struct Course<'a> {
    design: &'a Design,
    scenario: Arc<Scenario>,
    meters: Meters,
    findings: Vec<Finding>,
    scrapes: u64,
    under_way: Option<(&'a Case, Window)>,
}

/// The subject once it serves: where, how it is read, and how it was before any client came.
struct Served {
    addresses: Addresses,
    scraper: Scraper,
    idle: Reading,
}

/// How far a study got that was stopped.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// The cases that were finished.
    pub finished: Vec<String>,
    /// The case that was under way, how many of its requests were done, and of how many.
    pub stopped_in: Option<(String, u64, u64)>,
    /// The cases that had not begun.
    pub not_begun: Vec<String>,
}

impl<'a> Course<'a> {
    pub(super) fn new(design: &'a Design) -> Result<Self> {
        Ok(Self {
            design,
            scenario: Arc::new(Scenario::crud()),
            meters: Meters::new()?,
            findings: Vec::new(),
            scrapes: 0,
            under_way: None,
        })
    }

    /// Runs all cases, unless the subject dies.
    pub(super) async fn run(&mut self, subject: &mut Subject) -> Result<()> {
        let addresses = subject.ready().await?;
        tokio::select! {
            ran = self.run_cases(addresses) => ran,
            death = subject.died() => Err(death),
        }
    }

    pub(super) fn into_findings(self) -> Vec<Finding> {
        self.findings
    }

    /// How many scrapes were sent.
    pub(super) fn scrapes(&self) -> u64 {
        self.scrapes
    }

    pub(super) fn unfinished(&self) -> Unfinished {
        let ids = |cases: &[Case]| cases.iter().map(|case| case.id.clone()).collect();
        let cases = &self.design.cases;
        let finished = self.findings.len();
        let begun = finished + usize::from(self.under_way.is_some());
        let stopped_in = self.under_way.as_ref();
        Unfinished {
            finished: ids(&cases[..finished]),
            stopped_in: stopped_in
                .map(|(case, window)| (case.id.clone(), window.requests_done(), case.requests())),
            not_begun: ids(&cases[begun..]),
        }
    }

    async fn run_cases(&mut self, addresses: Addresses) -> Result<()> {
        let mut scraper = Scraper::new(addresses.metrics.clone());
        let (_, idle) = scraper.scrape().await?;
        let mut served = Served { addresses, scraper, idle };
        for case in &self.design.cases {
            let window = self.meters.window();
            self.under_way = Some((case, window.clone()));
            let finding = self.run_case(case, &window, &mut served).await;
            let finding = finding.with_context(|| case.to_string())?;
            eprintln!("{}", told(case, &finding));
            self.under_way = None;
            self.findings.push(finding);
        }
        self.scrapes += served.scraper.scrapes();
        Ok(())
    }

    async fn run_case(
        &mut self,
        case: &Case,
        window: &Window,
        served: &mut Served,
    ) -> Result<Finding> {
        let plan = load::Plan {
            target: served.addresses.items.clone(),
            scenario: self.scenario.clone(),
            model: Model::Closed {
                clients: case.clients,
                until: Until::Iterations(case.iterations),
            },
            protocol: Protocol::Http1 { keep_alive: true },
            timeout: self.design.timeout,
            seed: 1,
            samples: false,
        };
        served.settle().await?;
        served.scraper.reset().await?;
        let baseline = served.scraper.scrape().await?;

        let progress = Progress::begin(&case.to_string(), plan.requests(), window.clone());
        let sampler = Sampler::begin(served.addresses.metrics.clone(), baseline)?;
        let outcome = load::run(&plan, window, Stop::never()).await;
        let outcome = outcome.map_err(|told| anyhow!(told))?;
        let samples = sampler.end().await?;
        progress.end();

        self.scrapes += samples.scrapes;
        Ok(Finding::new(case, &self.scenario, &outcome, &samples))
    }
}

impl Served {
    /// Waits until the tasks of the case before are gone, so that they are not in the baseline. Goes
    /// on after 5 s all the same: the baseline is what it is then.
    async fn settle(&mut self) -> Result<()> {
        const TRIES: u32 = 100;
        const EVERY: Duration = Duration::from_millis(50);
        for _ in 0..TRIES {
            let (_, reading) = self.scraper.scrape().await?;
            if reading.tasks_alive <= self.idle.tasks_alive {
                break;
            }
            tokio::time::sleep(EVERY).await;
        }
        Ok(())
    }
}

fn told(case: &Case, finding: &Finding) -> String {
    format!(
        "{case}: sent {}, received {}, failed {} in {} s",
        counted(finding.requests_sent, "request"),
        whole(finding.requests_received),
        whole(finding.failed),
        measured(finding.client_seconds),
    )
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |cases: &[String]| match cases {
            [] => "none".to_owned(),
            cases => cases.join(", "),
        };
        write!(f, "finished: {}", list(&self.finished))?;
        if let Some((case, requests, of)) = &self.stopped_in {
            let (requests, of) = (whole(*requests), whole(*of));
            write!(f, "; stopped in {case} after {requests} of {of} requests")?;
        }
        write!(f, "; not begun: {}", list(&self.not_begun))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_study_says_what_is_finished_and_what_is_not() {
        let design = Design {
            cases: ["A", "B", "C"].map(|case| case.parse().unwrap()).to_vec(),
            api: "items-api".into(),
            timeout: Duration::from_secs(1),
        };
        let mut course = Course::new(&design).unwrap();
        assert_eq!(course.unfinished().to_string(), "finished: none; not begun: A, B, C");
        course.under_way = Some((&design.cases[0], course.meters.window()));
        assert_eq!(
            course.unfinished().to_string(),
            "finished: none; stopped in A after 0 of 1,000 requests; not begun: B, C"
        );
    }
}
