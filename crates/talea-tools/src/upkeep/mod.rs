//! Upkeep: an operator changes a region that services count in, while they run or when all
//! of them are dead. `talea wipe` resets counts to 0, `talea expire` removes
//! idle series.
//!
//! The way of both: a file or a process → a look from outside, which finds out whether it is a
//! region and has the families that are asked for → taking part in it, with a process slot until
//! this process ends → what is done → a line that says what that was. Nothing is ever created or
//! moved aside.

mod expire;
mod wipe;

use anyhow::Result;
use talea_load::stop::Stop;

use crate::arguments::{ExpireArguments, WipeArguments};
use crate::ending::Ending;
use crate::region_command::print_result;

/// Resets counts to 0, and prints which were reset.
/// Fails when the region cannot be taken part in, has no such family, or no room to note what its
/// series counted.
pub(crate) async fn wipe(arguments: WipeArguments, stop: Stop) -> Result<Ending> {
    print_result(stop, move || wipe::wipe(&arguments)).await
}

/// Removes idle series, and says how many.
/// Fails when the region cannot be taken part in, or has no such family.
pub(crate) async fn expire(arguments: ExpireArguments, stop: Stop) -> Result<Ending> {
    print_result(stop, move || expire::expire(&arguments)).await
}
