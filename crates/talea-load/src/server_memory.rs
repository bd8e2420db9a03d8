//! The memory of a server's processes on this machine while a load runs.

use std::fmt;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use talea_statistics::MemoryGrowth;
use talea_statistics::figures::bytes;

const SAMPLE_EVERY: Duration = Duration::from_millis(100);
/// A long load has fewer samples: each time between two is at least this part of the time that has passed.
const FINENESS: u32 = 6_000;

/// A watch over the resident memory of processes. It ends when it is dropped.
#[derive(Debug)]
pub struct MemoryWatch {
    end: Sender<()>,
    thread: JoinHandle<ServerMemory>,
}

/// The resident memory of a server's processes during a load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerMemory {
    /// The most at once, of all processes together.
    pub peak_bytes: u64,
    /// Its growth; none if a process ended, or the load was too short.
    pub growth: Option<MemoryGrowth>,
    /// Whether a process ended meanwhile.
    pub ended: bool,
    /// How many processes there were.
    pub processes: u64,
}

/// A process, and when it was started: another one may get its number.
#[derive(Clone, Copy, Debug)]
struct Process {
    pid: u32,
    started: u64,
}

impl MemoryWatch {
    /// Begins to watch processes by their numbers.
    /// Fails if one of them is not there, or its memory cannot be read.
    pub fn begin(pids: &[u32]) -> io::Result<Self> {
        let processes = pids.iter().map(|pid| Process::of(*pid)).collect::<io::Result<Vec<_>>>()?;
        for process in &processes {
            process.resident_bytes()?;
        }
        let (end, ended) = channel();
        let thread = std::thread::Builder::new().name("memory".to_owned());
        let thread = thread.spawn(move || watch(&processes, &ended))?;
        Ok(Self { end, thread })
    }

    /// What was seen until now.
    pub fn end(self) -> ServerMemory {
        drop(self.end);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Samples until the sender is dropped, and once more then.
fn watch(processes: &[Process], ended: &Receiver<()>) -> ServerMemory {
    let begun = Instant::now();
    let mut samples: Vec<(f64, f64)> = Vec::new();
    let mut seen = ServerMemory { processes: processes.len() as u64, ..ServerMemory::default() };
    loop {
        let at = begun.elapsed();
        let is_last = ended.recv_timeout(SAMPLE_EVERY.max(at / FINENESS))
            != Err(std::sync::mpsc::RecvTimeoutError::Timeout);
        let resident = processes.iter().map(|process| process.resident_bytes());
        match resident.sum::<io::Result<u64>>() {
            Ok(resident) => {
                seen.peak_bytes = seen.peak_bytes.max(resident);
                samples.push((begun.elapsed().as_secs_f64(), resident as f64));
            }
            Err(_) => seen.ended = true,
        }
        if is_last {
            seen.growth = MemoryGrowth::of(&samples).filter(|_| !seen.ended);
            return seen;
        }
    }
}

impl Process {
    fn of(pid: u32) -> io::Result<Self> {
        let stat = read(pid, "stat")?;
        Ok(Self { pid, started: start_time(&stat).ok_or(io::ErrorKind::InvalidData)? })
    }

    /// Fails if it has ended.
    fn resident_bytes(self) -> io::Result<u64> {
        let status = read(self.pid, "status")?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        let is_same = Self::of(self.pid)?.started == self.started;
        kib.filter(|_| is_same).map(|kib| kib * 1024).ok_or(io::ErrorKind::NotFound.into())
    }
}

fn read(pid: u32, file: &str) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/{file}"))?).into_owned())
}

/// The time at which a process was started, in ticks since the machine was; its name may have spaces and brackets.
fn start_time(stat: &str) -> Option<u64> {
    let (_, behind_name) = stat.rsplit_once(')')?;
    behind_name.split_whitespace().nth(19)?.parse().ok()
}

impl fmt::Display for ServerMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "peak {}", bytes(self.peak_bytes))?;
        if self.processes > 1 {
            write!(f, " of {} processes", self.processes)?;
        }
        match (&self.growth, self.ended) {
            (Some(growth), _) => write!(f, "; {growth}"),
            (None, true) => f.write_str("; a process ended"),
            (None, false) => Ok(()),
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_a_memory_until_it_ends_and_its_number_alone_is_not_it() {
        let this = Process::of(std::process::id()).unwrap();
        assert!(this.resident_bytes().unwrap() > 100_000);
        let other = Process { started: this.started + 1, ..this };
        assert!(other.resident_bytes().is_err(), "it is another process");
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let process = Process::of(child.id()).unwrap();
        assert!(process.resident_bytes().is_ok());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(process.resident_bytes().is_err());
        assert!(MemoryWatch::begin(&[std::process::id(), child.id()]).is_err());
    }

    #[test]
    fn a_name_with_brackets_does_not_move_the_fields() {
        let fields: Vec<String> = (3..=52).map(|field| field.to_string()).collect();
        let stat = format!("7 (a) b) c) {}", fields.join(" "));
        assert_eq!(start_time(&stat), Some(22));
    }
}
