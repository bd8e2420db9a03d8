//! A real Prometheus as a second witness: what it scraped goes through the same reckoning as the
//! study's own samples, and the queries of "Phoenix Concurrency" are put to it as they stand there.

mod api;
mod differences;
mod queries;
mod started;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};

use self::api::Api;
pub(super) use self::differences::differences;
use self::started::Started;
use super::design::{Addresses, Witness};
use super::finding::Query;
use super::reading::Reading;
use super::series::Sample;
use super::server::Server;
use crate::scenario::{Names, Quantity, Selector};

/// How long a scrape may take to arrive at Prometheus.
const SCRAPED_WITHIN: Duration = Duration::from_secs(30);
const ASK_EVERY: Duration = Duration::from_millis(50);

/// A Prometheus that scrapes the service.
pub(super) struct Prometheus {
    api: Api,
    names: Arc<Names>,
    /// Labels that the service's series have there.
    labels: String,
    /// By which it is told that a scrape has arrived: a metric that the service has all the time.
    pulse: Selector,
    started: Option<Started>,
}

/// What Prometheus says of a case.
pub(super) struct Testimony {
    pub(super) server: Server,
    pub(super) queries: Vec<Query>,
}

impl Prometheus {
    /// Reaches, or starts, the one that the design asks for. What the service tells is `idle`.
    pub(super) async fn of(
        witness: &Witness,
        addresses: &Addresses,
        names: Arc<Names>,
        idle: &Reading,
    ) -> Result<Self> {
        let Some(metrics) = &addresses.metrics else {
            bail!("a Prometheus has nothing to scrape: name the service's metrics, --metrics-url");
        };
        let told = names.all().find(|(of, _)| *of != Quantity::Duration && idle.get(*of).is_some());
        let pulse = told.map(|(_, selector)| selector.clone());
        let pulse = pulse.context("the service tells nothing that a Prometheus could be asked")?;
        let (target, labels, started) = match witness {
            Witness::At(target, labels) => ((**target).clone(), labels.clone(), None),
            Witness::Started(program) => {
                let started = Started::begin(program, metrics).await?;
                (started.target.clone(), String::new(), Some(started))
            }
        };
        let mut prometheus = Self { api: Api::new(target), names, labels, pulse, started };
        let since = now();
        let seen = prometheus.scraped_since(since).await;
        seen.with_context(|| format!("it is to scrape {metrics}"))?;
        Ok(prometheus)
    }

    /// Waits until what was scraped after this instant is there, and gives when that was, in seconds
    /// since 1970.
    pub(super) async fn scraped(&mut self) -> Result<f64> {
        self.scraped_since(now()).await
    }

    async fn scraped_since(&mut self, since: f64) -> Result<f64> {
        let query = format!("max(timestamp({}))", self.selected(&self.pulse));
        let begun = std::time::Instant::now();
        while begun.elapsed() < SCRAPED_WITHIN {
            let last = self.api.number(&query, now()).await?;
            if let Some(last) = last.filter(|last| *last >= since) {
                return Ok(last);
            }
            tokio::time::sleep(ASK_EVERY).await;
        }
        bail!(
            "{} has no new samples of {} after {} s",
            self.api.target(),
            self.selected(&self.pulse),
            SCRAPED_WITHIN.as_secs()
        )
    }

    /// What it says of a case: from a scrape before it to one after it, in seconds since 1970.
    /// Whether high-water marks were reset before.
    pub(super) async fn testify(
        &mut self,
        from: f64,
        to: f64,
        reset: bool,
        sampled: &Server,
    ) -> Result<Testimony> {
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
        Ok(Testimony { server, queries: asked })
    }

    /// Ends it, if the study started it.
    pub(super) async fn stop(self) {
        if let Some(started) = self.started {
            started.stop().await;
        }
    }

    /// All that it scraped from the one instant to the other, as the study's own samples are.
    async fn samples(&mut self, from: f64, to: f64) -> Result<Vec<Sample>> {
        let mut readings: BTreeMap<i64, Reading> = BTreeMap::new();
        let (time, sum) = ((from, to), |one: f64, other: f64| one + other);
        let names = Arc::clone(&self.names);
        for (quantity, selector) in names.all() {
            if quantity != Quantity::Duration {
                for (at, value) in
                    self.raw(selector, |one, other| quantity.together(one, other), time).await?
                {
                    readings.entry(at).or_default().set(quantity, Some(value));
                }
                continue;
            }
            for (at, value) in self.raw(&selector.ending("_count"), sum, time).await? {
                let reading = readings.entry(at).or_default();
                reading.set(quantity, Some(value));
                reading.durations.count = value;
            }
            for (at, value) in self.raw(&selector.ending("_sum"), sum, time).await? {
                readings.entry(at).or_default().durations.sum = value * names.seconds();
            }
            let buckets = self.selected(&selector.ending("_bucket"));
            for series in self.api.raw(&buckets, from, to).await? {
                let threshold = series.label("le").and_then(|le| le.parse::<f64>().ok());
                let Some(threshold) = threshold.map(|it| it * names.seconds()) else { continue };
                for (at, value) in series.values {
                    readings.entry(at).or_default().durations.add(threshold, value);
                }
            }
        }
        let begun = (from * 1e3).round() as i64;
        let sample = |(at, reading): (i64, Reading)| {
            let since = u64::try_from(at - begun).unwrap_or_default();
            Sample { at: Duration::from_millis(since), reading }
        };
        Ok(readings.into_iter().map(sample).collect())
    }

    /// What a selector's series come to at each scrape.
    async fn raw(
        &mut self,
        selector: &Selector,
        together: impl Fn(f64, f64) -> f64,
        (from, to): (f64, f64),
    ) -> Result<Vec<(i64, f64)>> {
        let mut all: BTreeMap<i64, f64> = BTreeMap::new();
        for series in self.api.raw(&self.selected(selector), from, to).await? {
            for (at, value) in series.values {
                all.entry(at).and_modify(|it| *it = together(*it, value)).or_insert(value);
            }
        }
        Ok(all.into_iter().collect())
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

/// Seconds since 1970.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}
