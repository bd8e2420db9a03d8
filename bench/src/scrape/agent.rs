//! Scrapes of an agent, and their cost.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::agent::Agent;
use crate::memory;

/// How long a scrape waits for data.
const PATIENCE: Duration = Duration::from_secs(30);

impl Agent {
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
