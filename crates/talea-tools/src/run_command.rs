//! `talea run`: starts a command with a region of its own, and records how it ended.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use rustix::process::{Pid, kill_process};
use talea::{
    Config, Counter, Family, FloatGauge, Gauge, LabelValue, Labels, Metrics, Registry,
    UpDownCounter,
};
use talea_agent::region_place::region_error;
use talea_region::children_usage;
use talea_view::screen::note;
use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::arguments::RunArguments;
use crate::ending::Ending;

/// What shells return for a command that is there and cannot be run, and for one that is not there.
const NOT_RUN: u8 = 126;
const NOT_FOUND: u8 = 127;

/// How a run ended.
#[derive(Clone, Copy, Debug, LabelValue)]
enum Outcome {
    /// With the exit code 0.
    Success,
    /// With another exit code.
    Failure,
    /// By a signal.
    Signal,
    /// It did not start.
    NotStarted,
}

#[derive(Labels)]
struct OutcomeLabel {
    outcome: Outcome,
}

#[derive(Debug, Metrics)]
#[metrics(prefix = "talea_job")]
struct JobMetrics {
    /// Runs that ended, by their outcome.
    runs: Family<OutcomeLabel, Counter>,
    /// Runs at present.
    running: UpDownCounter,
    /// Exit code of the last run; 128 plus the signal's number if a signal ended it.
    exit_code: Gauge,
    /// When the last run began.
    start_timestamp_seconds: FloatGauge,
    /// When the last run ended.
    end_timestamp_seconds: FloatGauge,
    /// When the last run ended that had the exit code 0.
    success_timestamp_seconds: FloatGauge,
    /// Duration of the last run.
    duration_seconds: FloatGauge,
    /// CPU time of the last run and of the children that it waited for.
    cpu_seconds: FloatGauge,
    /// The most memory that one process of the last run had at once.
    peak_memory_bytes: FloatGauge,
}

/// Runs the command to its end.
/// Fails if the command has no name of which a file's name can be made.
pub(crate) async fn run(arguments: RunArguments) -> Result<Ending> {
    let RunArguments { region, name, group, command } = arguments;
    let (program, rest) = command.split_first().context("found no command")?;
    let name = match name {
        Some(name) => name,
        None => name_of(Path::new(program))?,
    };
    let metrics = JobMetrics::new();
    let mut command = Command::new(program);
    command.args(rest);
    match open(&region.join(format!("{name}.talea")), group, &metrics) {
        Ok(path) => {
            command.env("TALEA_REGION", path);
        }
        // A job does not fail for its metrics.
        Err(error) => {
            note(format_args!("talea run: {error:#}; the command runs without a region"));
        }
    }
    // Before the command starts, so that no signal ends this process alone.
    let signals = Signals::new()?;
    let began = Instant::now();
    metrics.start_timestamp_seconds.set(unix_seconds());
    metrics.running.inc();
    let (code, outcome) = match command.spawn() {
        Ok(child) => ending_of(signals.wait(child).await?),
        Err(error) => {
            note(format_args!(
                "talea run: {} cannot be run: {error}",
                Path::new(program).display()
            ));
            let is_missing = error.kind() == ErrorKind::NotFound;
            (if is_missing { NOT_FOUND } else { NOT_RUN }, Outcome::NotStarted)
        }
    };
    metrics.running.dec();
    metrics.record(code, outcome, began.elapsed());
    Ok(Ending::Code(code))
}

fn name_of(program: &Path) -> Result<String> {
    let name = program.file_name().map(|name| name.to_string_lossy().into_owned());
    name.with_context(|| {
        format!("{} has no file name; name the job with --name", program.display())
    })
}

/// Opens the region of a job, and returns where it is.
fn open(path: &Path, group: Option<u32>, metrics: &JobMetrics) -> Result<PathBuf> {
    let config = match group {
        Some(group) => Config::default().read_by_group(group),
        None => Config::default(),
    };
    let registry = Registry::open_with(path, config).map_err(region_error)?;
    talea::install(&registry, &[metrics])?;
    Ok(std::path::absolute(path)?)
}

impl JobMetrics {
    fn record(&self, code: u8, outcome: Outcome, took: Duration) {
        let (now, used) = (unix_seconds(), children_usage());
        self.runs.with(OutcomeLabel { outcome }).inc();
        self.exit_code.set(code.into());
        self.end_timestamp_seconds.set(now);
        if matches!(outcome, Outcome::Success) {
            self.success_timestamp_seconds.set(now);
        }
        self.duration_seconds.set(took.as_secs_f64());
        self.cpu_seconds.set(used.cpu.as_secs_f64());
        self.peak_memory_bytes.set(used.peak_memory as f64);
    }
}

fn ending_of(status: ExitStatus) -> (u8, Outcome) {
    match (status.code(), status.signal()) {
        (Some(0), _) => (0, Outcome::Success),
        (Some(code), _) => (code as u8, Outcome::Failure),
        (None, signal) => (128 + signal.unwrap_or_default() as u8, Outcome::Signal),
    }
}

fn unix_seconds() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// Signals that are forwarded to the command.
struct Signals {
    /// Those that a terminal sends to the command too.
    of_terminal: [Signal; 2],
    others: [Signal; 4],
}

impl Signals {
    fn new() -> Result<Self> {
        let of_terminal = [signal(SignalKind::interrupt())?, signal(SignalKind::quit())?];
        let others = [
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
            signal(SignalKind::user_defined1())?,
            signal(SignalKind::user_defined2())?,
        ];
        Ok(Self { of_terminal, others })
    }

    /// Waits for the end of a command, and forwards what comes meanwhile.
    async fn wait(mut self, mut child: Child) -> Result<ExitStatus> {
        use rustix::process::Signal as Number;
        let id = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
        let [interrupt, quit] = &mut self.of_terminal;
        let [terminate, hangup, first, second] = &mut self.others;
        loop {
            let number = tokio::select! {
                status = child.wait() => return Ok(status?),
                _ = interrupt.recv() => Number::INT,
                _ = quit.recv() => Number::QUIT,
                _ = terminate.recv() => Number::TERM,
                _ = hangup.recv() => Number::HUP,
                _ = first.recv() => Number::USR1,
                _ = second.recv() => Number::USR2,
            };
            if matches!(number, Number::INT | Number::QUIT) && is_in_foreground() {
                continue;
            }
            // It was not waited for, so the number is still its own.
            if let Some(id) = id {
                let _ = kill_process(id, number);
            }
        }
    }
}

/// Whether a terminal sends the signals of its keys to this process, and so to the command as well.
fn is_in_foreground() -> bool {
    let group = File::open("/dev/tty").ok().and_then(|tty| rustix::termios::tcgetpgrp(tty).ok());
    group == Some(rustix::process::getpgrp())
}
