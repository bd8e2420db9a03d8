//! The choice among several definitions of one name.

use talea_region::{FamilyCopy, LastUse};

use crate::definition::Definition;

/// The rank of a family among several of one name; the greatest is shown: the newest that a living
/// process uses. The later a family was made, the greater its number. The time of creation does not
/// serve, since the clock can be set.
pub(crate) fn use_of(family: &FamilyCopy) -> (LastUse, u32) {
    (family.last_use, family.number())
}

/// Adds the counts under another definition of a name to those of the one that is shown, if their
/// values can be added and never fall.
pub(super) fn add_rival(raw: &mut talea_region::Snapshot, shown: usize, other: usize) {
    let [one, two] = [shown, other].map(|n| &raw.families()[n]);
    let is_added = !one.expires
        && !two.expires
        && Definition::are_added(one.number, &one.definition, &two.definition);
    if is_added {
        raw.add_family_to(shown, other);
    }
}
