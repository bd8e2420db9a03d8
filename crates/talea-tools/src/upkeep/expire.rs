//! `talea expire`.

use std::time::Duration;

use anyhow::Result;
use talea_statistics::figures::count;

use crate::arguments::ExpireArguments;
use crate::region_command::chosen;

/// Longer than the minute between two sweeps of a service that is scraped.
const LONG: Duration = Duration::from_secs(120);

/// Removes idle series; returns the message about it.
pub(super) fn expire(arguments: &ExpireArguments) -> Result<String> {
    let affected = &arguments.affected;
    let place = affected.which.place()?;
    let before = place.look()?;
    let chosen = chosen(&before, affected)?;

    let gone = place.attach(&affected.owner)?.expire(
        arguments.idle,
        |name: &str, goes_by_itself: bool| match affected.families.is_empty() {
            true => goes_by_itself,
            false => affected.families.iter().any(|named| named == name),
        },
    );
    let series: u64 = chosen.iter().map(|family| family.series).sum();
    let idle = match arguments.idle {
        Some(idle) => format!("for {}", humantime::format_duration(idle)),
        None => "for their family's time".to_owned(),
    };
    let mut said = format!(
        "removed {gone} of {} in {} of {place} that had no look-up {idle}\n",
        count(series, "series", "series"),
        count(chosen.len() as u64, "family", "families"),
    );
    let ago = before.overview.since_sweep;
    if ago > LONG {
        let ago = humantime::format_duration(Duration::from_secs(ago.as_secs()));
        said += &format!(
            "the sweep before this began {ago} ago, and the times of later look-ups are not known; \
             run this again after the time of --idle\n"
        );
    }
    Ok(said)
}
