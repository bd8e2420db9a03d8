//! Info: facts that do not change while a process runs, as labels.

use std::borrow::Cow;

use talea_region::{Cell, Combine, Number, Storage};

use super::slot::Slot;
use super::{Shape, single_cell_metric};
use crate::definition::kind::Kind;
use crate::definition::names::OVERFLOW;
use crate::family::Family;
use crate::family::values::{self, DynamicLabels};
use crate::labels::{LabelText, Labels};
use crate::registry::register::MOST_LABELS;

/// The series of an [`Info`], which is 1.
#[derive(Clone, Debug)]
pub(crate) struct InfoSeries {
    cell: Slot<Cell>,
}

single_cell_metric!(pub(crate) InfoSeries, |opts| {
    Shape::without_choice(opts)?;
    let (number, storage) = (Number::Integer, Some(Storage::Single));
    Ok(Shape::single_cell(Kind::Info, number, storage, Combine::Latest, "_info"))
});

/// A fact that does not change while the process runs, such as its version: a series that is always
/// 1, with the fact in its labels.
///
/// Processes that share the region share it: the latest call wins.
///
/// ```
/// use talea::{Info, Labels, Opts, Registry};
///
/// #[derive(Labels)]
/// struct Build<'a> { version: &'a str, revision: &'a str }
///
/// let registry = Registry::for_test()?;
/// let build: Info<Build<'static>> =
///     registry.register(Opts::new("shop_build", "The source and the compiler of this program."))?;
/// build.set(Build { version: "1.4.0", revision: "f3a91c" });
/// let labels = [("version", "1.4.0"), ("revision", "f3a91c")];
/// assert_eq!(registry.snapshot().value("shop_build_info", &labels), Some(1.0));
/// # Ok::<(), talea::Error>(())
/// ```
pub struct Info<L> {
    pub(crate) family: Family<L, InfoSeries>,
}

impl<L> Info<L> {
    /// An info that is not installed yet: until then, its updates are discarded.
    #[track_caller]
    pub const fn new() -> Self {
        Self { family: Family::new() }
    }
}

impl<L: 'static> Info<L> {
    /// Sets the labels, in place of the previous ones. If the region has no room for them, nothing
    /// changes.
    ///
    /// Cost: making a series, and a look at the previous ones; it is meant to be called
    /// once.
    pub fn set<Q: Labels<Static = L>>(&self, labels: Q) {
        let text = LabelText::of(&labels);
        self.replace(text.as_bytes(), |_| true);
    }

    /// Makes the series of this label text, and removes those others that it is in place of.
    fn replace(&self, text: &[u8], is_previous: impl Fn(&[u8]) -> bool) {
        let Some(series) = self.family.bound().map(|bound| bound.family) else {
            return self.family.late.note_discarded();
        };
        // Two concurrent calls with different labels may remove the series of each other. So a call
        // that removed a series checks again that its own is there. The number of attempts is
        // bounded, in case the region is damaged.
        for _ in 0..1000 {
            let Ok(looked) = series.series(text) else { return };
            looked.at(0).set(1);
            let mut is_there = false;
            let removed = series.remove_where(|other| {
                let own = other == text;
                is_there |= own;
                !own && is_previous(other)
            });
            if is_there && removed == 0 {
                return;
            }
        }
    }
}

impl Info<DynamicLabels> {
    /// Sets labels whose names are known at run time, in place of the previous ones of the same `group`:
    /// values of the names that [`Registry::info`](crate::Registry::info) was given. A quote, a backslash or a
    /// control character in a name becomes `_`; `__name__`, which is the metric's own name, becomes
    /// `_name__`; a name that is there already gets a `_` at its end; a label without a name is left out, and so are
    /// those beyond a thousand, which readers refuse.
    ///
    /// Cost: as [`set`](Info::set).
    pub fn set_pairs(&self, group: &[impl AsRef<str>], labels: &[(&str, &str)]) {
        let Some(bound) = self.family.bound() else { return self.family.late.note_discarded() };
        let mut text = group_text(bound.openings, group);
        let group = text.as_bytes().to_vec();
        let of_group = bound.openings.iter().filter_map(|opening| opening.strip_suffix("=\""));
        let mut taken: Vec<Cow<'_, str>> = of_group.map(Cow::Borrowed).collect();
        let named = labels.iter().filter(|(name, _)| !name.is_empty());
        for (name, value) in named.take(MOST_LABELS.saturating_sub(taken.len())) {
            let mut name = usable(name);
            while taken.contains(&name) {
                name.to_mut().push('_');
            }
            text.label(&name, *value);
            taken.push(name);
        }
        self.replace(text.as_bytes(), |other| is_of_group(other, &group));
    }

    /// Shows a group before it has labels, unless it is there. Of calls at once, in any processes, this one
    /// never removes labels that another one sets. Cost: two looks at each series.
    pub fn begin_pairs(&self, group: &[impl AsRef<str>]) {
        let Some(bound) = self.family.bound() else { return self.family.late.note_discarded() };
        let text = group_text(bound.openings, group);
        let group = text.as_bytes();
        let is_any = |is_it: &dyn Fn(&[u8]) -> bool| {
            let mut is_there = false;
            bound.family.remove_where(|other| {
                is_there |=
                    other != OVERFLOW.as_bytes() && is_of_group(other, group) && is_it(other);
                false
            });
            is_there
        };
        if is_any(&|_| true) {
            return;
        }
        let Ok(looked) = bound.family.series(group) else { return };
        looked.at(0).set(1);
        drop(looked);
        // Another call makes its series before it removes the series of the group, so it is there if it did not
        // remove this one.
        if is_any(&|other| other != group) {
            bound.family.remove(group);
        }
    }

    /// Removes the labels of a group. Cost: a look at each series.
    pub fn remove_pairs(&self, group: &[impl AsRef<str>]) {
        let Some(bound) = self.family.bound() else { return };
        let text = group_text(bound.openings, group);
        bound.family.remove_where(|other| is_of_group(other, text.as_bytes()));
    }
}

/// A name that can be a label's, in quotes.
fn usable(name: &str) -> Cow<'_, str> {
    fn is_unusable(c: char) -> bool {
        matches!(c, '"' | '\\') || c.is_control()
    }
    match name {
        "__name__" => Cow::Borrowed("_name__"),
        _ if name.contains(is_unusable) => Cow::Owned(name.replace(is_unusable, "_")),
        _ => Cow::Borrowed(name),
    }
}

fn group_text(openings: &[String], group: &[impl AsRef<str>]) -> LabelText {
    let mut text = LabelText::new();
    if !group.is_empty() {
        values::write(&mut text, openings, group);
    }
    text
}

/// Whether a label text is the text of a group, or begins with it and has more labels.
fn is_of_group(text: &[u8], group: &[u8]) -> bool {
    // A group ends with the quote of its last value, so no other value begins as it does.
    let rest = text.strip_prefix(group);
    rest.is_some_and(|rest| group.is_empty() || rest.is_empty() || rest.starts_with(b","))
}

impl<L> Default for Info<L> {
    #[track_caller]
    fn default() -> Self {
        Self::new()
    }
}

impl<L> Clone for Info<L> {
    fn clone(&self) -> Self {
        Self { family: self.family.clone() }
    }
}

impl<L> std::fmt::Debug for Info<L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Info").field("family", &self.family).finish()
    }
}

#[cfg(test)]
mod tests {
    use crate::{Opts, Registry};

    #[test]
    fn groups_have_facts_of_their_own() {
        let registry = Registry::for_test().unwrap();
        let info = registry.info(Opts::new("worker", "Workers."), &["queue"]).unwrap();
        info.set_pairs(&["a"], &[("version", "1"), ("host", "x")]);
        info.set_pairs(&["a, b"], &[]);
        info.set_pairs(&["a\",b"], &[("version", "3")]);
        info.set_pairs(&["a"], &[("version", "2"), ("__name__", "x")]);
        let snapshot = registry.snapshot();
        let is_there = |labels: &[(&str, &str)]| snapshot.value("worker_info", labels) == Some(1.0);
        assert!(is_there(&[("queue", "a"), ("version", "2"), ("_name__", "x")]));
        assert!(is_there(&[("queue", "a, b")]));
        assert!(is_there(&[("queue", "a\",b"), ("version", "3")]));
        assert_eq!(snapshot.select("worker_info", &[]).count(), 3);
        info.remove_pairs(&["a"]);
        assert_eq!(registry.snapshot().select("worker_info", &[]).count(), 2);
    }

    #[test]
    fn without_labels_there_is_one_group() {
        let registry = Registry::for_test().unwrap();
        let info = registry.info(Opts::new("build", "Build."), &[""; 0]).unwrap();
        assert_eq!(registry.snapshot().select("build_info", &[]).count(), 0);
        let none = [""; 0];
        info.set_pairs(&none, &[]);
        assert_eq!(registry.snapshot().value("build_info", &[]), Some(1.0));
        info.set_pairs(&none, &[("version", "1")]);
        info.set_pairs(&none, &[("revision", "x"), ("version", "2")]);
        let snapshot = registry.snapshot();
        assert_eq!(snapshot.select("build_info", &[]).count(), 1);
        let labels = [("revision", "x"), ("version", "2")];
        assert_eq!(snapshot.value("build_info", &labels), Some(1.0));
    }

    #[test]
    fn a_group_that_begins_takes_the_labels_of_no_other_call() {
        const GROUPS: usize = if cfg!(miri) { 3 } else { 400 };
        let registry = Registry::for_test().unwrap();
        let info = registry.info(Opts::new("worker", "Workers."), &["queue"]).unwrap();
        let both = std::sync::Barrier::new(2);
        let each_group = |act: &dyn Fn(&str)| {
            for n in 0..GROUPS {
                both.wait();
                act(&n.to_string());
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| each_group(&|group| info.begin_pairs(&[group])));
            each_group(&|group| info.set_pairs(&[group], &[("version", "1")]));
        });
        let snapshot = registry.snapshot();
        assert_eq!(snapshot.select("worker_info", &[("version", "1")]).count(), GROUPS);
        assert_eq!(snapshot.select("worker_info", &[]).count(), GROUPS);
        info.begin_pairs(&["new"]);
        assert_eq!(registry.snapshot().value("worker_info", &[("queue", "new")]), Some(1.0));
    }
}
