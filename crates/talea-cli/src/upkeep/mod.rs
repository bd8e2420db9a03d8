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

/// Resets counts to 0, and prints which were reset.
///
/// # Errors
/// When the region cannot be taken part in, has no such family, or no room to note what its series
/// counted.
pub async fn wipe(arguments: WipeArguments, stop: Stop) -> Result<Ending> {
    print_result(stop, move || wipe::wipe(&arguments)).await
}

/// Removes idle series, and says how many.
///
/// # Errors
/// When the region cannot be taken part in, or has no such family.
pub async fn expire(arguments: ExpireArguments, stop: Stop) -> Result<Ending> {
    print_result(stop, move || expire::expire(&arguments)).await
}

/// Prints the result of `work`. It runs on a thread of its own. If a signal comes first, nobody
/// waits for the thread: a region survives the death of a process that works in it.
async fn print_result(
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
