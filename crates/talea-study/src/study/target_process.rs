//! A service that the study starts itself, in a child process.

use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use talea_load::Target;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, Lines, Take, copy, sink};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::design::{AddressSource, Addresses, Program};
use super::process_group::ProcessGroup;
use talea_view::screen::note;

/// How long the target may take from its start until it accepts requests.
const STARTS_WITHIN: Duration = Duration::from_secs(60);
/// How long it may take to finish after it was asked to.
const ENDS_WITHIN: Duration = Duration::from_secs(12);
/// The bytes kept of the end of its standard error.
const LAST_WORDS: usize = 4096;
/// The bytes read of what it prints before it accepts requests.
const FIRST_WORDS: u64 = 4096;

/// The lines that name the target's addresses.
type FirstLines = Lines<BufReader<Take<ChildStdout>>>;

/// The running target. It ends when its standard input closes, so also when this process dies.
pub(super) struct TargetProcess {
    child: Child,
    /// The processes that it starts are in its group too.
    group: ProcessGroup,
    addresses: AddressSource,
    /// Open as long as the target is to run. Kept apart: waiting for a child closes what it holds.
    input: Option<ChildStdin>,
    output: Option<FirstLines>,
    errors: Arc<Mutex<Vec<u8>>>,
    /// Reads the errors; none once it has been waited for.
    reader: Option<JoinHandle<()>>,
}

impl TargetProcess {
    pub(super) async fn start(program: &Program) -> Result<Self> {
        if let AddressSource::Beforehand(addresses) = &program.addresses {
            for target in addresses.all() {
                ensure_free(target).await?;
            }
        }
        let mut command = Command::new(&program.path);
        command
            .args(&program.arguments)
            .envs(program.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        // A Ctrl-C on the terminal is for the study, which ends the target in good order.
        #[cfg(unix)]
        command.process_group(0);
        let path = program.path.display();
        let mut child = command.spawn().with_context(|| format!("{path} cannot be started"))?;
        let input = child.stdin.take();
        let output = child.stdout.take().context("the target has no standard output")?;
        let errors = child.stderr.take().context("the target has no standard error")?;
        let kept = Arc::new(Mutex::new(Vec::new()));
        Ok(Self {
            group: ProcessGroup::of(&child),
            child,
            addresses: program.addresses.clone(),
            input,
            output: Some(BufReader::new(output.take(FIRST_WORDS)).lines()),
            reader: Some(tokio::spawn(keep_last_words(errors, kept.clone()))),
            errors: kept,
        })
    }

    /// Waits until the target says that it accepts requests, and where.
    pub(super) async fn ready(&mut self) -> Result<Addresses> {
        let mut lines = self.output.take().context("the target was ready before")?;
        let ready = async {
            match &self.addresses {
                AddressSource::ByItself => {
                    let items = address(&mut lines, "items on ").await?;
                    let metrics = address(&mut lines, "metrics on ").await?;
                    discard(lines);
                    Ok(Addresses { items, metrics: Some(metrics) })
                }
                AddressSource::Beforehand(addresses) => {
                    discard(lines);
                    tokio::select! {
                        () = accept(addresses) => Ok(Addresses::clone(addresses)),
                        _ = self.child.wait() => bail!("the target ended"),
                    }
                }
            }
        };
        timeout(STARTS_WITHIN, ready).await.unwrap_or_else(|_| {
            let seconds = STARTS_WITHIN.as_secs();
            Err(anyhow!("the target did not accept requests within {seconds} s"))
        })
    }

    /// Waits until the target ends, which it should not, and says how it did.
    pub(super) async fn died(&mut self) -> anyhow::Error {
        match self.child.wait().await {
            Ok(status) => self.obituary(status).await,
            Err(error) => anyhow!(error).context("cannot wait for the target to end"),
        }
    }

    pub(super) async fn cause_of_death(&mut self) -> Option<anyhow::Error> {
        timeout(Duration::from_secs(1), self.died()).await.ok()
    }

    /// Ends the target in good order, or by force where it does not heed, and what it started.
    pub(super) async fn stop(mut self) {
        drop(self.input.take());
        if matches!(self.addresses, AddressSource::Beforehand(_)) {
            self.group.terminate();
        }
        if timeout(ENDS_WITHIN, self.child.wait()).await.is_err() {
            let seconds = ENDS_WITHIN.as_secs();
            note(format_args!("warning: the target did not end within {seconds} s and is killed"));
            if let Err(error) = self.child.kill().await {
                note(format_args!("warning: the target cannot be killed: {error}"));
            }
        }
        self.group.ended().await;
    }

    async fn obituary(&mut self, status: ExitStatus) -> anyhow::Error {
        if let Some(reader) = self.reader.take() {
            // A grandchild may hold the pipe open: then what was read so far must do.
            let _ = timeout(Duration::from_millis(500), reader).await;
        }
        let words = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        match String::from_utf8_lossy(&words).trim() {
            "" => anyhow!("the target ended ({status}) without output"),
            words => anyhow!("the target ended ({status}); its output:\n{words}"),
        }
    }
}

/// Fails if a service is there before the target starts: it would be measured in the target's place.
async fn ensure_free(target: &Target) -> Result<()> {
    match timeout(Duration::from_secs(1), target.connect()).await {
        Ok(Ok(_)) => {
            bail!("another service serves at {target} already: end it, or use another port")
        }
        _ => Ok(()),
    }
}

/// Waits until all accept connections.
async fn accept(addresses: &Addresses) {
    for target in addresses.all() {
        while target.connect().await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// The program's answer to `--version`. Another program than the items API may serve at once, whatever
/// its arguments are: it is not asked.
pub(super) async fn version(program: &Program) -> String {
    if matches!(program.addresses, AddressSource::Beforehand(_)) {
        return "unknown".to_owned();
    }
    let mut command = Command::new(&program.path);
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

async fn address(lines: &mut FirstLines, before: &str) -> Result<Target> {
    let line = lines.next_line().await.context("the target's output cannot be read")?;
    let Some(line) = line else {
        bail!("the target closed its output, expected a line \"{before}http://…\"");
    };
    let url = line
        .strip_prefix(before)
        .with_context(|| format!("the target printed {line:?}, expected \"{before}http://…\""))?;
    url.trim().parse().map_err(|error| anyhow!("the target printed {line:?}: {error}"))
}

/// Reads all further output, so that it does not fill the pipe and stop the target.
fn discard(lines: FirstLines) {
    let mut output = lines.into_inner().into_inner().into_inner();
    tokio::spawn(async move { copy(&mut output, &mut sink()).await });
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

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[cfg(unix)]
    #[tokio::test]
    async fn a_first_line_without_an_end_is_given_up_at_a_bound() {
        let program = Program {
            path: PathBuf::from("sh"),
            arguments: vec!["-c".into(), "head -c 1000000 /dev/zero | tr '\\0' x".into()],
            environment: Vec::new(),
            addresses: AddressSource::ByItself,
        };
        let mut target = TargetProcess::start(&program).await.unwrap();
        let error = target.ready().await.err().unwrap().to_string();
        assert!(error.contains("the target printed \"xxx"), "{error}");
        assert!(error.len() < 3 * FIRST_WORDS as usize, "{} bytes of it are kept", error.len());
        target.stop().await;
    }
}
