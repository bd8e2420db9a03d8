//! Families of several parts that have names in common: which of them are shown, and which keep
//! their types.

use std::collections::HashMap;
use std::ops::Range;

use super::{Conflict, Entry, Loss, Part};
use crate::definition::kind::Kind;
use crate::definition::names::{TakenNames, clash};
use crate::expose::TextFormat;

/// Leaves out entries whose series cannot be distinguished from the series of others.
pub(super) fn tell_apart(
    entries: &mut [Entry],
    which: impl Iterator<Item = usize> + Clone,
    parts: &[Part],
    conflicts: &mut Vec<Conflict>,
) {
    let mut labels = which.clone().map(|n| &parts[entries[n].part].name);
    let Some(first) = labels.next() else { return };
    // Parts with one label differ in its value.
    if !first.is_empty() && labels.all(|label| label == first) {
        return;
    }
    let mut order: Vec<usize> = which.filter(|n| entries[*n].is_shown).collect();
    order.sort_by_key(|n| std::cmp::Reverse(rank(&entries[*n..=*n], parts)));
    let mut shown: Vec<Entry> = Vec::new();
    for n in order {
        let entry = entries[n];
        let Some(other) = shown.iter().find(|other| !is_told_apart(entry, **other, parts)) else {
            shown.push(entry);
            continue;
        };
        entries[n].is_shown = false;
        let other = match parts[other.part].value.as_str() {
            "" => "which is shown without a label for its origin".to_owned(),
            value => format!("of {value:?}"),
        };
        let reason = format!(
            "its series cannot be distinguished from series of another family of this name, {other}; \
             rename one"
        );
        conflicts.push(entry.conflict(parts, Loss::Family, reason));
    }
}

/// Whether no series of one entry can have all labels of a series of the other: the label of a part
/// distinguishes them.
fn is_told_apart(one: Entry, other: Entry, parts: &[Part]) -> bool {
    let [part, other_part] = [one, other].map(|entry| &parts[entry.part]);
    if part.name == other_part.name && part.value != other_part.value {
        return true;
    }
    // A label without a value is no label.
    let only_one_has = |part: &Part, other: Entry| {
        let has_value = !part.name.is_empty() && !part.value.is_empty();
        has_value && !has_label(other, &part.name, parts)
    };
    only_one_has(part, other) || only_one_has(other_part, one)
}

/// Whether an entry is shown with a label of this name, its own or its part's.
fn has_label(entry: Entry, name: &str, parts: &[Part]) -> bool {
    entry.family(parts).is_none_or(|family| {
        let added = parts[entry.part].labels_of(&family).1;
        added.iter().any(|label| label == name) || family.has_label(name)
    })
}

/// The weight of entries that are shown as one family: whether any of them is not from outside, how
/// many they are, and when the newest was registered.
fn rank(entries: &[Entry], parts: &[Part]) -> (bool, usize, u64) {
    let mut rank = (false, 0, 0);
    for entry in entries.iter().filter(|entry| entry.is_shown) {
        let created = entry.family(parts).map_or(0, |family| family.created_nanos());
        rank = (rank.0 || !parts[entry.part].is_foreign, rank.1 + 1, rank.2.max(created));
    }
    rank
}

/// A group of entries, which are shown as one family.
struct Group<'a> {
    entries: Range<usize>,
    kind: Kind,
    name: &'a str,
}

/// Decides which families keep their types if their names clash.
pub(super) fn settle(
    entries: &mut [Entry],
    groups: &[Range<usize>],
    parts: &[Part],
    conflicts: &mut Vec<Conflict>,
) {
    let groups = groups.iter().map(|range| {
        let first = entries[range.start];
        Group { entries: range.clone(), kind: first.kind(parts), name: first.name(parts) }
    });
    let groups: Vec<Group<'_>> = groups.collect();
    let mut taken = TakenNames::default();
    // The names in OpenMetrics include the names in the other format.
    if !groups.iter().any(|group| taken.take(group.kind, group.name, 0).is_some()) {
        return;
    }
    for (_, rivals) in in_common(TextFormat::OpenMetrics, &groups) {
        let all = rivals.iter().flat_map(|n| groups[*n].entries.clone());
        tell_apart(entries, all, parts, conflicts);
    }
    let mut by_rank: Vec<usize> = (0..groups.len()).collect();
    by_rank.sort_by_key(|n| std::cmp::Reverse(rank(&entries[groups[*n].entries.clone()], parts)));
    by_rank.retain(|n| entries[groups[*n].entries.clone()].iter().any(|it| it.is_shown));
    let rivals = TextFormat::ALL.map(|format| untyped(format, &groups, &by_rank));
    for n in by_rank {
        let Group { entries: range, kind, name } = &groups[n];
        let found = TextFormat::ALL.map(|format| rivals[format as usize].get(&n));
        let loss = match found[TextFormat::Plain as usize] {
            Some(_) => Loss::TypeInTexts,
            None => Loss::TypeInOpenMetrics,
        };
        let Some(rival) = found.into_iter().flatten().next().map(|rival| &groups[*rival]) else {
            continue;
        };
        let reason = reason((*kind, name), (rival.kind, rival.name));
        for entry in entries[range.clone()].iter_mut().filter(|entry| entry.is_shown) {
            entry.is_untyped = found.map(|rival| rival.is_some());
            conflicts.push(entry.conflict(parts, loss, reason.clone()));
        }
    }
}

fn reason(found: (Kind, &str), rival: (Kind, &str)) -> String {
    let [kind, other_kind] = [found.0, rival.0].map(Kind::as_str);
    let other = rival.1;
    if found.1 == other {
        return format!("it is a {kind} here, and a {other_kind} elsewhere; rename one");
    }
    let why = clash(found, rival).unwrap_or_default();
    format!("elsewhere there is the {other_kind} {other:?}, and {why}; rename one")
}

/// The names of samples that several groups have, with the groups.
fn in_common(format: TextFormat, groups: &[Group<'_>]) -> HashMap<String, Vec<usize>> {
    let mut all: HashMap<String, Vec<usize>> = HashMap::new();
    for (n, group) in groups.iter().enumerate() {
        for name in format.samples(group.kind, group.name) {
            all.entry(name).or_default().push(n);
        }
    }
    all.retain(|_, groups| groups.len() > 1);
    all
}

/// The groups that a format cannot show with their types, each with a group that is the cause.
///
/// A group can have its type if no name of it is the name of a sample of another group, nor a name
/// of another group that has its type. All samples are shown, so the first of the two does not
/// depend on which groups have their types.
fn untyped(format: TextFormat, groups: &[Group<'_>], by_rank: &[usize]) -> HashMap<usize, usize> {
    let mut samples: HashMap<String, Vec<usize>> = HashMap::new();
    for n in by_rank {
        for name in format.samples(groups[*n].kind, groups[*n].name) {
            samples.entry(name).or_default().push(*n);
        }
    }
    let (mut names, mut untyped) = (HashMap::new(), HashMap::new());
    for n in by_rank {
        let own: Vec<String> = format.names(groups[*n].kind, groups[*n].name).collect();
        let of_samples = own.iter().filter_map(|name| samples.get(name)).flatten();
        let of_names = own.iter().filter_map(|name| names.get(name));
        match of_samples.chain(of_names).find(|other| *other != n) {
            Some(rival) => _ = untyped.insert(*n, *rival),
            None => names.extend(own.into_iter().map(|name| (name, *n))),
        }
    }
    untyped
}
