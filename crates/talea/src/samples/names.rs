//! The names of the families that store a summary's samples.

use std::collections::HashMap;

use talea_region::FamilyCopy;

use crate::snapshot::newest::use_of;

/// The kind of such families, which no metric has. Kind 7 was an earlier layout of slices; such
/// families are not read.
pub(crate) const KIND: u8 = 8;

/// No name of a metric that can be exposed as it is ends so.
const ENDING: &str = " samples";

/// The name of the family that stores the samples of a summary.
pub(crate) fn own_name(summary: &str) -> String {
    [summary, ENDING].concat()
}

/// The summary that a family belongs to; of others their own name.
pub(crate) fn owner_of(family: &str) -> &str {
    family.strip_suffix(ENDING).unwrap_or(family)
}

/// Whether a family is one of samples, by its name.
pub(crate) fn is_own(family: &[u8]) -> bool {
    family.ends_with(ENDING.as_bytes())
}

/// Finds the samples of families, each given by its number among all. Of several of one name it
/// chooses the one in use, as for families.
pub(crate) fn find<'a>(
    all: &[FamilyCopy],
    families: impl Iterator<Item = (usize, &'a mut Option<usize>)>,
) {
    let mut samples: HashMap<&[u8], usize> = HashMap::new();
    for (n, family) in all.iter().enumerate().filter(|(_, family)| family.kind == KIND) {
        let Some(owner) = family.name.strip_suffix(ENDING.as_bytes()) else { continue };
        let newest = samples.entry(owner).or_insert(n);
        if use_of(&all[*newest]) < use_of(family) {
            *newest = n;
        }
    }
    families.for_each(|(n, place)| *place = samples.get(all[n].name.as_slice()).copied());
}
