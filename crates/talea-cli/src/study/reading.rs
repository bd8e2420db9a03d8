//! What a study reads from the service's metrics.

use anyhow::{Context, Result};
use talea::parse::{self, Sample};

const REQUESTS: &str = "http_requests_total";
const DURATION_SUM: &str = "http_request_duration_seconds_sum";
const DURATION_COUNT: &str = "http_request_duration_seconds_count";
const TASKS_ALIVE: &str = "server_tasks_alive";
const TASKS_ALIVE_PEAK: &str = "server_tasks_alive_peak";
const TASKS_READY: &str = "server_tasks_ready";
const TASKS_READY_PEAK: &str = "server_tasks_ready_peak";
const CPU_SECONDS: &str = "process_cpu_seconds_total";

/// The service's numbers at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reading {
    /// Requests counted since the service started, of all routes and statuses.
    pub requests: u64,
    /// Seconds spent on all measured requests.
    pub duration_sum: f64,
    /// How many requests were measured.
    pub duration_count: u64,
    /// Server tasks that exist.
    pub tasks_alive: u64,
    /// The most that existed at once since the last reset.
    pub tasks_alive_peak: u64,
    /// Server tasks that are woken and not yet polled.
    pub tasks_ready: u64,
    /// The most that were ready at once since the last reset.
    pub tasks_ready_peak: u64,
    /// CPU time of the service's process.
    pub cpu_seconds: f64,
}

impl Reading {
    /// Reads the text exposition format.
    ///
    /// # Errors
    /// When the text cannot be parsed, or names the first metric that is missing.
    pub fn from_text(text: &str) -> Result<Self> {
        let samples = parse::text(text).context("the metrics are not in the text format")?;
        let sum = |name| sum(&samples, name);
        Ok(Self {
            requests: whole(sum(REQUESTS)?),
            duration_sum: sum(DURATION_SUM)?,
            duration_count: whole(sum(DURATION_COUNT)?),
            tasks_alive: whole(sum(TASKS_ALIVE)?),
            tasks_alive_peak: whole(sum(TASKS_ALIVE_PEAK)?),
            tasks_ready: whole(sum(TASKS_READY)?),
            tasks_ready_peak: whole(sum(TASKS_READY_PEAK)?),
            cpu_seconds: sum(CPU_SECONDS)?,
        })
    }
}

/// The sum of a metric over all its series.
fn sum(samples: &[Sample], name: &str) -> Result<f64> {
    let mut series = samples.iter().filter(|sample| sample.name == name).peekable();
    series.peek().with_context(|| {
        format!(
            "no metric {name} among {} samples: is the service metered by Talea?",
            samples.len()
        )
    })?;
    Ok(series.map(|sample| sample.value).sum())
}

/// A count that was printed as a float. Below zero there is none.
fn whole(value: f64) -> u64 {
    value.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"# TYPE http_requests_total counter
http_requests_total{method="GET",route="/api/items",status="2xx"} 40
http_requests_total{method="GET",route="/api/items",status="5xx"} 2
http_request_duration_seconds_sum{method="GET",route="/api/items"} 1.5
http_request_duration_seconds_count{method="GET",route="/api/items"} 42
server_tasks_alive 7
server_tasks_alive_peak 12
server_tasks_ready 0
server_tasks_ready_peak 5
process_cpu_seconds_total 0.25
"#;

    #[test]
    fn requests_are_summed_over_routes_and_statuses() {
        let reading = Reading::from_text(TEXT).unwrap();
        assert_eq!(reading.requests, 42);
        assert_eq!((reading.duration_sum, reading.duration_count), (1.5, 42));
        assert_eq!((reading.tasks_alive_peak, reading.tasks_ready_peak), (12, 5));
        assert_eq!(reading.cpu_seconds, 0.25);
    }

    #[test]
    fn a_missing_metric_is_named() {
        let text = TEXT.replace("server_tasks_ready_peak 5\n", "");
        let error = Reading::from_text(&text).unwrap_err().to_string();
        assert!(error.contains("server_tasks_ready_peak"), "{error}");
    }

    #[test]
    fn what_is_not_metrics_is_refused() {
        assert!(Reading::from_text("<html>").is_err());
    }
}
