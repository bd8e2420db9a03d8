//! The result of a load.

use std::time::Duration;

use talea::HistogramSnapshot;

use super::health::Health;
use super::samples::Sample;
use super::tally::Tally;

#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub tally: Tally,
    /// From the start of the first client to the end of the last, connecting included.
    pub elapsed: Duration,
    /// Time from the start of a request to the end of its answer's body, of every answer that was
    /// read to its end, whatever its status. Connecting is not part of it. In an open model the
    /// scenario's first request counts from when it was to be made, so that waiting for a client
    /// or a connection is part of it.
    pub response_times: HistogramSnapshot,
    /// These times of each step of the scenario.
    pub step_times: Vec<HistogramSnapshot>,
    /// Whether a signal stopped the clients before they were done.
    pub interrupted: bool,
    /// How the generator itself fared.
    pub health: Health,
    /// A sample of each request, if the plan asks for them.
    pub samples: Vec<Sample>,
}

impl Outcome {
    /// Requests sent a second; none when nothing was sent.
    pub(crate) fn mean_rate(&self) -> Option<f64> {
        let seconds = self.elapsed.as_secs_f64();
        (self.tally.sent > 0 && seconds > 0.0).then(|| self.tally.sent as f64 / seconds)
    }

    /// A quantile of the response times in milliseconds; none when nothing was answered.
    pub(crate) fn quantile_ms(&self, quantile: f64) -> Option<f64> {
        self.response_times.quantile(quantile).map(|seconds| seconds * 1e3)
    }
}
