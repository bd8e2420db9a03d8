//! The common parts of commands on one region: finding it, and printing the result.

use std::io::{self, ErrorKind, Write};
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use talea::outside::{FamilyFacts, Look, Reader};
use talea::{OpenError, Registry};
use talea_load::stop::Stop;

use crate::arguments::{RegionFamilies, RegionSource, User};
use crate::ending::Ending;

/// A region that is there.
pub(crate) enum RegionPlace<'a> {
    File(&'a Path),
    Process(u32),
}

impl<'a> RegionPlace<'a> {
    pub(crate) fn of(which: &'a RegionSource) -> Result<Self> {
        match (&which.region, which.pid) {
            (Some(path), None) => Ok(Self::File(path)),
            (None, Some(pid)) => Ok(Self::Process(pid)),
            _ => bail!("found no region, or two; name a file, or a process with --pid"),
        }
    }

    /// Opens the region for reading, without taking part.
    pub(crate) fn open(&self) -> Result<Reader> {
        match self {
            Self::File(path) => Reader::open(path).map_err(region_error),
            Self::Process(pid) => {
                Reader::of_process(*pid).map_err(region_error).with_context(|| self.expected())
            }
        }
    }

    /// What the region holds.
    pub(crate) fn look(&self) -> Result<Look> {
        self.open()?.look().map_err(region_error)
    }

    /// Takes part, as long as this process lives. A file is one of these owners, if any are named.
    pub(crate) fn attach(&self, owners: &[User]) -> Result<Registry> {
        match self {
            Self::File(path) if owners.is_empty() => Registry::attach(path).map_err(region_error),
            Self::File(path) => {
                let owners: Vec<u32> = owners.iter().map(|owner| owner.0).collect();
                Registry::attach_owned_by(path, &owners).map_err(region_error)
            }
            Self::Process(pid) => Registry::attach_to_process(*pid)
                .map_err(region_error)
                .with_context(|| self.expected()),
        }
    }

    fn expected(&self) -> String {
        format!(
            "{self}: expected one of yours that has a region in memory; if it has one in a file, \
             name that"
        )
    }
}

impl std::fmt::Display for RegionPlace<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Process(pid) => write!(f, "process {pid}"),
        }
    }
}

/// The families that are asked for: those that are named, or all.
pub(crate) fn chosen<'a>(
    look: &'a Look,
    affected: &RegionFamilies,
) -> Result<Vec<&'a FamilyFacts>> {
    let names = &affected.families;
    let missing = names.iter().find(|name| look.families.iter().all(|it| it.name != **name));
    if let Some(name) = missing {
        bail!(
            "found no family {name:?} among the {} that are there, and nothing was done; expected \
             a name as a scrape has it, which `talea inspect` lists",
            look.families.len()
        );
    }
    let is_chosen = |it: &&FamilyFacts| names.is_empty() || names.contains(&it.name);
    Ok(look.families.iter().filter(is_chosen).collect())
}

/// An error of a region, which states all of its cause itself.
pub(crate) fn region_error(error: talea::Error) -> anyhow::Error {
    match &error {
        talea::Error::Open(OpenError::System { source, .. })
            if source.kind() == ErrorKind::PermissionDenied =>
        {
            anyhow!("{error}; run it as the user that the service runs as")
        }
        talea::Error::Open(OpenError::Untrusted { .. }) => {
            anyhow!("{error}; if you trust the user that it belongs to, name that with --owner")
        }
        _ => anyhow!("{error}"),
    }
}

/// Prints the result of `work`. It runs on a thread of its own. If a signal comes first, nobody
/// waits for the thread: a region survives the death of a process that works in it.
pub(crate) async fn print_result(
    mut stop: Stop,
    work: impl FnOnce() -> Result<String> + Send + 'static,
) -> Result<Ending> {
    let (send, receive) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        // Nobody may be there any more.
        let _ = send.send(work());
    });
    let said = tokio::select! {
        said = receive => said.context("it could not be done")??,
        () = stop.requested() => return Ok(Ending::Interrupted),
    };
    match io::stdout().lock().write_all(said.as_bytes()) {
        // The work is done, and the reader has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        printed => printed.context("standard output")?,
    }
    Ok(Ending::Clean)
}
