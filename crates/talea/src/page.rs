//! Several registries as one page: the same families together, each series with a label
//! that says where it comes from.

use std::fmt;

use crate::expose::Family;
use crate::labels::LabelText;
use crate::metric::Kind;
use crate::names::is_plain_label;
use crate::registry::Registry;
use crate::snapshot::{FamilySnapshot, Snapshot};

/// What can be scraped: a [`Registry`], or several that make up one page.
pub trait Scrapable: Clone + Send + Sync + 'static {
    /// Adds its parts to an empty page, with the families whose names are wanted, as samples
    /// have them. It is called on the thread that scrapes, which waits for it; several may
    /// call it at once.
    fn fill(&self, page: &mut Page, wants: &dyn Fn(&str) -> bool);

    /// Is told the page that its parts make up, before that is shown.
    fn joined(&self, _: &Page) {}
}

impl Scrapable for Registry {
    fn fill(&self, page: &mut Page, wants: &dyn Fn(&str) -> bool) {
        page.add(None, |snapshot| self.snapshot_into(snapshot, wants));
    }
}

/// Snapshots that are shown together. Families of one name are one family where their
/// definitions agree, each series with the label of its part; the help text may differ, and
/// that of the first part is shown. Where definitions do not agree, what most parts say is
/// shown, of as many the newest, and the others are [conflicts](Self::conflicts).
///
/// Its memory is used again when it is filled anew.
#[derive(Clone, Debug, Default)]
pub struct Page {
    parts: Vec<Part>,
    /// How many of them are of this page; the others are memory.
    used: usize,
    /// The families by name, and those of one name by part.
    entries: Vec<Entry>,
    conflicts: Vec<Conflict>,
}

#[derive(Clone, Debug, Default)]
struct Part {
    /// Its label as text, and the name and the value of that; nothing where it has none.
    label: String,
    name: String,
    value: String,
    snapshot: Snapshot,
}

/// A family of a part.
#[derive(Clone, Copy, Debug)]
struct Entry {
    part: usize,
    family: usize,
}

/// A family that is not shown, since most other parts define it otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Conflict {
    /// The label value of the part that it is in; nothing where that has none.
    pub part: String,
    /// Its name, as samples have it.
    pub family: String,
    /// What was found and what was expected, in words.
    pub reason: String,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the family {} is left out: {}", self.family, self.reason)
    }
}

impl Page {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds what `take` puts into a snapshot. Each of its series is shown with `label`, a
    /// name and a value, where there is one. Parts of one page must differ in it.
    pub fn add(&mut self, label: Option<(&str, &str)>, take: impl FnOnce(&mut Snapshot)) {
        let taken = |snapshot: &mut Snapshot| {
            take(snapshot);
            Ok::<_, std::convert::Infallible>(())
        };
        let Ok(_) = self.try_add(label, taken);
    }

    /// The same, unless `take` fails: then nothing is added. What was added.
    ///
    /// # Errors
    ///
    /// What `take` fails with.
    pub fn try_add<E>(
        &mut self,
        label: Option<(&str, &str)>,
        take: impl FnOnce(&mut Snapshot) -> Result<(), E>,
    ) -> Result<&Snapshot, E> {
        if self.used == self.parts.len() {
            self.parts.push(Part::default());
        }
        let part = &mut self.parts[self.used];
        take(&mut part.snapshot)?;
        let (name, value) = label.unwrap_or_default();
        part.label.clear();
        if !name.is_empty() {
            part.label = LabelText::one(name, value);
        }
        part.name.clear();
        part.name.push_str(name);
        part.value.clear();
        part.value.push_str(value);
        self.used += 1;
        Ok(&part.snapshot)
    }

    /// Forgets its parts and keeps their memory.
    pub fn clear(&mut self) {
        self.used = 0;
        self.entries.clear();
        self.conflicts.clear();
    }

    /// The parts, in the order in which they were added.
    pub fn parts(&self) -> impl ExactSizeIterator<Item = &Snapshot> {
        self.parts[..self.used].iter().map(|part| &part.snapshot)
    }

    /// The first of them, which is there once anything was ever added.
    pub(crate) fn first(&mut self) -> &Snapshot {
        if self.parts.is_empty() {
            self.parts.push(Part::default());
        }
        &self.parts[0].snapshot
    }

    /// The families that are left out, by name. Known once its parts were
    /// [joined](Scrapable::joined).
    pub fn conflicts(&self) -> &[Conflict] {
        &self.conflicts
    }

    /// Puts the families of its parts together, before it is written.
    pub(crate) fn join(&mut self) {
        let Self { parts, used, entries, conflicts } = self;
        let parts = &parts[..*used];
        entries.clear();
        conflicts.clear();
        for (part, of) in parts.iter().enumerate() {
            let count = of.snapshot.families().len();
            entries.extend((0..count).map(|family| Entry { part, family }));
        }
        if parts.len() > 1 {
            // Those of each part are sorted, and stay so.
            entries.sort_by(|one, other| one.name(parts).cmp(other.name(parts)));
        }
        let mut kept = 0;
        let mut rest = 0..entries.len();
        while let Some(first) = entries.get(rest.start) {
            let name = first.name(parts);
            let same = entries[rest.clone()].iter().take_while(|entry| entry.name(parts) == name);
            let group = rest.start..rest.start + same.count();
            rest.start = group.end;
            let Some(wanted) = prevailing(&entries[group.clone()], parts) else { continue };
            for n in group {
                let entry = entries[n];
                match entry.fault(wanted, parts) {
                    None => {
                        entries[kept] = entry;
                        kept += 1;
                    }
                    Some(reason) => conflicts.push(Conflict {
                        part: parts[entry.part].value.clone(),
                        family: entry.name(parts).to_owned(),
                        reason,
                    }),
                }
            }
        }
        entries.truncate(kept);
    }

    /// A family whose first entry is at a place, with all of its parts.
    pub(crate) fn family_at(&self, place: usize) -> Option<Family<'_>> {
        let rest = self.entries.get(place..).filter(|rest| !rest.is_empty())?;
        let name = rest[0].name(&self.parts);
        let same = rest.iter().take_while(|entry| entry.name(&self.parts) == name);
        Some(Family::OfPage { page: self, from: place, count: same.count() })
    }

    /// The label text of the part that an entry belongs to, and its family.
    pub(crate) fn entry(&self, n: usize) -> Option<(&str, FamilySnapshot<'_>)> {
        let entry = self.entries.get(n)?;
        Some((&self.parts[entry.part].label, entry.family(&self.parts)?))
    }
}

impl Entry {
    fn family(self, parts: &[Part]) -> Option<FamilySnapshot<'_>> {
        parts.get(self.part)?.snapshot.family_at(self.family)
    }

    fn name(self, parts: &[Part]) -> &str {
        self.family(parts).map_or("", |family| family.name())
    }

    /// Why it cannot be shown together with another of its name; `None` where it can.
    fn fault(self, wanted: Self, parts: &[Part]) -> Option<String> {
        let family = self.family(parts)?;
        let label = parts[self.part].name.as_str();
        let has_it = |name: &str| !label.is_empty() && name == label;
        let own = (family.kind() == Kind::StateSet).then(|| family.name());
        if family.label_names().iter().map(String::as_str).chain(own).any(has_it) {
            return Some(format!(
                "it has a label {label:?} of its own, by which regions are told apart; have that \
                 one called otherwise"
            ));
        }
        family.disagreement(&wanted.family(parts)?)
    }
}

/// Which entry of one name says what most of them say; of as many, the newest.
fn prevailing(entries: &[Entry], parts: &[Part]) -> Option<Entry> {
    if entries.len() < 2 {
        return entries.first().copied();
    }
    // As many as there are definitions, which are few.
    let mut found: Vec<(Entry, usize, u64)> = Vec::new();
    for &entry in entries {
        let Some(family) = entry.family(parts) else { continue };
        let created = family.created_nanos();
        let agrees = |other: &Entry| {
            other.family(parts).is_some_and(|other| family.disagreement(&other).is_none())
        };
        match found.iter_mut().find(|(known, ..)| agrees(known)) {
            Some((_, count, newest)) => {
                *count += 1;
                *newest = created.max(*newest);
            }
            None => found.push((entry, 1, created)),
        }
    }
    let best = found.into_iter().max_by_key(|&(_, count, newest)| (count, newest));
    best.map(|(entry, ..)| entry)
}

/// Whether regions may be told apart by a label of this name: it is one that any format can
/// show as it is, and none that has a meaning.
pub fn is_usable_as_part_label(name: &str) -> bool {
    const TAKEN: [&str; 5] = ["le", "quantile", "family", "pid", "__name__"];
    is_plain_label(name) && !name.starts_with("__") && !TAKEN.contains(&name)
}
