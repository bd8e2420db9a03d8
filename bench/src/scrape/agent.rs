//! `talea serve`, and a client of it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::memory;

/// How long a scrape waits for data.
const PATIENCE: Duration = Duration::from_secs(30);

/// An agent that serves a region; it ends when it is dropped.
pub(super) struct Agent {
    process: Child,
    address: SocketAddr,
}

impl Agent {
    /// Starts the agent that was built with this program.
    pub(super) fn serve(region: &Path) -> Result<Self> {
        let this = std::env::current_exe().context("finding this program")?;
        let program = this.with_file_name("talea");
        let mut process = Command::new(&program)
            .arg("serve")
            .arg(region)
            .args(["--listen", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| {
                format!(
                    "starting {}; cargo build --release -p talea-cli makes it",
                    program.display()
                )
            })?;
        let stderr = process.stderr.take().context("the agent has no standard error")?;
        let mut stderr = BufReader::new(stderr).lines();
        let address = stderr.by_ref().find_map(|line| {
            let line = line.ok()?;
            line.split_once("listening on http://")?.1.split('/').next()?.parse().ok()
        });
        let Some(address) = address else {
            let _ = process.kill();
            anyhow::bail!("the agent did not say where it listens");
        };
        // Its further output is read, so that it never waits.
        std::thread::spawn(move || {
            stderr.for_each(|line| drop(line.map(|line| eprintln!("{line}"))))
        });
        Ok(Self { process, address })
    }

    /// Scrapes all metrics, and hands over the answer piece by piece, its head included.
    pub(super) fn scrape(&self, buffer: &mut [u8], mut take: impl FnMut(&[u8])) -> Result<()> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        // The answer ends with the connection, and has no chunks.
        stream.write_all(b"GET /metrics HTTP/1.0\r\nhost: talea\r\n\r\n")?;
        let mut is_first = true;
        loop {
            let count = stream.read(buffer)?;
            if std::mem::take(&mut is_first) {
                ensure!(buffer.starts_with(b"HTTP/1.0 200"), "the agent refused");
            }
            if count == 0 {
                return Ok(());
            }
            take(&buffer[..count]);
        }
    }

    /// The CPU time that it took so far. Its resolution is that of the system's clock ticks.
    pub(super) fn cpu_ns(&self) -> Result<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.process.id()))?;
        // The name, the second figure, may contain spaces.
        let after = stat.rsplit_once(')').context("/proc/PID/stat has no name")?.1;
        let ticks: Vec<f64> =
            after.split_whitespace().skip(11).take(2).map(str::parse).collect::<Result<_, _>>()?;
        let per_second = rustix::param::clock_ticks_per_second() as f64;
        Ok(ticks.iter().sum::<f64>() / per_second * 1e9)
    }

    /// The most bytes of memory that it ever had.
    pub(super) fn peak_bytes(&self) -> Result<f64> {
        Ok(memory::figure(self.process.id(), "VmHWM:")? as f64)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
