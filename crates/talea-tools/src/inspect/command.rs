//! `talea inspect`: opens, looks, prints.

use anyhow::Result;
use talea_load::stop::Stop;

use super::{Inspection, table};
use crate::arguments::InspectArguments;
use crate::ending::Ending;
use crate::region_command::print_result;

/// Looks into a region and prints what was found to standard output. Fails when the region cannot be
/// read, or has no family of the name that was asked for.
pub(crate) async fn run(arguments: InspectArguments, stop: Stop) -> Result<Ending> {
    print_result(stop, move || inspect(&arguments)).await
}

fn inspect(arguments: &InspectArguments) -> Result<String> {
    let place = arguments.which.place()?;
    let family = arguments.family.as_deref();
    let inspection = Inspection::of(place.to_string(), &place.look()?, family)?;
    Ok(match arguments.json {
        true => serde_json::to_string(&inspection)? + "\n",
        false => table::tables(&inspection, width()),
    })
}

/// The columns of the terminal that standard output is; `None` if it is no terminal.
fn width() -> Option<u16> {
    let columns = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?.ws_col;
    (columns > 0).then_some(columns)
}
