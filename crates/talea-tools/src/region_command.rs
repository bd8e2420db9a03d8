//! The common parts of commands on one region: the arguments that name it, and printing the result.

use anyhow::{Context, Result, bail};
use talea::outside::{FamilyFacts, Look};
use talea_load::stop::Stop;

use crate::arguments::{RegionFamilies, RegionSource};
use crate::ending::Ending;
use talea_agent::region_place::RegionPlace;
use talea_view::screen;

impl RegionSource {
    pub(crate) fn place(&self) -> Result<RegionPlace> {
        match (&self.region, self.pid) {
            (Some(path), None) => {
                let number = path.to_str().and_then(|text| text.parse().ok());
                Ok(number.map_or_else(|| RegionPlace::File(path.clone()), RegionPlace::Process))
            }
            (None, Some(pid)) => Ok(RegionPlace::Process(pid)),
            _ => bail!("found no region, or two; name a file, or a process with --pid"),
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
            "found no family {name:?} among the {} in the region, and nothing was done; expected a \
             name as in a scrape, which `talea inspect` lists",
            look.families.len()
        );
    }
    Ok(look.families.iter().filter(|it| names.is_empty() || names.contains(&it.name)).collect())
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
        said = receive => said.context("failed")??,
        () = stop.requested() => return Ok(Ending::Interrupted),
    };
    screen::write(said.as_bytes()).context("standard output")?;
    Ok(Ending::Clean)
}
