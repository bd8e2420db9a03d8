//! The names of a page as a scraper sees them: escaped if the format does not have them, and still
//! unique for each family and label.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};

use super::escaping::Escaping;
use super::pages::{Family, Pages};
use crate::definition::are_free;
use crate::definition::kind::Kind;
use crate::definition::names::{
    OVERFLOW, PID, TakenNames, is_plain, is_plain_label, is_written_by_us,
};
use crate::labels::raw_labels;
use crate::snapshot::FamilySnapshot;

/// The names of a page's families.
///
/// 1. A name that every format has is shown as it is, so that no other changes it.
/// 2. Any other name is escaped as the scraper asked, unless that name then belongs to another
///    family of the page or to one of its samples. So `a b` is `a_b` if no other family is.
/// 3. Otherwise it is escaped as by [`Escaping::Values`], which keeps all such names distinct:
///    beside `a_b`, `a b` is `U__a_20_b`. Of several such names the first in the order of names
///    has the short one.
///
/// So each family is there once, and a page does not depend on the order in which families were
/// registered.
#[derive(Clone, Debug, Default)]
pub(super) struct ShownNames {
    escaping: Escaping,
    /// Names of the third kind.
    others: HashMap<String, String>,
}

/// The names of a family's labels, by the same rules.
#[derive(Clone, Debug, Default)]
pub(super) struct LabelNames {
    escaping: Escaping,
    /// Names that not every format has, with their escaped form; empty if that changes nothing.
    shown: Vec<(String, String)>,
}

impl ShownNames {
    pub(super) fn new(escaping: Escaping) -> Self {
        Self { escaping, others: HashMap::new() }
    }

    pub(super) fn escaping(&self) -> Escaping {
        self.escaping
    }

    /// Looks at the names of a page. Cost: if every format has all the names, a look at each
    /// family.
    pub(super) fn learn(&mut self, pages: &dyn Pages) {
        self.others.clear();
        if self.escaping == Escaping::AllowUtf8 || !pages.has_odd_names() {
            return;
        }
        let (mut taken, mut odd, mut place) = (TakenNames::default(), Vec::new(), 0);
        while let Some(family) = Family::at(pages, place) {
            place += family.places();
            let family = family.first();
            match is_plain(family.name()) {
                true => taken.share(family.kind(), family.name(), 0),
                false => odd.push(family),
            }
        }
        // Families of one name and several types have one name here too.
        for of_name in odd.chunk_by(|one, other| one.name() == other.name()) {
            let name = of_name[0].name();
            let mut tries = candidates(self.escaping, name, Escaping::name);
            let found = tries.find(|shown| {
                of_name.iter().all(|family| {
                    (family.kind() != Kind::StateSet || names_states(family, shown))
                        && taken.other(family.kind(), shown).is_none()
                })
            });
            let found = found.unwrap_or_default();
            of_name.iter().for_each(|family| taken.share(family.kind(), &found, 0));
            if found != self.escaping.name(name) {
                self.others.insert(name.to_owned(), found);
            }
        }
    }

    pub(super) fn family<'a>(&'a self, name: &'a str) -> Cow<'a, str> {
        self.others.get(name).map_or_else(|| self.escaping.name(name), Cow::from)
    }

    pub(super) fn labels(&self, whole: &Family<'_>) -> LabelNames {
        let mut labels = LabelNames { escaping: self.escaping, shown: Vec::new() };
        let family = whole.first();
        let has_facts = family.kind() == Kind::Info || are_free(family.label_names());
        let is_odd = self.escaping != Escaping::AllowUtf8
            && (whole.parts().any(|(_, part)| !part.is_plain())
                || has_facts && all_labels(whole).any(has_odd_names));
        let exported = whole.exported_label();
        if !is_odd && exported.is_none() {
            return labels;
        }
        let listed = whole.parts().flat_map(|(_, part)| part.label_names());
        let mut own: Vec<String> = Vec::new();
        for name in listed {
            if !own.contains(name) {
                own.push(name.clone());
            }
        }
        if has_facts {
            let facts = all_labels(whole).flat_map(raw_labels);
            let facts: BTreeSet<_> =
                facts.map(|fact| String::from_utf8_lossy(fact.name).into_owned()).collect();
            own.extend(facts.into_iter().filter(|fact| !own.contains(fact)).collect::<Vec<_>>());
        }
        let overflow = OVERFLOW.split_once('=').map_or("", |(name, _)| name);
        let plain = own.iter().map(String::as_str).filter(|name| is_plain_label(name));
        let taken = [PID, overflow].into_iter().chain(whole.part_labels()).chain(plain);
        let mut taken: HashSet<Cow<'_, str>> = taken.map(Cow::from).collect();
        if let Some(name) = exported {
            let mut shown = format!("exported_{name}");
            while !taken.insert(Cow::from(shown.clone())) {
                shown.insert_str(0, "exported_");
            }
            labels.shown.push((name.to_owned(), shown));
        }
        if self.escaping == Escaping::AllowUtf8 {
            return labels;
        }
        if family.kind() == Kind::StateSet {
            // OpenMetrics has the states by the name of their set.
            let shown = self.family(family.name());
            labels.shown.push((family.name().to_owned(), shown.clone().into_owned()));
            taken.insert(shown);
        }
        for name in own.iter().filter(|name| !is_plain_label(name)) {
            let found = candidates(self.escaping, name, Escaping::label).find(|shown: &String| {
                !is_reserved(shown) && taken.insert(Cow::from(shown.clone()))
            });
            labels.shown.push((name.clone(), found.unwrap_or_default()));
        }
        labels
    }
}

impl LabelNames {
    /// Whether any is shown otherwise than the region has it.
    pub(super) fn renames(&self) -> bool {
        !self.shown.is_empty()
    }

    pub(super) fn of<'a>(&'a self, name: &'a str) -> Cow<'a, str> {
        let mut shown = self.shown.iter();
        match shown.find(|(own, _)| own == name) {
            Some((_, shown)) => Cow::Borrowed(shown),
            None if is_plain_label(name) => Cow::Borrowed(name),
            None => self.escaping.label(name),
        }
    }
}

/// The label text of each series of a family. An info's names need not be in its definition.
fn all_labels<'a>(whole: &Family<'a>) -> impl Iterator<Item = &'a [u8]> + use<'a> {
    whole.parts().flat_map(|(_, part)| part.series().map(|series| series.label_bytes()))
}

/// Whether a label text may have names that not every format has: those are in quotes.
fn has_odd_names(text: &[u8]) -> bool {
    text.starts_with(b"\"") || text.windows(3).any(|bytes| bytes == b"\",\"")
}

/// The candidates for a name, in the order in which they are tried. The sequence never ends.
fn candidates(
    escaping: Escaping,
    name: &str,
    escape: fn(Escaping, &str) -> Cow<'_, str>,
) -> impl Iterator<Item = String> + use<> {
    let short = escape(escaping, name).into_owned();
    let long = escape(Escaping::Values, name).into_owned();
    // A name that begins so can itself be the name of a metric.
    std::iter::once(short).chain((0..).map(move |n| match long.strip_prefix("U__") {
        Some(rest) => "U__".to_owned() + &"_".repeat(n) + rest,
        None => long.clone() + &"_".repeat(n),
    }))
}

/// Whether a label of this name would be one that scrapers or the formats write themselves.
fn is_reserved(label: &str) -> bool {
    label.starts_with("__") || is_written_by_us(label)
}

/// Whether the states of a set can have a label of this name.
fn names_states(family: &FamilySnapshot<'_>, shown: &str) -> bool {
    !is_reserved(shown) && family.label_names().iter().all(|label| label != shown)
}
