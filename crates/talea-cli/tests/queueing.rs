//! Queues: response times of `talea load` against a server whose queue is known. The tests take
//! turns, so that none disturbs another's times.

mod samples;
mod server;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use samples::Sample;
use serde_json::Value;
use server::{Server, text};
use tokio::sync::oneshot;

const TALEA: &str = env!("CARGO_BIN_EXE_talea");

const HELLO: &str = "[[step]]\nname = \"hello\"\nmethod = \"GET\"\npath = \"/hello\"\n";

fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn load(server: &Server, folder: &Path, arguments: &[&str]) -> Output {
    let scenario: PathBuf = folder.join("scenario.toml");
    std::fs::write(&scenario, HELLO).unwrap();
    Command::new(TALEA)
        .args(["load", &format!("http://{}", server.address), "--json", "--scenario"])
        .arg(scenario)
        .args(arguments)
        .output()
        .unwrap()
}

fn summary(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// A server with one worker, which takes 10 ms for each request, one after the other: what
/// arrives while it is busy begins exactly when that ends.
fn one_worker(stalls: bool) -> Server {
    let (queue, work) = mpsc::channel::<(Instant, oneshot::Sender<()>)>();
    std::thread::spawn(move || {
        let (mut served, mut free) = (0, Instant::now());
        for (arrived, done) in work {
            served += 1;
            let takes = if stalls && served == 50 { Duration::from_secs(1) } else { SERVICE };
            free = free.max(arrived) + takes;
            // The system wakes late; the rest is waited for awake.
            let early = free.checked_sub(Duration::from_millis(1)).unwrap();
            std::thread::sleep(early.saturating_duration_since(Instant::now()));
            while Instant::now() < free {
                std::hint::spin_loop();
            }
            let _ = done.send(());
        }
    });
    Server::start(None, move |_| {
        let (done, served) = oneshot::channel();
        queue.send((Instant::now(), done)).unwrap();
        async move {
            served.await.unwrap();
            text("served")
        }
    })
}

const SERVICE: Duration = Duration::from_millis(10);

/// Quantiles of response times, as measured, and as Lindley's recursion has them: who arrives
/// waits for what the one before still had to wait, and its service, less the time between.
/// What a request takes on its way through both programs, and the system takes to wake them, is
/// what those took beyond their service who did not wait.
fn against_lindley(samples: &mut [Sample], of: fn(&Sample) -> (f64, f64)) -> Vec<(f64, f64)> {
    samples.sort_by(|a, b| a.started.total_cmp(&b.started));
    let service = SERVICE.as_secs_f64();
    let (mut measured, mut waits, mut ways) = (Vec::new(), Vec::new(), Vec::new());
    let (mut wait, mut before) = (0.0f64, None::<f64>);
    for sample in samples.iter() {
        let (arrived, took) = of(sample);
        if let Some(before) = before {
            wait = (wait + service - (arrived - before)).max(0.0);
        }
        before = Some(arrived);
        measured.push(took);
        waits.push(wait);
        ways.extend((wait == 0.0).then_some(took - service));
    }
    for times in [&mut measured, &mut waits, &mut ways] {
        times.sort_by(f64::total_cmp);
    }
    let at = |times: &[f64], quantile: f64| {
        times[((times.len() as f64 * quantile) as usize).min(times.len() - 1)]
    };
    // In a closed model all wait but the first, and that may have been overtaken.
    let way = if ways.len() < 20 { 0.0 } else { at(&ways, 0.5) };
    assert!(way < 0.005, "{way} s on the way");
    let expected = |quantile| at(&waits, quantile) + service + way;
    [0.5, 0.9, 0.99].map(|quantile| (at(&measured, quantile), expected(quantile))).to_vec()
}

/// On a busy machine any one run may be disturbed.
fn agrees_with_lindley(arguments: &[&str], of: fn(&Sample) -> (f64, f64)) {
    let _alone = alone();
    let mut told = String::new();
    for _ in 0..5 {
        let server = one_worker(false);
        let folder = tempfile::tempdir().unwrap();
        let csv = folder.path().join("samples.csv");
        let files = ["--samples", csv.to_str().unwrap()];
        let output = load(&server, folder.path(), &[&files, arguments].concat());
        let summary = summary(&output);
        assert_eq!(summary["answers"].as_u64(), Some(server.requests()));
        let quantiles = against_lindley(&mut samples::read(&csv), of);
        let off = |(measured, expected): &(f64, f64)| (measured / expected - 1.0).abs();
        if quantiles.iter().all(|quantile| off(quantile) < 0.03) {
            return;
        }
        told = format!("{told}\n{quantiles:?}");
    }
    panic!("more than 3 % from Lindley's recursion, at p50, p90 and p99:{told}");
}

#[test]
fn waiting_in_an_open_model_is_lindleys() {
    let arguments = ["--rate", "75", "--for", "6s", "--poisson"];
    agrees_with_lindley(&arguments, |sample| {
        (sample.started, sample.took + sample.started - sample.intended)
    });
}

#[test]
fn waiting_in_a_closed_model_is_lindleys() {
    let arguments = ["--clients", "5", "--for", "4s"];
    agrees_with_lindley(&arguments, |sample| (sample.started, sample.took));
}

#[test]
fn a_stall_shows_in_an_open_model() {
    let _alone = alone();
    let (server, folder) = (one_worker(true), tempfile::tempdir().unwrap());
    let summary = summary(&load(&server, folder.path(), &["--rate", "50", "--for", "4s"]));
    // A stall of 1 s meets 50 of 200 arrivals, so that the longest 1 % waited most of it.
    let p99 = summary["client_p99_ms"].as_f64().unwrap();
    assert!((900.0..2000.0).contains(&p99), "{summary}");
    assert_eq!(summary["starved"], 0);
}

#[test]
fn a_generator_that_was_the_limit_says_so() {
    let _alone = alone();
    let (server, folder) = (one_worker(false), tempfile::tempdir().unwrap());
    let arguments = ["--rate", "150", "--for", "1s", "--clients", "2"];
    let summary = summary(&load(&server, folder.path(), &arguments));
    assert_eq!(summary["requests_sent"], 150);
    assert!(summary["starved"].as_u64().unwrap() > 10, "{summary}");
    assert!(summary["limits"][0].as_str().unwrap().contains("found all clients busy"), "{summary}");
    // Who waited for a client waited.
    assert!(summary["client_p99_ms"].as_f64().unwrap() > 300.0, "{summary}");
}
