//! Series that a snapshot derives: one for each process or state, and those that count refused
//! series and hidden families.

use std::collections::HashMap;

use talea_region::{OneCell, Snapshot};

use crate::definition::Definition;
use crate::definition::kind::Kind;
use crate::definition::names::{PID, is_plain_label};
use crate::labels::LabelText;
use crate::samples;

/// How often each family refused a new series.
pub(crate) const DROPPED: &str = "talea_series_dropped_total";

/// Adds the label `pid` to per-process values.
pub(crate) fn by_process(raw: &mut Snapshot) {
    if raw.owners().is_empty() {
        return;
    }
    // In two containers two processes may have the same id. Then the slot distinguishes them: for
    // as long as it lives, each process that came while another of this id lived is named with its
    // slot. The others are too, if damage has two of one id.
    let mut slots = HashMap::new();
    for owner in raw.owners().iter().filter(|owner| !owner.has_namesake) {
        let slot = slots.entry(owner.pid).or_insert(Some(owner.slot));
        *slot = slot.filter(|&slot| slot == owner.slot);
    }
    raw.name_owners(|text, owner| match slots.get(&owner.pid) {
        Some(Some(slot)) if *slot == owner.slot => append(text, PID, &owner.pid.to_string()),
        _ => append(text, PID, &format!("{}@{}", owner.pid, owner.slot)),
    });
}

/// Makes a series of each state of a state set.
pub(crate) fn by_state(raw: &mut Snapshot, family: usize, states: &[String]) {
    let set = &raw.families()[family];
    let name = String::from_utf8_lossy(&set.name);
    // A set has no more than 64; a damaged region could claim anything.
    let states = &states[..states.len().min(64)];
    let mut series = Vec::with_capacity(raw.series(set).len() * states.len());
    for one in raw.series(set) {
        let bits = one.values.first().copied().unwrap_or_default();
        if LabelText::is_overflow(one.text) && bits == 0 {
            continue;
        }
        series.extend(states.iter().enumerate().map(|(n, state)| {
            let added = name.len() + state.len() + 6;
            let mut text = Vec::with_capacity(one.text.len() + added);
            text.extend_from_slice(one.text);
            append(&mut text, &name, state);
            let created_unix_nanos = one.created_unix_nanos;
            OneCell { text, value: bits >> n & 1, created_unix_nanos }
        }));
    }
    raw.replace_series(family, series);
}

/// Adds the counts of refused series, which the region has. Only families that did are shown, so
/// this stays as bounded as they are.
pub(crate) fn dropped(raw: &mut Snapshot) {
    let series: Vec<OneCell> = raw
        .dropped()
        .filter(|(name, _)| !samples::is_own(name))
        .map(|(name, count)| of_family(&String::from_utf8_lossy(name), count))
        .collect();
    if series.is_empty() {
        return;
    }
    let definition = Definition {
        labels: vec!["family".to_owned()],
        help: "Look-ups of a new series that its family or the region had no room for.".to_owned(),
        ..Definition::default()
    };
    raw.add_family(DROPPED, definition.encode(), Kind::Counter as u8, series);
}

/// How old observable values are that were not read in the last seconds.
pub(super) const AGE: &str = "talea_observable_age_seconds";

/// The families that a snapshot leaves out.
const HIDDEN: &str = "talea_families_hidden";

/// The families that a snapshot adds, whose names no other may have.
pub(crate) const ADDED: [(Kind, &str); 3] =
    [(Kind::Counter, DROPPED), (Kind::Gauge, HIDDEN), (Kind::Gauge, AGE)];

/// Adds the names of families that are not shown, since newer ones of other processes have one
/// of their names.
pub(crate) fn hidden(raw: &mut Snapshot, names: &[String]) {
    let definition = Definition {
        labels: vec!["family".to_owned()],
        help: "Families that are not shown, because a newer one has one of their names.".to_owned(),
        ..Definition::default()
    };
    let series = names.iter().map(|name| of_family(name, 1));
    raw.add_family(HIDDEN, definition.encode(), Kind::Gauge as u8, series);
}

/// A series that counts something of a family.
pub(super) fn of_family(family: &str, value: u64) -> OneCell {
    let text = LabelText::one("family", family).into_bytes();
    OneCell { text, value, created_unix_nanos: 0 }
}

/// Appends a label whose value needs no escape, or has it.
fn append(text: &mut Vec<u8>, name: &str, value: &str) {
    let comma = if text.is_empty() { "" } else { "," };
    let quote = if is_plain_label(name) { "" } else { "\"" };
    for part in [comma, quote, name, quote, "=\"", value, "\""] {
        text.extend_from_slice(part.as_bytes());
    }
}
