//! A real Prometheus beside the study's own samples: its samples are evaluated as those are, and it
//! is asked the queries of "Phoenix Concurrency" as they stand there.

mod api;
mod differences;
mod process;
mod queries;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use talea_load::scenario::{Names, Quantity, Selector};

use self::api::{Api, Series, now};
pub(super) use self::differences::differences;
use self::process::PrometheusProcess;
use super::case_result::Query;
use super::design::{Addresses, PrometheusSource};
use super::reading::{Column, Reading};
use super::series::{Counters, Sample};
use super::server::Server;

/// How long a scrape may take to arrive at Prometheus.
const SCRAPED_WITHIN: Duration = Duration::from_secs(30);
const ASK_EVERY: Duration = Duration::from_millis(50);

/// A Prometheus that scrapes the service.
pub(super) struct Prometheus {
    api: Api,
    names: Arc<Names>,
    /// Labels that the service's series have there.
    labels: String,
    /// A metric that the service has all the time: its samples show that a scrape has arrived.
    probe: Selector,
    started: Option<PrometheusProcess>,
}

pub(super) struct PrometheusResult {
    pub(super) server: Server,
    pub(super) queries: Vec<Query>,
}

impl Prometheus {
    /// Reaches, or starts, the Prometheus of the design. `idle` are the service's metrics at rest.
    pub(super) async fn of(
        source: &PrometheusSource,
        addresses: &Addresses,
        names: Arc<Names>,
        idle: &Reading,
    ) -> Result<Self> {
        let Some(metrics) = &addresses.metrics else {
            bail!(
                "a Prometheus has nothing to scrape: name the service's metrics by --metrics-url"
            );
        };
        let reported =
            names.all().find(|(of, _)| *of != Quantity::Duration && idle.get(*of).is_some());
        let probe = reported.map(|(_, selector)| selector.clone());
        let probe = probe.context("the service has no metric to query in Prometheus")?;
        let (target, labels, started) = match source {
            PrometheusSource::Running(target, labels) => ((**target).clone(), labels.clone(), None),
            PrometheusSource::Started(program, tls) => {
                let started = PrometheusProcess::begin(program, metrics, tls).await?;
                (started.target.clone(), String::new(), Some(started))
            }
        };
        let mut prometheus = Self { api: Api::new(target), names, labels, probe, started };
        let since = now();
        let seen = prometheus.scraped_since(since).await;
        seen.with_context(|| format!("it should scrape {metrics}"))?;
        Ok(prometheus)
    }

    /// Waits until what was scraped after this instant is there, and gives when that was, in
    /// seconds since 1970.
    pub(super) async fn scraped(&mut self) -> Result<f64> {
        self.scraped_since(now()).await
    }

    async fn scraped_since(&mut self, since: f64) -> Result<f64> {
        // Of all targets, if there are several; those that are gone have no series any more.
        let probe = self.selected(&self.probe);
        let query = format!("min(timestamp({probe}))");
        let begun = std::time::Instant::now();
        while begun.elapsed() < SCRAPED_WITHIN {
            let last = self.api.number(&query, now()).await?;
            if last.is_some_and(|last| last >= since) {
                // Once the latest of them has come, all have.
                let query = format!("max(timestamp({probe}))");
                return self
                    .api
                    .number(&query, now())
                    .await?
                    .context("its samples have disappeared");
            }
            tokio::time::sleep(ASK_EVERY).await;
        }
        bail!(
            "{} has no new samples of {probe} after {} s",
            self.api.target,
            SCRAPED_WITHIN.as_secs()
        )
    }

    /// Its results of a case: from a scrape before it to one after it, in seconds since 1970.
    /// Whether high-water marks were reset before.
    pub(super) async fn case_result(
        &mut self,
        from: f64,
        to: f64,
        reset: bool,
        sampled: &Server,
    ) -> Result<PrometheusResult> {
        let samples = self.samples(from, to).await?;
        let server = Server::of(&samples, 0, reset);
        let queries = queries::all(&self.names, |selector| self.selected(selector));
        let mut asked = Vec::new();
        for query in queries {
            let text = query.text(to - from);
            let found = query.ask(&mut self.api, &text, from, to).await?;
            asked.push(Query {
                title: query.title.to_owned(),
                unit: query.unit.to_owned(),
                query: text,
                found,
                sampled: (query.sampled)(sampled),
            });
        }
        Ok(PrometheusResult { server, queries: asked })
    }

    /// Ends it, if the study started it.
    pub(super) async fn stop(self) {
        if let Some(started) = self.started {
            started.stop().await;
        }
    }

    /// All that it scraped from the one instant to the other, as the study's own samples are.
    /// Targets are scraped at different instants: the last values of each are put together.
    async fn samples(&mut self, from: f64, to: f64) -> Result<Vec<Sample>> {
        let columns = self.columns(from, to).await?;
        let all = columns.iter().flat_map(|(_, series)| series).flat_map(|it| &it.values);
        let instants: BTreeSet<i64> = all.map(|(at, _)| *at).collect();
        let begun = (from * 1e3).round() as i64;
        let mut counters = Counters::default();
        Ok(instants
            .into_iter()
            .map(|at| {
                let mut reading = Reading::default();
                for (column, series) in &columns {
                    for (series, value) in series.iter().filter_map(|it| Some((it, it.at(at)?))) {
                        reading.add(*column, series.labels(), value, self.names.seconds());
                    }
                }
                let since = u64::try_from(at - begun).unwrap_or_default();
                counters.sample(Duration::from_millis(since), reading)
            })
            .collect())
    }

    async fn columns(&mut self, from: f64, to: f64) -> Result<Vec<(Column, Vec<Series>)>> {
        let mut columns = Vec::new();
        let names = Arc::clone(&self.names);
        for (quantity, selector) in names.all() {
            if quantity != Quantity::Duration {
                let series = self.api.raw(&self.selected(selector), from, to).await?;
                columns.push((Column::Value(quantity), series));
                continue;
            }
            for (column, ending) in [(Column::Count, "_count"), (Column::Sum, "_sum")] {
                let selected = self.selected(&selector.ending(ending));
                columns.push((column, self.api.raw(&selected, from, to).await?));
            }
            let selected = self.selected(&selector.ending("_bucket"));
            for series in self.api.raw(&selected, from, to).await? {
                let threshold = series.label("le").and_then(|le| le.parse::<f64>().ok());
                columns.extend(threshold.map(|it| (Column::AtMost(it), vec![series])));
            }
        }
        Ok(columns)
    }

    /// A selector with the labels that the service's series have there.
    fn selected(&self, selector: &Selector) -> String {
        let text = selector.to_string();
        match (self.labels.as_str(), text.strip_suffix('}')) {
            ("", _) => text,
            (labels, Some(open)) => format!("{open},{labels}}}"),
            (labels, None) => format!("{text}{{{labels}}}"),
        }
    }
}
