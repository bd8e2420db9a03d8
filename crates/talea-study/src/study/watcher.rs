//! Somebody who looks on while loads are made.

use talea_load::{Meters, Plan, Window};

use super::case_result::CaseResult;
use super::scraper::Scraper;

/// Is informed of how far a study or a load is.
pub trait Watcher: Send + Sync {
    /// A subject's cases begin: their names, and what they are in words.
    fn begin_run(&self, subject: &str, cases: Vec<(String, String)>, meters: &Meters);

    /// The service's metrics can be read.
    fn serves(&self, scraper: Scraper);

    /// A case begins, by its number.
    fn begin_case(&self, number: usize, window: &Window, plan: &Plan);

    fn end_case(&self, number: usize, result: &CaseResult);
}
