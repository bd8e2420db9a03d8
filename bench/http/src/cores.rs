//! Which cores children run on.

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

/// The first two cores that this process may run on.
pub(crate) fn pair() -> Result<Pair> {
    let allowed = sched_getaffinity(None)?;
    let mut cores = (0..CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core));
    match (cores.next(), cores.next()) {
        (Some(server), Some(generator)) => Ok(Pair { server, generator }),
        _ => bail!("two cores are needed: one for the server and one for wrk"),
    }
}

/// Starts a child on this core, or on any where none is named. All its threads stay there.
pub(crate) fn start_on(core: Option<usize>, command: &mut Command) -> io::Result<Child> {
    let Some(core) = core else { return command.spawn() };
    // It inherits the cores of this thread, so there is no moment in which it runs elsewhere.
    let before = sched_getaffinity(None)?;
    let mut only = CpuSet::new();
    only.set(core);
    sched_setaffinity(None, &only)?;
    let child = command.spawn();
    sched_setaffinity(None, &before)?;
    child
}
