//! Several registries as one page: the same families together, each series with a label
//! that says where it comes from.

mod sound;

use std::fmt;
use std::ops::Range;

use crate::expose::Family;
use crate::labels::LabelText;
use crate::metric::Kind;
use crate::names::{clashes, is_plain_label};
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
/// shown, of as many the newest, and the others are [conflicts](Self::conflicts). So it is
/// with families of two names that would have one in OpenMetrics, where a counter's goes
/// without `_total`. Families that cannot be shown with the label of their part, or whose own
/// labels cannot be read, are conflicts too, and outvote none; nor does what is read from
/// outside, with [`try_add`](Self::try_add), outvote what is not.
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
        let Ok(_) = self.put(label, taken, false);
    }

    /// The same of what is read from outside, unless `take` fails: then nothing is added. What
    /// was added. As it may be damaged, its label text is looked at.
    ///
    /// # Errors
    ///
    /// What `take` fails with.
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
        part.name.clear();
        part.name.push_str(name);
        part.value.clear();
        part.value.push_str(value);
        part.is_foreign = is_foreign;
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
        let all_of = |(part, of): (usize, &Part)| {
            let count = of.snapshot.families().len();
            (0..count).map(move |family| Entry { part, family, is_shown: true })
        };
        // A registry alone sees to it that its families do not clash.
        if let [alone @ Part { is_foreign: false, .. }] = parts {
            if alone.label.is_empty() {
                return entries.extend(all_of((0, alone)));
            }
        }
        // What cannot be shown at all has no say in how the others are.
        entries.extend(parts.iter().enumerate().flat_map(all_of).filter(|entry| {
            let fault = entry.fault(parts);
            let is_sound = fault.is_none();
            conflicts.extend(fault.map(|reason| entry.conflict(parts, reason)));
            is_sound
        }));
        let has_many = parts.len() > 1;
        if has_many {
            // Those of each part are sorted, and stay so.
            entries.sort_by(|one, other| one.name(parts).cmp(other.name(parts)));
        }
        let mut rest = 0;
        while let Some(first) = entries.get(rest) {
            let name = first.name(parts);
            let group = rest..rest + of_name(&entries[rest..], name, parts);
            rest = group.end;
            let rivals = if has_many { rivals(entries, name, parts) } else { Vec::new() };
            match rivals.first() {
                None => settle(entries, &[group], parts, conflicts),
                // All of them are settled once, with the first.
                Some(first) if first.start < group.start => {}
                Some(_) => {
                    let all: Vec<_> = [group].into_iter().chain(rivals).collect();
                    settle(entries, &all, parts, conflicts);
                }
            }
        }
        entries.retain(|entry| entry.is_shown);
        conflicts.sort_by(|one, other| one.family.cmp(&other.family));
    }

    /// A family whose first entry is at a place, with all of its parts.
    pub(crate) fn family_at(&self, place: usize) -> Option<Family<'_>> {
        let rest = self.entries.get(place..).filter(|rest| !rest.is_empty())?;
        // One part has each once.
        let count =
            if self.used == 1 { 1 } else { of_name(rest, rest[0].name(&self.parts), &self.parts) };
        Some(Family::OfPage { page: self, from: place, count })
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

    fn conflict(self, parts: &[Part], reason: String) -> Conflict {
        let part = parts[self.part].value.clone();
        Conflict { part, family: self.name(parts).to_owned(), reason }
    }

    /// Why it cannot be shown with the label of its part, whatever the others have; `None`
    /// where it can.
    fn fault(self, parts: &[Part]) -> Option<String> {
        let family = self.family(parts)?;
        let label = parts[self.part].name.as_str();
        let has_it = |name: &str| !label.is_empty() && name == label;
        let own = (family.kind() == Kind::StateSet).then(|| family.name());
        let mut names = family.label_names().iter().map(String::as_str).chain(own);
        if names.any(has_it) {
            return Some(format!(
                "it has a label {label:?} of its own, by which regions are told apart; have that \
                 one called otherwise"
            ));
        }
        parts[self.part].is_foreign.then(|| sound::fault(&family, label)).flatten()
    }

    /// Why it cannot be shown together with another; `None` where it can.
    fn disagreement(self, wanted: Self, parts: &[Part]) -> Option<String> {
        let (name, expected) = (self.name(parts), wanted.name(parts));
        if name != expected {
            return Some(format!(
                "most others have {expected:?}, and in OpenMetrics the two would have one name; \
                 rename one"
            ));
        }
        self.family(parts)?.disagreement(&wanted.family(parts)?)
    }
}

/// How many entries are of a name, all of which come first.
fn of_name(entries: &[Entry], name: &str, parts: &[Part]) -> usize {
    entries.iter().take_while(|entry| entry.name(parts) == name).count()
}

/// Where the entries are whose names clash with one, in their order.
fn rivals(entries: &[Entry], name: &str, parts: &[Part]) -> Vec<Range<usize>> {
    let all = clashes(name).map(|other| {
        let at = entries.partition_point(|entry| entry.name(parts) < other.as_str());
        at..at + of_name(&entries[at..], &other, parts)
    });
    let mut all: Vec<_> = all.filter(|range| !range.is_empty()).collect();
    all.sort_by_key(|range| range.start);
    all
}

/// Decides which entries of such groups are shown.
fn settle(
    entries: &mut [Entry],
    groups: &[Range<usize>],
    parts: &[Part],
    conflicts: &mut Vec<Conflict>,
) {
    let wanted = prevailing(groups.iter().flat_map(|group| &entries[group.clone()]), parts);
    for entry in groups.iter().flat_map(|group| group.clone()) {
        let entry = &mut entries[entry];
        let Some(reason) = wanted.and_then(|wanted| entry.disagreement(wanted, parts)) else {
            continue;
        };
        entry.is_shown = false;
        conflicts.push(entry.conflict(parts, reason));
    }
}

/// Which entry says what most of them say; of as many, the newest. What is read from outside
/// does not outvote what is not.
fn prevailing<'a>(entries: impl Iterator<Item = &'a Entry>, parts: &[Part]) -> Option<Entry> {
    let mut entries = entries.peekable();
    let first = entries.next()?;
    if entries.peek().is_none() {
        return Some(*first);
    }
    // As many as there are definitions, which are few.
    let mut found: Vec<(Entry, bool, usize, u64)> = Vec::new();
    for &entry in std::iter::once(first).chain(entries) {
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
    let best = found.into_iter().max_by_key(|&(_, is_own, count, newest)| (is_own, count, newest));
    best.map(|(entry, ..)| entry)
}

/// Whether regions may be told apart by a label of this name: it is one that any format can
/// show as it is, and none that has a meaning.
pub fn is_usable_as_part_label(name: &str) -> bool {
    const TAKEN: [&str; 5] = ["le", "quantile", "family", "pid", "otel_metric_overflow"];
    is_plain_label(name) && !name.starts_with('_') && !TAKEN.contains(&name)
}
