//! The choice among several definitions of one name.

use talea_region::{FamilyCopy, LastUse, Relation};

use crate::definition::Definition;
use crate::labels::raw_labels;

/// The rank of a family among several of one name; the greatest is shown: the newest that a living
/// process uses. The later a family was made, the greater its number. The time of creation does not
/// serve, since the clock can be set.
pub(crate) fn use_of(family: &FamilyCopy) -> (LastUse, u32) {
    (family.last_use, family.number())
}

/// Adds the series under another definition of a name to the series of the shown definition: if their
/// values can be added and never fall, or if it has labels of its own and a living process uses it,
/// or its program has it stay.
pub(super) fn add_rival(raw: &mut talea_region::Snapshot, shown: usize, other: usize) {
    let [one, two] = [shown, other].map(|n| &raw.families()[n]);
    let stays = !one.expires && !two.expires;
    let lives = two.last_use == LastUse::Living || (one.allows_others && two.allows_others);
    match Definition::relation(one.number, &one.definition, &two.definition) {
        Relation::Added if stays => raw.add_family_to(shown, other, true, canonical),
        // A sum would fall when the processes with one of them end.
        Relation::Beside if lives => raw.add_family_to(shown, other, false, canonical),
        _ => false,
    };
}

/// A label text by which series are equal that a scraper takes for one: label names are sorted, and
/// empty values left out.
fn canonical(text: &[u8]) -> Vec<u8> {
    let mut labels: Vec<_> = raw_labels(text).filter(|label| !label.value.is_empty()).collect();
    labels.sort_unstable_by_key(|label| label.name);
    let mut key = Vec::with_capacity(text.len());
    for label in labels {
        // No byte of UTF-8 is 0xFF.
        key.extend_from_slice(label.name);
        key.push(0xFF);
        key.extend_from_slice(&label.value);
        key.push(0xFF);
    }
    key
}
