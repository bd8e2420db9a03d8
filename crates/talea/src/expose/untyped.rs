//! Families that a text format cannot show with their types: samples of several types have one
//! name, and a text names the type of each name once. Each name of a sample becomes a family of
//! unknown type there, with the samples of all families that have it.

use super::pages::{Family, Pages};
use super::shown_names::ShownNames;
use super::text_format::{Part, TextFormat};
use crate::definition::kind::Kind;

/// A family of unknown type: the samples of one name.
#[derive(Clone, Debug)]
pub(super) struct Untyped {
    pub(super) name: String,
    pub(super) help: String,
    /// The families that have such samples: the place of the first entry, and the part.
    pub(super) members: Vec<(usize, Part)>,
    /// Whether all of them are gauges in Prometheus' text.
    pub(super) are_gauges: bool,
}

/// The families of unknown type of a page, by name.
pub(super) fn untyped(
    pages: &dyn Pages,
    names: &ShownNames,
    format: TextFormat,
    shows_created: bool,
) -> Vec<Untyped> {
    let (mut all, mut place): (Vec<Untyped>, _) = (Vec::new(), 0);
    while let Some(whole) = Family::at(pages, place) {
        let from = place;
        place += whole.places();
        if !whole.is_untyped(format) {
            continue;
        }
        let family = whole.first();
        let (kind, shown) = (family.kind(), names.family(family.name()));
        let parts = format.parts(kind).iter();
        for part in parts.filter(|part| shows_created || **part != Part::Created) {
            all.push(Untyped {
                name: part.name(kind, &shown).concat(),
                help: family.help().to_owned(),
                members: vec![(from, *part)],
                are_gauges: matches!(kind, Kind::Gauge | Kind::Info | Kind::StateSet),
            });
        }
    }
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all.dedup_by(|other, first| {
        let is_same = other.name == first.name;
        if is_same {
            first.members.append(&mut other.members);
            first.are_gauges &= other.are_gauges;
        }
        is_same
    });
    all
}
