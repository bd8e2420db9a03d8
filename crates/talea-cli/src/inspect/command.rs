//! `talea inspect`: opens, looks, prints.

use std::io::{self, BufWriter, ErrorKind, Write};

use anyhow::{Context, Result, anyhow, bail};
use talea::outside::Reader;

use super::{Inspection, table};
use crate::arguments::InspectArguments;
use crate::stop::{Ending, Stop};

/// Looks into a region and prints what was found to standard output.
///
/// # Errors
/// When the region cannot be read, or has no family of the name that was asked for.
pub async fn run(arguments: InspectArguments, mut stop: Stop) -> Result<Ending> {
    let json = arguments.json;
    // On a thread of its own, which nobody waits for where a signal comes first.
    let (send, receive) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        // Nobody may be there any more.
        let _ = send.send(inspect(&arguments));
    });
    let inspection = tokio::select! {
        inspection = receive => inspection.context("the region could not be read")??,
        () = stop.requested() => return Ok(Ending::Interrupted),
    };

    let mut out = BufWriter::new(io::stdout().lock());
    let printed = match json {
        true => serde_json::to_writer(&mut out, &inspection)
            .map_err(io::Error::from)
            .and_then(|()| writeln!(out)),
        false => out.write_all(table::tables(&inspection).as_bytes()),
    };
    match printed.and_then(|()| out.flush()) {
        // The reader has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        printed => printed.context("standard output")?,
    }
    Ok(Ending::Clean)
}

fn inspect(arguments: &InspectArguments) -> Result<Inspection> {
    let (source, reader) = match (&arguments.region, arguments.pid) {
        (Some(path), None) => {
            (path.display().to_string(), Reader::open(path).map_err(region_error)?)
        }
        (None, Some(pid)) => {
            let reader = Reader::of_process(pid).map_err(region_error).with_context(|| {
                format!(
                    "process {pid}: expected one of yours that has a region in memory; if it \
                     has one in a file, name that"
                )
            })?;
            (format!("process {pid}"), reader)
        }
        _ => bail!("found no region, or two; name a file, or a process with --pid"),
    };
    Inspection::of(source, &reader.look().map_err(region_error)?, arguments.family.as_deref())
}

/// An error of a region, which states all of its cause itself.
fn region_error(error: talea::Error) -> anyhow::Error {
    anyhow!("{error}")
}
