//! `talea postmortem`: reads a history and a region, prints.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use talea_load::stop::Stop;

use crate::arguments::PostmortemArguments;
use crate::ending::Ending;
use crate::region_command::print_result;
use talea_agent::history::{Extent, History};
use talea_agent::postmortem::{Postmortem, Record, Remains};
use talea_agent::region_place::RegionPlace;
use talea_agent::serve::region_name_of;
use talea_view::screen::note;
use talea_view::write_whole;

/// All that a file has, whatever an agent kept.
const ALL: Extent = Extent { seconds: Duration::MAX, minutes: Duration::MAX, bytes: usize::MAX };

/// Prints what is known of the last seconds of a region. Fails if neither a region nor a history can be
/// read.
pub(crate) async fn run(arguments: PostmortemArguments, stop: Stop) -> Result<Ending> {
    print_result(stop, move || {
        let known = known(&arguments)?;
        if let Some(path) = &arguments.html {
            let written = write_whole(path, known.html().as_bytes());
            written.with_context(|| format!("{} cannot be written", path.display()))?;
        }
        Ok(if arguments.json { known.json()? } else { known.text() })
    })
    .await
}

fn known(arguments: &PostmortemArguments) -> Result<Postmortem> {
    let path = &arguments.region;
    let place = RegionPlace::File(path.clone());
    let region = place.look().and_then(|look| Remains::of(place.to_string(), &look));
    let record = match &arguments.history {
        Some(history) => record(arguments, history).map(Some),
        None => match beside(path).map(|history| record(arguments, &history)).transpose() {
            Err(error) if region.is_ok() => {
                note(format_args!("{error:#}"));
                Ok(None)
            }
            record => record,
        },
    };
    match (region, record?) {
        (Err(error), None) => bail!("{error:#}"),
        (region, record) => Ok(Postmortem { record, region: region.ok() }),
    }
}

fn record(arguments: &PostmortemArguments, history: &Path) -> Result<Record> {
    let own = [rustix::process::geteuid().as_raw()];
    let owners = if arguments.owner.is_empty() { &own[..] } else { &arguments.owner };
    let read = History::read(ALL, history, owners).map_err(with_remedy)?;
    let recorded = read.last_seconds(Duration::MAX);
    let name = region_name_of(&arguments.region);
    let found = Record::of(&recorded, &name, &arguments.region_label, arguments.last);
    found.with_context(|| {
        format!("the history {} has nothing of a region {name:?}", history.display())
    })
}

fn with_remedy(error: anyhow::Error) -> anyhow::Error {
    let error = format!("{error:#}");
    match error.contains("belongs to the user") {
        true => anyhow!("{error}; if you trust that user, name it with --owner"),
        false => anyhow!(error),
    }
}

/// The history beside a region, `shop.talea.history`, if there is one.
fn beside(region: &Path) -> Option<PathBuf> {
    let mut path = region.as_os_str().to_owned();
    path.push(".history");
    let path = PathBuf::from(path);
    path.exists().then_some(path)
}
