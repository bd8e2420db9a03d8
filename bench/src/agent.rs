//! `talea serve`, as it was built with this program.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

/// An agent that serves a region; it ends when it is dropped.
pub(crate) struct Agent {
    pub(crate) process: Child,
    pub(crate) address: SocketAddr,
}

impl Agent {
    pub(crate) fn serve_with(region: &Path, more: &[&OsStr]) -> Result<Self> {
        let program = std::env::current_exe()?.with_file_name("talea");
        let mut command = Command::new(&program);
        command.arg("serve").arg(region).args(["--listen", "127.0.0.1:0"]).args(more);
        let mut process =
            command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().with_context(|| {
                let program = program.display();
                format!("starting {program}; cargo build --release -p talea-tools makes it")
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
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
