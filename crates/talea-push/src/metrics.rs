//! The metrics about pushing, in the registry of the process.

use talea::{Combine, Counter, Family, FloatGauge, Gauge, Metric, Opts, Registry};

use crate::error::Error;
use crate::queue::{Load, Reason};
use crate::record::Counts;

/// The label of the receiver.
const TARGET: &str = "target";

/// Why samples were not taken by a receiver that got them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It refused the request for good.
    Refused,
    /// It took the request, and wrote less than the request had.
    NotWritten,
}

/// The metrics of one pusher.
///
/// Each sample of a collection is counted once: as sent, failed, dropped, or as waiting.
pub(crate) struct Metrics {
    target: String,
    sent: Counter,
    exemplars: Counter,
    failed: [Counter; 2],
    dropped: [Counter; 4],
    requests: DynamicResults,
    retries: Counter,
    duplicates: Counter,
    queue_errors: Counter,
    waiting: Gauge,
    bytes: Gauge,
    lag: FloatGauge,
}

/// Requests by the status of their response.
struct DynamicResults(Family<talea::DynamicLabels, Counter>);

impl Metrics {
    pub(crate) fn new(registry: &Registry, target: String) -> Result<Self, Error> {
        let new = New { registry, target: &target };
        let failed = "Samples that the receiver did not take, by reason. They are not sent again.";
        let dropped = "Samples that were dropped before they were sent, by reason.";
        Ok(Self {
            sent: new
                .one("samples_sent", "Samples and native histograms that the receiver took.")?,
            exemplars: new.one("exemplars_sent", "Exemplars that the receiver took.")?,
            failed: new.each(
                "samples_failed",
                failed,
                [Failure::Refused.as_str(), Failure::NotWritten.as_str()],
            )?,
            dropped: new.each(
                "samples_dropped",
                dropped,
                [Reason::Full, Reason::Age, Reason::Disk, Reason::Damaged].map(Reason::as_str),
            )?,
            requests: DynamicResults(
                registry
                    .family(
                        Opts::new(
                            "talea_push_requests",
                            "Requests by the status of their response; 0 without a response.",
                        ),
                        &[TARGET, "status"],
                    )
                    .map_err(Error::Metrics)?,
            ),
            retries: new.one("retries", "Requests that are repeated.")?,
            duplicates: new.one(
                "duplicate_series",
                "Series that were left out, as the page had another of the same labels.",
            )?,
            queue_errors: new.one(
                "queue_write_errors",
                "Collections that the folder of the queue did not take.",
            )?,
            waiting: new.gauge(
                "queue_samples",
                "Samples and native histograms that wait.",
                Combine::Sum,
            )?,
            bytes: new.gauge("queue_bytes", "Bytes that wait, compressed.", Combine::Sum)?,
            lag: new.gauge("lag_seconds", "Age of the oldest sample that waits.", Combine::Max)?,
            target,
        })
    }

    pub(crate) fn response(&self, status: u16) {
        let status = status.to_string();
        self.requests.0.with_values(&[&self.target, &status]).inc();
    }

    pub(crate) fn sent(&self, counts: Counts) {
        self.sent.add(counts.values());
        self.exemplars.add(counts.exemplars);
    }

    pub(crate) fn failed(&self, reason: Failure, counts: Counts) {
        self.failed[reason as usize].add(counts.values());
    }

    pub(crate) fn dropped(&self, reason: Reason, counts: Counts) {
        self.dropped[reason as usize].add(counts.values());
    }

    pub(crate) fn retried(&self) {
        self.retries.inc();
    }

    pub(crate) fn duplicates(&self, count: u64) {
        self.duplicates.add(count);
    }

    pub(crate) fn queue_error(&self) {
        self.queue_errors.inc();
    }

    /// Shows how much waits, at a time in milliseconds since 1970.
    pub(crate) fn load(&self, load: Load, now: i64) {
        self.waiting.set(load.counts.values() as i64);
        self.bytes.set(load.bytes as i64);
        let age = load.oldest.map_or(0, |oldest| now.saturating_sub(oldest).max(0));
        self.lag.set(age as f64 / 1e3);
    }
}

/// Registers metrics of one receiver.
#[derive(Clone, Copy)]
struct New<'a> {
    registry: &'a Registry,
    target: &'a str,
}

impl New<'_> {
    fn family<M: Metric>(
        self,
        name: &str,
        help: &str,
        labels: &[&str],
        combine: Option<Combine>,
    ) -> Result<Family<talea::DynamicLabels, M>, Error> {
        let name = format!("talea_push_{name}");
        let opts = Opts::new(&name, help);
        let opts = combine.map_or(opts, |combine| opts.combine(combine));
        self.registry.family(opts, labels).map_err(Error::Metrics)
    }

    fn one(self, name: &str, help: &str) -> Result<Counter, Error> {
        let family = self.family::<Counter>(name, help, &[TARGET], None)?;
        Ok(family.with_values(&[self.target]).keep())
    }

    fn gauge<M: Metric + Clone>(
        self,
        name: &str,
        help: &str,
        combine: Combine,
    ) -> Result<M, Error> {
        let family = self.family::<M>(name, help, &[TARGET], Some(combine))?;
        Ok(family.with_values(&[self.target]).keep())
    }

    /// A counter for each reason.
    fn each<const N: usize>(
        self,
        name: &str,
        help: &str,
        reasons: [&str; N],
    ) -> Result<[Counter; N], Error> {
        let family = self.family::<Counter>(name, help, &[TARGET, "reason"], None)?;
        Ok(reasons.map(|reason| family.with_values(&[self.target, reason]).keep()))
    }
}

impl Failure {
    fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::NotWritten => "not_written",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_book_names_every_metric_of_a_pusher() {
        let registry = Registry::for_test().unwrap();
        let metrics = Metrics::new(&registry, "a".to_owned()).unwrap();
        metrics.response(200);
        let text = registry.snapshot().to_text();
        let names = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
        let book = include_str!("../../../docs/how-to/push.md");
        let missing: Vec<&str> = names.filter(|name| !book.contains(&format!("`{name}"))).collect();
        assert!(text.contains("talea_push_requests_total{") && missing.is_empty(), "{missing:?}");
    }
}
