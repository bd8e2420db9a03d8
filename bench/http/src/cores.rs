//! The cores of child processes.

use std::io;

use anyhow::{Result, bail};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tokio::process::{Child, Command};

/// A core for each side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub(crate) server: usize,
    pub(crate) generator: usize,
}

/// The cores that this process may run on.
fn allowed() -> io::Result<Vec<usize>> {
    let allowed = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core)).collect())
}

pub(crate) fn pair() -> Result<Pair> {
    match allowed()?[..] {
        [server, generator, ..] => Ok(Pair { server, generator }),
        _ => bail!("two cores are needed: one for the server and one for the generator"),
    }
}

/// Starts a child on this core. All its threads stay there.
pub(crate) fn start_on(core: usize, command: &mut Command) -> io::Result<Child> {
    // It inherits the cores of this thread, so it never runs elsewhere.
    let before = sched_getaffinity(None)?;
    let mut only = CpuSet::new();
    only.set(core);
    sched_setaffinity(None, &only)?;
    let child = command.spawn();
    sched_setaffinity(None, &before)?;
    child
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    #[tokio::test]
    async fn a_child_stays_on_its_core_and_its_parent_does_not_move() {
        let before = allowed().unwrap();
        let mut command = Command::new("cat");
        command.arg("/proc/self/status").stdout(Stdio::piped()).kill_on_drop(true);
        for &core in &before {
            let child = start_on(core, &mut command).unwrap();
            let output = child.wait_with_output().await.unwrap();
            let status = String::from_utf8(output.stdout).unwrap();
            let line = status.lines().find(|line| line.starts_with("Cpus_allowed_list:"));
            assert_eq!(line, Some(format!("Cpus_allowed_list:\t{core}").as_str()));
        }
        assert_eq!(allowed().unwrap(), before);
    }
}
