//! Several registries as one page: the same families together, each series with a label that names
//! its origin.

mod sound;

use std::fmt;
use std::ops::Range;

use crate::definition::kind::Kind;
use crate::definition::names::{TakenNames, clash};
use crate::expose::Pages;
use crate::labels::LabelText;
use crate::registry::Registry;
use crate::snapshot::{FamilySnapshot, Snapshot};

/// A source of scrapes: a [`Registry`], or several that make up one page.
pub trait Scrapable: Clone + Send + Sync + 'static {
    /// Adds its parts to an empty page, with the families whose names are wanted, as samples
    /// have them. It is called on the thread that scrapes, which waits for it; several may
    /// call it at once.
    fn fill(&self, page: &mut Page, wants: &dyn Fn(&str) -> bool);

    /// Called with the joined page, before it is written.
    fn joined(&self, _: &Page) {}
}

impl Scrapable for Registry {
    fn fill(&self, page: &mut Page, wants: &dyn Fn(&str) -> bool) {
        page.add(None, |snapshot| self.snapshot_into(snapshot, wants));
    }
}

/// Snapshots that are shown together. Families of one name are one family if their definitions
/// agree; each series has the label of its part. The help text may differ; that of the first part
/// is shown. If definitions do not agree, that of most parts is shown, and in a tie the newest; the
/// others are [conflicts](Self::conflicts). The same rule applies to families of two names if one,
/// or one of its samples, would have a name of the other: in OpenMetrics a counter's goes without
/// `_total`. Families that cannot be shown with the label of their part, or whose own labels cannot
/// be read, are conflicts too, and have no vote. A part that is read from outside, with
/// [`try_add`](Self::try_add), never outvotes one that is not.
///
/// It reuses its memory when it is filled again.
#[derive(Clone, Debug, Default)]
pub struct Page {
    parts: Vec<Part>,
    /// How many of them are of this page; the others are memory.
    used: usize,
    /// The families by name, and those of one name by part.
    entries: Vec<Entry>,
    conflicts: Vec<Conflict>,
    /// Whether some family was not wanted.
    pub(crate) is_filtered: bool,
}

#[derive(Clone, Debug, Default)]
struct Part {
    /// Its label as text, and the name and the value of that; empty if it has none.
    label: String,
    name: String,
    value: String,
    /// The label and the constant labels of the snapshot, as text, and their names.
    labels: String,
    names: Vec<String>,
    snapshot: Snapshot,
    /// Whether it is of what may be damaged.
    is_foreign: bool,
}

/// A family of a part.
#[derive(Clone, Copy, Debug)]
struct Entry {
    part: usize,
    family: usize,
    is_shown: bool,
}

/// A family that is not shown: most other parts define it otherwise, or it is damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Conflict {
    /// The label value of the part that it is in; empty if that has none.
    pub part: String,
    /// Its name, as samples have it.
    pub family: String,
    /// The definition found and the one expected, in words.
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

    /// Adds what `take` puts into a snapshot. Each of its series is shown with `label`, a name and
    /// a value, if there is one. Parts of one page must differ in it.
    pub fn add(&mut self, label: Option<(&str, &str)>, take: impl FnOnce(&mut Snapshot)) {
        let taken = |snapshot: &mut Snapshot| {
            take(snapshot);
            Ok::<_, std::convert::Infallible>(())
        };
        let Ok(_) = self.put(label, taken, false);
    }

    /// Adds a part that is read from outside, and returns its snapshot. If `take` fails, nothing is
    /// added. As the part may be damaged, its label text is checked.
    ///
    /// # Errors
    /// The error of `take`.
    pub fn try_add<E>(
        &mut self,
        label: Option<(&str, &str)>,
        take: impl FnOnce(&mut Snapshot) -> Result<(), E>,
    ) -> Result<&Snapshot, E> {
        self.put(label, take, true)
    }

    fn put<E>(
        &mut self,
        label: Option<(&str, &str)>,
        take: impl FnOnce(&mut Snapshot) -> Result<(), E>,
        is_foreign: bool,
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
        name.clone_into(&mut part.name);
        value.clone_into(&mut part.value);
        part.is_foreign = is_foreign;
        part.join_labels();
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

    /// Whether families of its parts were left out by their names, so that it says nothing of them.
    pub fn is_filtered(&self) -> bool {
        self.is_filtered
    }

    /// Puts the families of its parts together, before it is written.
    pub(crate) fn join(&mut self) {
        let Self { parts, used, entries, conflicts, .. } = self;
        let parts = &parts[..*used];
        entries.clear();
        conflicts.clear();
        let all_of = |(part, of): (usize, &Part)| {
            let count = of.snapshot.families().len();
            (0..count).map(move |family| Entry { part, family, is_shown: true })
        };
        // A snapshot alone sees to it that its families do not clash.
        if let [alone @ Part { is_foreign: false, .. }] = parts {
            if alone.label.is_empty() {
                return entries.extend(all_of((0, alone)));
            }
        }
        // A family that cannot be shown has no vote.
        entries.extend(parts.iter().enumerate().flat_map(all_of).filter(|entry| {
            let fault = entry.fault(parts);
            let is_sound = fault.is_none();
            conflicts.extend(fault.map(|reason| entry.conflict(parts, reason)));
            is_sound
        }));
        let has_many = parts.len() > 1;
        if has_many {
            // The families of each part are sorted, and stay so.
            entries.sort_by(|one, other| one.name(parts).cmp(other.name(parts)));
        }
        let (mut rest, mut groups) = (0, Vec::new());
        while let Some(first) = entries.get(rest) {
            let count = of_name(&entries[rest..], first.name(parts), parts);
            let group = rest..rest + count;
            rest = group.end;
            settle(&mut entries[group.clone()], parts, conflicts);
            groups.push(group);
        }
        // The families of one part do not clash.
        if has_many {
            distinguish(entries, &groups, parts, conflicts);
        }
        entries.retain(|entry| entry.is_shown);
        conflicts.sort_by(|one, other| one.family.cmp(&other.family));
    }

    /// Leaves out families that are not wanted.
    pub(crate) fn retain(&mut self, wants: impl Fn(&FamilySnapshot<'_>) -> bool) {
        let Self { parts, entries, .. } = self;
        entries.retain(|entry| entry.family(parts).is_some_and(|family| wants(&family)));
    }
}

impl Part {
    /// Puts the constant labels behind its own label, which takes the place of one of its name.
    fn join_labels(&mut self) {
        self.labels.clone_from(&self.label);
        self.names.clear();
        self.names.extend((!self.name.is_empty()).then(|| self.name.clone()));
        for (name, value) in self.snapshot.constant_labels() {
            if name != self.name {
                let comma = if self.labels.is_empty() { "" } else { "," };
                self.labels.extend([comma, &LabelText::one(name, &value)]);
                self.names.push(name.to_owned());
            }
        }
    }

    /// The text and the names of the labels that a family is shown with beside its own.
    fn labels_of(&self, family: &FamilySnapshot<'_>) -> (&str, &[String]) {
        if !family.hides_constants() {
            return (&self.labels, &self.names);
        }
        (&self.label, &self.names[..usize::from(!self.name.is_empty())])
    }
}

impl Pages for Page {
    fn entry(&self, n: usize) -> Option<(&str, FamilySnapshot<'_>)> {
        let entry = self.entries.get(n)?;
        let family = entry.family(&self.parts)?;
        Some((self.parts[entry.part].labels_of(&family).0, family))
    }

    fn entries_of_name(&self, n: usize) -> usize {
        match self.entries.get(n..) {
            // A single part has each name once.
            Some([_, ..]) if self.used == 1 => 1,
            Some(rest @ [first, ..]) => of_name(rest, first.name(&self.parts), &self.parts),
            _ => 0,
        }
    }

    fn part_labels(&self, n: usize) -> &[String] {
        self.entries.get(n).map_or(&[], |entry| &self.parts[entry.part].names)
    }

    fn has_odd_names(&self) -> bool {
        self.parts().any(|part| !part.is_plain())
    }
}

impl Entry {
    fn family(self, parts: &[Part]) -> Option<FamilySnapshot<'_>> {
        parts.get(self.part)?.snapshot.family_at(self.family)
    }

    fn name(self, parts: &[Part]) -> &str {
        self.family(parts).map_or("", |family| family.name())
    }

    fn conflict(self, parts: &[Part], reason: String) -> Conflict {
        let part = parts[self.part].value.clone();
        Conflict { part, family: self.name(parts).to_owned(), reason }
    }

    /// Why it cannot be shown with the label of its part, whatever the others have; `None` if it
    /// can.
    fn fault(self, parts: &[Part]) -> Option<String> {
        let family = self.family(parts)?;
        let part = &parts[self.part];
        let label = part.name.as_str();
        if !label.is_empty() && family.has_label(label) {
            return Some(format!(
                "it has a label {label:?} of its own, by which regions are distinguished; have that \
                 one called otherwise"
            ));
        }
        part.is_foreign.then(|| sound::fault(&family, part.labels_of(&family).1)).flatten()
    }

    /// Why it cannot be shown together with another; `None` if it can.
    fn disagreement(self, wanted: Self, parts: &[Part]) -> Option<String> {
        self.family(parts)?.disagreement(&wanted.family(parts)?)
    }
}

/// The number of entries of a name, all of which come first.
fn of_name(entries: &[Entry], name: &str, parts: &[Part]) -> usize {
    entries.iter().take_while(|entry| entry.name(parts) == name).count()
}

/// Decides which entries of one name are shown.
fn settle(entries: &mut [Entry], parts: &[Part], conflicts: &mut Vec<Conflict>) {
    let Some((wanted, ..)) = prevailing(entries.iter(), parts) else { return };
    for entry in entries {
        if let Some(reason) = entry.disagreement(wanted, parts) {
            entry.is_shown = false;
            conflicts.push(entry.conflict(parts, reason));
        }
    }
}

/// Leaves out families that have a name of others, which more parts have, or newer ones.
fn distinguish(
    entries: &mut [Entry],
    groups: &[Range<usize>],
    parts: &[Part],
    conflicts: &mut Vec<Conflict>,
) {
    let shown = |group: &Range<usize>| {
        let shown = entries[group.clone()].iter().filter(|entry| entry.is_shown);
        let (entry, is_own, count, newest) = prevailing(shown, parts)?;
        Some(((is_own, count, newest), entry, group.clone()))
    };
    let mut all: Vec<_> = groups.iter().filter_map(shown).collect();
    all.sort_by_key(|(weight, ..)| std::cmp::Reverse(*weight));
    let mut taken = TakenNames::default();
    for (n, (_, entry, group)) in all.iter().enumerate() {
        let Some(family) = entry.family(parts) else { continue };
        let Some((_, other, _)) =
            taken.take(family.kind(), family.name(), n).and_then(|n| all.get(n))
        else {
            continue;
        };
        let expected = other.name(parts);
        let kind = other.family(parts).map_or(Kind::Gauge, |other| other.kind());
        let why = clash((family.kind(), family.name()), (kind, expected)).unwrap_or_default();
        for entry in entries[group.clone()].iter_mut().filter(|entry| entry.is_shown) {
            entry.is_shown = false;
            let reason = format!("most others have {expected:?}, and {why}; rename one");
            conflicts.push(entry.conflict(parts, reason));
        }
    }
}

/// The entry with the definition that most entries have; in a tie the newest. Entries read from
/// outside never outvote others. It comes with whether any entry of this definition is not from
/// outside, how many entries have it, and when the newest of them was registered.
fn prevailing<'a>(
    entries: impl Iterator<Item = &'a Entry>,
    parts: &[Part],
) -> Option<(Entry, bool, usize, u64)> {
    // As many as there are definitions, which are few.
    let mut found: Vec<(Entry, bool, usize, u64)> = Vec::new();
    for &entry in entries {
        let Some(family) = entry.family(parts) else { continue };
        let (is_own, created) = (!parts[entry.part].is_foreign, family.created_nanos());
        let agrees = |other: Entry| other.disagreement(entry, parts).is_none();
        match found.iter_mut().find(|(known, ..)| agrees(*known)) {
            Some((_, any_own, count, newest)) => {
                *any_own |= is_own;
                *count += 1;
                *newest = created.max(*newest);
            }
            None => found.push((entry, is_own, 1, created)),
        }
    }
    found.into_iter().max_by_key(|&(_, is_own, count, newest)| (is_own, count, newest))
}
