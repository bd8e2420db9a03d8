//! The metrics of a load that others read while it runs, in the file of a region.
//!
//! They are apart from those that the load itself reads: several loads may publish in one file.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use hyper::StatusCode;
use talea::{
    Counter, DynamicLabels, Family, Histogram, InFlightGuard, Opts, Registry, Seconds,
    UpDownCounter,
};

use crate::plan::Plan;
use crate::scenario::Step;

const LABELS: [&str; 3] = ["method", "route", "server"];
const BY_STATUS: [&str; 4] = ["method", "route", "server", "status"];
/// The status of requests without a response.
const NO_RESPONSE: &str = "none";

/// Published metrics; clones share them.
#[derive(Clone)]
pub(super) struct Published {
    steps: Arc<[StepMeters]>,
    requests: Family<DynamicLabels, Counter>,
    late: Histogram<Seconds>,
}

struct StepMeters {
    labels: [String; 3],
    times: Histogram<Seconds>,
    failed: Counter,
    in_flight: UpDownCounter,
}

/// The path of a step that has no name of its own, or its name.
fn route(step: &Step, plan: &Plan) -> String {
    let path = step.name.strip_prefix(step.method.as_str()).map(str::trim_start);
    match path.filter(|path| path.is_empty() || path.starts_with('/')) {
        Some(path) => format!("{}{path}", plan.target.path().path().trim_end_matches('/')),
        None => step.name.clone(),
    }
}

impl Published {
    /// Those of a plan's load. Fails when the file cannot be one of a region, or has metrics of other kinds.
    pub(super) fn open(path: &Path, plan: &Plan) -> Result<Self> {
        let registry = Registry::open(path).with_context(|| format!("--region {path:?}"))?;
        let help = "Time from when a request was due to the end of its response.";
        let times = registry.family::<Histogram<Seconds>>(
            Opts::new("load_request_duration_seconds", help),
            &LABELS,
        )?;
        let help = "Requests by the status of their response; none if they had no response.";
        let requests =
            registry.family::<Counter>(Opts::new("load_requests_total", help), &BY_STATUS)?;
        let help = "Requests that failed, by the scenario's expectations and checks.";
        let failed =
            registry.family::<Counter>(Opts::new("load_requests_failed_total", help), &LABELS)?;
        let help = "Requests that were sent and have not ended.";
        let in_flight = registry
            .family::<UpDownCounter>(Opts::new("load_requests_in_flight", help), &LABELS)?;
        let help = "Time from when a request was due to when a client took it, in an open model.";
        let late = registry.register(Opts::new("load_lateness_seconds", help))?;
        let server = plan.target.host_header().to_str().unwrap_or_default();
        let steps = plan.scenario.steps.iter().map(|step| {
            let labels = [step.method.as_str(), &route(step, plan), server].map(str::to_owned);
            StepMeters {
                times: times.with_values(&labels).keep(),
                failed: failed.with_values(&labels).keep(),
                in_flight: in_flight.with_values(&labels).keep(),
                labels,
            }
        });
        Ok(Self { steps: steps.collect(), requests, late })
    }

    pub(super) fn in_flight(&self, step: usize) -> InFlightGuard {
        self.steps[step].in_flight.in_flight_guard()
    }

    pub(super) fn answered(&self, step: usize, status: StatusCode, took: Duration) {
        self.steps[step].times.observe(took);
        self.count(step, status.as_str());
    }

    pub(super) fn unanswered(&self, step: usize) {
        self.count(step, NO_RESPONSE);
    }

    pub(super) fn failed(&self, step: usize) {
        self.steps[step].failed.inc();
    }

    pub(super) fn late(&self, late: Duration) {
        self.late.observe(late);
    }

    fn count(&self, step: usize, status: &str) {
        let [method, route, server] = &self.steps[step].labels;
        self.requests.with_values(&[method, route, server, status]).inc();
    }
}
