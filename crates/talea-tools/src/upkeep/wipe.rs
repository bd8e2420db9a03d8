//! `talea wipe`.

use std::collections::HashSet;

use anyhow::{Result, bail};
use talea::Kind;
use talea::outside::{FamilyFacts, Look};
use talea_statistics::figures::count;

use crate::arguments::WipeArguments;
use crate::region_command::chosen;

/// Resets counts to 0; returns the message about it.
pub(super) fn wipe(arguments: &WipeArguments) -> Result<String> {
    let affected = &arguments.affected;
    let place = affected.which.place()?;
    let before = place.look()?;
    let chosen = chosen(&before, affected)?;
    let other = chosen.iter().find(|family| !counts(family));
    if let (Some(other), false) = (other, affected.families.is_empty()) {
        bail!(
            "{} is of type {}, which shows the present and cannot be reset, so nothing was done; \
             expected counters, histograms and summaries",
            other.name,
            other.kind.as_str()
        );
    }
    // Two may have one name, while a new version of a service takes over from an old one.
    let others: HashSet<&str> = names(chosen.iter().filter(|family| !counts(family)));
    let wiped = &names(chosen.iter()) - &others;

    let all = place.attach(&affected.owner)?.wipe(|name| wiped.contains(name));
    if !all {
        bail!(
            "{place} has no room to note the values of some series, which keep them; the others \
             were wiped"
        );
    }
    let (had, have) = (series(&before, &wiped), series(&place.look()?, &wiped));
    Ok(format!(
        "wiped {} of {place}: {} count from 0, {} were removed until their next update\n",
        count(wiped.len() as u64, "family", "families"),
        count(have, "series", "series"),
        had.saturating_sub(have),
    ))
}

/// Whether a family counts, rather than saying what is now.
fn counts(family: &FamilyFacts) -> bool {
    matches!(family.kind, Kind::Counter | Kind::Histogram | Kind::Summary)
}

fn names<'a>(families: impl Iterator<Item = &'a &'a FamilyFacts>) -> HashSet<&'a str> {
    families.map(|family| family.name.as_str()).collect()
}

fn series(look: &Look, names: &HashSet<&str>) -> u64 {
    let of_them = look.families.iter().filter(|family| names.contains(family.name.as_str()));
    of_them.map(|family| family.series).sum()
}
