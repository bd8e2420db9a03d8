//! The service under study, in a child process of its own.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::load::Target;

/// How long the subject may take from its start to its two lines.
const STARTS_WITHIN: Duration = Duration::from_secs(60);
/// How long it may take to finish once its standard input is closed.
const ENDS_WITHIN: Duration = Duration::from_secs(12);
/// How much of its last words is kept.
const LAST_WORDS: usize = 4096;

/// The running subject. It ends when its standard input closes, so also when this process dies.
pub(super) struct Subject {
    child: Child,
    /// Open as long as the subject is to run. Kept apart: waiting for a child closes what it holds.
    input: Option<ChildStdin>,
    output: Option<Lines<BufReader<ChildStdout>>>,
    errors: Arc<Mutex<Vec<u8>>>,
    /// Reads the errors; none once it has been waited for.
    reader: Option<JoinHandle<()>>,
}

/// Where the subject serves.
#[derive(Clone, Debug)]
pub(super) struct Addresses {
    pub(super) items: Target,
    pub(super) metrics: Target,
}

impl Subject {
    /// Starts the program on free ports of the loopback.
    pub(super) fn start(program: &Path) -> Result<Self> {
        let mut command = Command::new(program);
        command
            .args(["--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0", "--study"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        // A Ctrl-C on the terminal is for the study, which ends the subject in good order.
        #[cfg(unix)]
        command.process_group(0);
        let mut child =
            command.spawn().with_context(|| format!("{} cannot be started", program.display()))?;
        let input = child.stdin.take();
        let output = child.stdout.take().context("the subject has no standard output")?;
        let errors = child.stderr.take().context("the subject has no standard error")?;
        let kept = Arc::new(Mutex::new(Vec::new()));
        Ok(Self {
            child,
            input,
            output: Some(BufReader::new(output).lines()),
            reader: Some(tokio::spawn(keep_last_words(errors, kept.clone()))),
            errors: kept,
        })
    }

    /// Waits until the subject says that it accepts requests, and where.
    pub(super) async fn ready(&mut self) -> Result<Addresses> {
        let mut lines = self.output.take().context("the subject was ready before")?;
        let told = timeout(STARTS_WITHIN, async {
            let items = address(&mut lines, "items on ").await?;
            let metrics = address(&mut lines, "metrics on ").await?;
            anyhow::Ok(Addresses { items, metrics })
        });
        let addresses = told.await.map_err(|_| {
            anyhow!("the subject did not accept requests within {} s", STARTS_WITHIN.as_secs())
        })??;
        // What else it prints must not fill the pipe and stop it.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(addresses)
    }

    /// Waits until the subject ends, which it should not, and says how it did.
    pub(super) async fn died(&mut self) -> anyhow::Error {
        match self.child.wait().await {
            Ok(status) => self.obituary(status).await,
            Err(error) => anyhow!(error).context("the subject cannot be waited for"),
        }
    }

    /// Why the subject died, if it did.
    pub(super) async fn cause_of_death(&mut self) -> Option<anyhow::Error> {
        timeout(Duration::from_secs(1), self.died()).await.ok()
    }

    /// Ends the subject in good order, or by force where it does not heed.
    pub(super) async fn stop(mut self) {
        drop(self.input.take());
        if timeout(ENDS_WITHIN, self.child.wait()).await.is_err() {
            let seconds = ENDS_WITHIN.as_secs();
            eprintln!("warning: the subject did not end within {seconds} s and is killed");
            if let Err(error) = self.child.kill().await {
                eprintln!("warning: the subject cannot be killed: {error}");
            }
        }
    }

    async fn obituary(&mut self, status: ExitStatus) -> anyhow::Error {
        if let Some(reader) = self.reader.take() {
            // A grandchild may hold the pipe open: then what was read so far must do.
            let _ = timeout(Duration::from_millis(500), reader).await;
        }
        let words = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        match String::from_utf8_lossy(&words).trim() {
            "" => anyhow!("the subject died ({status}) without a word"),
            words => anyhow!("the subject died ({status}); it said:\n{words}"),
        }
    }
}

/// What the program answers to `--version`.
pub(super) async fn version(program: &Path) -> String {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).kill_on_drop(true);
    let answer = timeout(Duration::from_secs(5), command.output()).await;
    match answer {
        Ok(Ok(output)) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout);
            text.lines().next().unwrap_or_default().trim().to_owned()
        }
        _ => "unknown".to_owned(),
    }
}

async fn address(lines: &mut Lines<BufReader<ChildStdout>>, before: &str) -> Result<Target> {
    let line = lines.next_line().await.context("the subject's output cannot be read")?;
    let Some(line) = line else {
        bail!("the subject ended its output, expected a line \"{before}http://…\"");
    };
    let url = line
        .strip_prefix(before)
        .with_context(|| format!("the subject printed {line:?}, expected \"{before}http://…\""))?;
    url.trim().parse().map_err(|error| anyhow!("the subject printed {line:?}: {error}"))
}

async fn keep_last_words(mut errors: ChildStderr, kept: Arc<Mutex<Vec<u8>>>) {
    let mut part = [0; 1024];
    while let Ok(read @ 1..) = errors.read(&mut part).await {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&part[..read]);
        let surplus = kept.len().saturating_sub(LAST_WORDS);
        kept.drain(..surplus);
    }
}
