//! Somebody who looks on while loads are made.

use talea_load::{Meters, Plan, Window};

use super::case_result::CaseResult;
use super::scraper::Scraper;
use crate::families::Quantiles;

/// Is informed of how far a study or a load is.
pub(crate) trait Watcher: Send + Sync {
    /// A subject's cases begin: their names, and what they are in words.
    fn begin_run(&self, subject: &str, cases: Vec<(String, String)>, meters: &Meters);

    /// The service's metrics can be read.
    fn serves(&self, scraper: Scraper);

    /// A case begins, by its number.
    fn begin_case(&self, number: usize, window: &Window, plan: &Plan);

    fn end_case(&self, number: usize, end: &CaseEnd);
}

/// The numbers of a case that has ended.
#[derive(Clone, Debug)]
pub(crate) struct CaseEnd {
    /// Whether no request failed, and both sides agree.
    pub(crate) is_clean: bool,
    pub(crate) seconds: f64,
    pub(crate) sent: u64,
    pub(crate) failed: u64,
    pub(crate) rate: Option<f64>,
    /// By the clients' clocks.
    pub(crate) p50_ms: Option<f64>,
    pub(crate) p90_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
    /// By the server's metrics.
    pub(crate) server: Option<Quantiles>,
}

impl CaseEnd {
    pub(super) fn of(result: &CaseResult) -> Self {
        let client = &result.client;
        Self {
            is_clean: result.is_clean(),
            seconds: client.seconds,
            sent: client.requests_sent,
            failed: client.failed,
            rate: client.mean_rate,
            p50_ms: client.p50_ms,
            p90_ms: client.p90_ms,
            p99_ms: client.p99_ms,
            server: result.server.as_ref().map(|server| server.quantiles.clone()),
        }
    }
}
