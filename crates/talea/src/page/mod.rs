//! Several registries as one page: the same families together, each series with a label that names
//! its origin.

mod clashes;
mod sound;

use std::fmt;
use std::ops::Range;

use crate::definition::kind::Kind;
use crate::expose::{Pages, TextFormat};
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

/// Snapshots that are shown together. Families of one name and one type are one family, whatever
/// else differs in their definitions: each series has the label of its part and its own buckets,
/// quantiles, states and labels. The help text of the first part is shown. A label of a family that
/// has the name of its part's label is shown as `exported_NAME`, as Prometheus does.
///
/// Two families of one name and different types, or of which one, or one of its samples, would have
/// a name of the other, are both shown too. (In OpenMetrics a counter's name goes without `_total`,
/// so it clashes with a gauge of that name.) A text format names each type once, so there as many
/// of them as possible keep their types: first families of parts that are not from outside, then those
/// that most parts have, then the newest. The samples of the others are shown as families of unknown
/// type, one for each name of a sample, and that is a [conflict](Self::conflicts). Protobuf shows
/// all of them with their types.
///
/// A family is left out only if its label text cannot be read, or if its series could be the same as
/// families of another part, because one of the two has no label: then a part that is read from outside,
/// with [`try_add`](Self::try_add), never displaces one that is not. These are conflicts too.
///
/// It reuses its memory when it is filled again.
#[derive(Clone, Debug, Default)]
pub struct Page {
    parts: Vec<Part>,
    /// How many of them are of this page; the others are memory.
    used: usize,
    /// The families by name and type, and families with one name and one type by part.
    entries: Vec<Entry>,
    conflicts: Vec<Conflict>,
    /// Whether some family was not wanted.
    pub(crate) is_filtered: bool,
}

#[derive(Clone, Debug, Default)]
struct Part {
    /// Its label as text, and the label's name and value; empty if it has no label.
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
    /// Whether it has a label of the name of its part's.
    is_exported: bool,
    /// Whether each text format shows it without its type.
    is_untyped: [bool; TextFormat::COUNT],
}

/// A family that is not shown as it is defined.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Conflict {
    /// The label value of its part; empty if the part has no label.
    pub part: String,
    /// Its name, as samples have it.
    pub family: String,
    /// How much of it is lost.
    pub loss: Loss,
    /// The cause, in words.
    pub reason: String,
}

/// How much of a family a page loses by a [conflict](Conflict).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loss {
    /// All of it: it is left out.
    Family,
    /// Its type in OpenMetrics, and exemplars with it. All samples are shown.
    TypeInOpenMetrics,
    /// Its type in Prometheus' text format and in OpenMetrics. All samples are shown.
    TypeInTexts,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { family, reason, .. } = self;
        match self.loss {
            Loss::Family => write!(f, "the family {family} is left out: {reason}"),
            Loss::TypeInOpenMetrics => {
                write!(f, "the family {family} has no type in OpenMetrics: {reason}")
            }
            Loss::TypeInTexts => {
                write!(f, "the family {family} has no type in the text formats: {reason}")
            }
        }
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
        let Ok(_) = self.put(
            label,
            |snapshot: &mut Snapshot| {
                take(snapshot);
                Ok::<_, std::convert::Infallible>(())
            },
            false,
        );
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

    /// The families that are left out or lose their types, by name. Known once its parts were
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
            (0..count).map(move |family| Entry::new(part, family))
        };
        // A snapshot alone sees to it that its families do not clash.
        if let [alone @ Part { is_foreign: false, .. }] = parts {
            if alone.label.is_empty() {
                return entries.extend(all_of((0, alone)));
            }
        }
        for mut entry in parts.iter().enumerate().flat_map(all_of) {
            entry.is_exported = entry.has_label_of_its_part(parts);
            match entry.fault(parts) {
                None => entries.push(entry),
                Some(reason) => conflicts.push(entry.conflict(parts, Loss::Family, reason)),
            }
        }
        if parts.len() > 1 {
            // The families of each part are sorted, and stay so.
            entries.sort_by(|one, other| one.key(parts).cmp(&other.key(parts)));
            let groups = groups(entries, parts);
            for group in &groups {
                clashes::tell_apart(entries, group.clone(), parts, conflicts);
            }
            // The families of one part do not clash.
            clashes::settle(entries, &groups, parts, conflicts);
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

    fn entries_of_family(&self, n: usize) -> usize {
        match self.entries.get(n..) {
            // A single part has each name once.
            Some([_, ..]) if self.used == 1 => 1,
            Some(rest @ [..]) => count_of_first(rest, &self.parts),
            None => 0,
        }
    }

    fn part_labels(&self, n: usize) -> &[String] {
        let Some(entry) = self.entries.get(n) else { return &[] };
        let part = &self.parts[entry.part];
        entry.family(&self.parts).map_or(&[], |family| part.labels_of(&family).1)
    }

    fn exported_label(&self, n: usize) -> Option<&str> {
        let entry = self.entries.get(n).filter(|entry| entry.is_exported)?;
        Some(&self.parts[entry.part].name)
    }

    fn is_untyped(&self, n: usize, format: TextFormat) -> bool {
        self.entries.get(n).is_some_and(|entry| entry.is_untyped[format as usize])
    }

    fn has_untyped(&self) -> bool {
        self.entries.iter().any(|entry| entry.is_untyped.contains(&true))
    }

    fn has_odd_names(&self) -> bool {
        self.parts().any(|part| !part.is_plain())
    }
}

impl Entry {
    fn new(part: usize, family: usize) -> Self {
        let is_untyped = [false; TextFormat::COUNT];
        Self { part, family, is_shown: true, is_exported: false, is_untyped }
    }

    fn family(self, parts: &[Part]) -> Option<FamilySnapshot<'_>> {
        parts.get(self.part)?.snapshot.family_at(self.family)
    }

    fn name(self, parts: &[Part]) -> &str {
        self.family(parts).map_or("", |family| family.name())
    }

    fn kind(self, parts: &[Part]) -> Kind {
        self.family(parts).map_or(Kind::Gauge, |family| family.kind())
    }

    /// By which entries are put together.
    fn key(self, parts: &[Part]) -> (&str, u8) {
        (self.name(parts), self.kind(parts) as u8)
    }

    fn conflict(self, parts: &[Part], loss: Loss, reason: String) -> Conflict {
        let part = parts[self.part].value.clone();
        Conflict { part, family: self.name(parts).to_owned(), loss, reason }
    }

    fn has_label_of_its_part(self, parts: &[Part]) -> bool {
        let label = &parts[self.part].name;
        !label.is_empty() && self.family(parts).is_some_and(|family| family.has_label(label))
    }

    /// Why it cannot be shown with the label of its part, whatever the others have; `None` if it
    /// can.
    fn fault(self, parts: &[Part]) -> Option<String> {
        let family = self.family(parts)?;
        let part = &parts[self.part];
        if self.is_exported && family.kind() == Kind::StateSet && family.name() == part.name {
            // OpenMetrics has the states in a label of the family's name.
            return Some(format!(
                "the name of a state set is a label of it, and regions are distinguished by {:?}; \
                 rename it",
                part.name
            ));
        }
        let labels = part.labels_of(&family).1;
        // The label of the part is the first.
        let labels = &labels[usize::from(self.is_exported)..];
        part.is_foreign.then(|| sound::fault(&family, labels)).flatten()
    }
}

/// The entries of each name and type, which follow each other.
fn groups(entries: &[Entry], parts: &[Part]) -> Vec<Range<usize>> {
    let (mut from, mut groups) = (0, Vec::new());
    while from < entries.len() {
        let end = from + count_of_first(&entries[from..], parts);
        groups.push(from..end);
        from = end;
    }
    groups
}

/// How many entries have the name and the type of the first, all of which come first.
fn count_of_first(entries: &[Entry], parts: &[Part]) -> usize {
    let Some(first) = entries.first().map(|first| first.key(parts)) else { return 0 };
    entries.iter().take_while(|entry| entry.key(parts) == first).count()
}
