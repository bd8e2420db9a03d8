//! Queues: response times of `talea load` against a server whose queue is known.
//!
//! The time of a request beyond its service and its wait depends on other work on the machine. So
//! nothing is compared with a time that was expected: the server notes when each request came and
//! when its answer went out, and what the clients say has to lie between these, however busy the
//! machine is.

use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::oneshot;

use crate::support::counting_server::{Server, text};
use crate::support::sample_file::Sample;
use crate::support::{HELLO_SCENARIO, printed_json, sample_file, talea};

fn load(server: &Server, folder: &Path, arguments: &[&str]) -> Value {
    let scenario = folder.join("scenario.toml");
    std::fs::write(&scenario, HELLO_SCENARIO).unwrap();
    let (url, scenario) = (format!("http://{}", server.address), scenario.to_str().unwrap());
    let load = ["load", &url, "--json", "--scenario", scenario];
    printed_json(&talea([&load, arguments].concat()))
}

/// How long the worker takes for a request.
const SERVICE: Duration = Duration::from_millis(10);
/// How long it takes for the one that stalls it.
const STALL: Duration = Duration::from_secs(1);
/// Sample files have whole microseconds.
const ROUNDING: f64 = 3e-6;

/// A server with one worker, which takes 10 ms or more for each request, one after the other.
struct OneWorker {
    server: Server,
    /// When each request came, and when its answer could go out.
    notes: Arc<Mutex<[Vec<Instant>; 2]>>,
}

impl OneWorker {
    /// One that is stalled by the request of that number, from 0.
    fn start(stalls_at: Option<usize>) -> Self {
        let notes: Arc<Mutex<[Vec<Instant>; 2]>> = Arc::default();
        let (queue, work) = mpsc::channel::<(Instant, oneshot::Sender<()>)>();
        let done_notes = notes.clone();
        std::thread::spawn(move || {
            let mut free = Instant::now();
            for (n, (arrived, done)) in work.into_iter().enumerate() {
                // Where the system wakes it late, the next one begins as if it had not.
                free = free.max(arrived) + service(n, stalls_at);
                std::thread::sleep(free.saturating_duration_since(Instant::now()));
                done_notes.lock().unwrap()[1].push(Instant::now());
                let _ = done.send(());
            }
        });
        let came_notes = notes.clone();
        let server = Server::start(None, move |_| {
            let (done, served) = oneshot::channel();
            let arrived = Instant::now();
            came_notes.lock().unwrap()[0].push(arrived);
            queue.send((arrived, done)).unwrap();
            async move {
                served.await.unwrap();
                text("served")
            }
        });
        Self { server, notes }
    }

    /// When requests came and when answers went out, each in order, in seconds since the first.
    fn noted(&self) -> [Vec<f64>; 2] {
        let mut notes = self.notes.lock().unwrap().clone();
        notes.iter_mut().for_each(|times| times.sort());
        let first = notes[0][0];
        notes.map(|times| times.iter().map(|time| (*time - first).as_secs_f64()).collect())
    }
}

fn service(n: usize, stalls_at: Option<usize>) -> Duration {
    if stalls_at == Some(n) { STALL } else { SERVICE }
}

/// A load of one worker: its summary and its samples, of which all agrees with the notes of the
/// worker and with Lindley's recursion.
fn loaded(stalls_at: Option<usize>, arguments: &[&str]) -> (Value, Vec<Sample>) {
    let worker = OneWorker::start(stalls_at);
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("samples.csv");
    let files = ["--samples", csv.to_str().unwrap()];
    let summary = load(&worker.server, folder.path(), &[&files, arguments].concat());
    let samples = sample_file::read(&csv);
    assert_eq!(summary["answers"].as_u64(), Some(worker.server.requests()));
    assert_eq!(summary["answers"].as_u64(), Some(samples.len() as u64));
    let at_once = summary["clients"].as_u64().unwrap() as usize;
    lies_between_the_notes(&samples, &worker.noted(), at_once);
    is_no_shorter_than_lindleys(&samples, stalls_at);
    is_summed_up(&samples, &summary);
    (summary, samples)
}

fn sorted(times: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut times: Vec<f64> = times.collect();
    times.sort_by(f64::total_cmp);
    times
}

/// No request came before its client says that it was sent; no answer had been read before it went
/// out; no client goes on before it says that it has the answer. So, of `at_once` clients, the k-th
/// answer went out before the k-th end and before the start that is `at_once` later, and the k-th
/// end comes before the arrival that is `at_once` later. When the clients' clock began, the server
/// does not know, but it is one instant for all.
fn lies_between_the_notes(samples: &[Sample], [came, went]: &[Vec<f64>; 2], at_once: usize) {
    let started = sorted(samples.iter().map(|sample| sample.started));
    let ended = sorted(samples.iter().map(end));
    let later = |times: &[f64]| times.get(at_once..).unwrap_or_default().to_vec();
    let differences = |of: &[f64], less: &[f64]| -> Vec<f64> {
        of.iter().zip(less).map(|(of, less)| of - less).collect()
    };
    let at_least = [differences(went, &ended), differences(went, &later(&started))].concat();
    let at_most = [differences(came, &started), differences(&later(came), &ended)].concat();
    let at_least = at_least.into_iter().fold(f64::NEG_INFINITY, f64::max);
    let at_most = at_most.into_iter().fold(f64::INFINITY, f64::min);
    assert!(at_least <= at_most + ROUNDING, "the clients' clock began {at_least} s to {at_most} s");
    assert!(samples.iter().all(|sample| sample.started >= sample.intended));
}

fn end(sample: &Sample) -> f64 {
    sample.started + sample.took
}

/// Lindley's recursion: a request waits for what the one before it still had to wait, and its
/// service, less the time between the two. Whatever comes later than intended or takes longer only
/// delays those behind it, so the k-th end is never before the k-th of the recursion.
fn is_no_shorter_than_lindleys(samples: &[Sample], stalls_at: Option<usize>) {
    let intended = sorted(samples.iter().map(|sample| sample.intended));
    let ended = sorted(samples.iter().map(end));
    let mut free = f64::NEG_INFINITY;
    for (n, (intended, ended)) in intended.iter().zip(&ended).enumerate() {
        free = free.max(*intended) + service(n, stalls_at).as_secs_f64();
        assert!(*ended >= free - ROUNDING, "answer {n} ends at {ended} s, and not before {free} s");
    }
}

/// The summary's mean and quantiles are those of the samples, from when each was intended.
/// Quantiles of it are within 1.08 %, and may be those of a rank beside.
fn is_summed_up(samples: &[Sample], summary: &Value) {
    let times = sorted(samples.iter().map(|sample| sample.response * 1e3));
    for sample in samples {
        let response = end(sample) - sample.intended;
        assert!((sample.response - response).abs() <= ROUNDING, "{response} s");
    }
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    let shown = |name: &str| summary[name].as_f64().unwrap();
    assert!((shown("client_mean_ms") / mean - 1.0).abs() < 1e-3, "{mean}: {summary}");
    for (name, quantile) in
        [("client_p50_ms", 0.5), ("client_p90_ms", 0.9), ("client_p99_ms", 0.99)]
    {
        let rank = (times.len() as f64 * quantile) as usize;
        let (low, high) = (rank.saturating_sub(2), (rank + 2).min(times.len() - 1));
        let expected = times[low] * 0.98..times[high] * 1.02;
        assert!(expected.contains(&shown(name)), "{name}: {expected:?}: {summary}");
    }
}

#[test]
fn waiting_in_an_open_model_is_lindleys() {
    let arguments = ["--rate", "75", "--for", "4s", "--poisson", "--clients", "3"];
    let (_, samples) = loaded(None, &arguments);
    assert!(samples.len() > 200);
}

#[test]
fn waiting_in_a_closed_model_is_lindleys() {
    let (_, samples) = loaded(None, &["--clients", "5", "--iterations", "60"]);
    assert_eq!(samples.len(), 300);
}

#[test]
fn a_stall_shows_in_an_open_model() {
    // A stall of 1 s meets 50 of 200 arrivals, so that the longest 1 % waited most of it.
    let (summary, _) = loaded(Some(49), &["--rate", "50", "--for", "4s"]);
    assert_eq!(summary["requests_sent"], 200);
    assert!(summary["client_p99_ms"].as_f64().unwrap() > 900.0, "{summary}");
    assert_eq!(summary["starved"], 0, "there are more clients than requests");
}

#[test]
fn a_generator_that_was_the_limit_says_so() {
    let (summary, _) = loaded(None, &["--rate", "150", "--for", "1s", "--clients", "2"]);
    assert_eq!(summary["requests_sent"], 150);
    assert!(summary["starved"].as_u64().unwrap() > 10, "{summary}");
    let limits = summary["limits"].as_array().unwrap();
    assert!(
        limits.iter().any(|limit| limit.as_str().unwrap().contains("found all clients busy")),
        "{summary}"
    );
    // A request that waited for a client waited.
    assert!(summary["client_p99_ms"].as_f64().unwrap() > 300.0, "{summary}");
}
