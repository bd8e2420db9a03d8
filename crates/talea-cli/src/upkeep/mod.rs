//! Upkeep: what an operator does to a region that services count in, while they run or when all
//! of them are dead. `talea wipe` has what is counted begin from 0 again, `talea expire` removes
//! idle series.
//!
//! The way of both: a file or a process → a look from outside, which finds out whether it is a
//! region and has the families that are asked for → taking part in it, with a process slot until
//! this process ends → what is done → a line that says what that was. Nothing is ever created or
//! moved aside.

mod expire;
mod place;
mod wipe;

use std::io::{self, ErrorKind, Write};

use anyhow::{Context, Result};

use crate::arguments::{ExpireArguments, WipeArguments};
use crate::stop::{Ending, Stop};

/// Has what is counted begin from 0 again, and says what did.
///
/// # Errors
/// When the region cannot be taken part in, has no such family, or no room to note what its series
/// counted.
pub async fn wipe(arguments: WipeArguments, stop: Stop) -> Result<Ending> {
    told(stop, move || wipe::wipe(&arguments)).await
}

/// Removes idle series, and says how many.
///
/// # Errors
/// When the region cannot be taken part in, or has no such family.
pub async fn expire(arguments: ExpireArguments, stop: Stop) -> Result<Ending> {
    told(stop, move || expire::expire(&arguments)).await
}

/// Prints what `work` tells. It is done on a thread of its own, which nobody waits for where a
/// signal comes first: a region bears it that who works in it is killed.
async fn told(
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
        // It is done, and who asked for it has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        printed => printed.context("standard output")?,
    }
    Ok(Ending::Clean)
}
