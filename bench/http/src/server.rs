//! The service under load, in a process of its own.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::cores;

/// How long it may take to start, and to end.
const WITHIN: Duration = Duration::from_secs(10);

/// A running server. It ends when its standard input closes, so also if this process is
/// killed.
pub(crate) struct Server {
    pub(crate) id: u32,
    pub(crate) address: SocketAddr,
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Server {
    pub(crate) async fn start(core: usize) -> Result<Self> {
        let program = std::env::current_exe()?.with_file_name("talea-hello");
        let mut command = Command::new(&program);
        command
            .args(["metered", "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut child = cores::start_on(core, &mut command)
            .with_context(|| format!("starting {}", program.display()))?;
        let id = child.id().context("the server has ended")?;
        let input = child.stdin.take().context("the server has no standard input")?;
        let output = child.stdout.take().context("the server has no standard output")?;
        let mut output = BufReader::new(output).lines();
        let address =
            timeout(WITHIN, output.next_line()).await.context("starting the server")??;
        let address = address.context("the server ended before it served")?.parse()?;
        Ok(Self { id, address, child, input, output })
    }

    /// Ends it; returns the number of requests that it has counted.
    pub(crate) async fn stop(self) -> Result<u64> {
        let Self { mut child, input, mut output, .. } = self;
        drop(input);
        let ended = async {
            let count = output.next_line().await?.context("it has counted nothing")?.parse()?;
            let status = child.wait().await?;
            ensure!(status.success(), "the server ended with {status}");
            Ok(count)
        };
        timeout(WITHIN, ended).await.context("ending the server")?
    }
}
