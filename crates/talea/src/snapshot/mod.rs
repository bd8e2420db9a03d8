//! Snapshots: the values of a registry at one instant, for scrapes and for tests.

pub(crate) mod constant_labels;
pub(crate) mod derived_series;
mod family;
mod family_meta;
pub(crate) mod newest;
pub(crate) mod observed;
mod shown;

use std::time::SystemTime;

use talea_region::{FamilyCopy, LivingProcess, SeriesView};

use self::constant_labels::ConstantLabels;
use self::family_meta::FamilyMeta;
use self::newest::{add_rival, use_of};
use crate::definition::Recent;
use crate::definition::kind::Kind;
use crate::definition::names::{self, TakenNames};
use crate::samples;

pub use self::family::{FamilySnapshot, SeriesSnapshot, SummarySnapshot, Value};
pub(crate) use self::family_meta::recent_of;
pub(crate) use self::shown::Shown;

/// All values of a registry at one instant, copied out of the region. Later updates do not change
/// it, and it can be sent to any thread. A clone copies all of it.
#[derive(Clone, Default)]
pub struct Snapshot {
    raw: talea_region::Snapshot,
    /// The families that can be shown, by name.
    families: Vec<FamilyMeta>,
    /// The families of the last time, while this one is filled.
    before: Vec<FamilyMeta>,
    /// Their names and help, one after the other, so that a pass over all families is a pass over
    /// one piece of memory.
    texts: String,
    /// The raw families that were looked at for them, if none of them was left out since.
    learned: Option<Vec<[u64; 5]>>,
    /// Raw families of a name that has several definitions: the one that is shown, and another.
    rivals: Vec<(usize, usize)>,
    /// The names of families that are left out, since others have a name of theirs.
    hidden: Vec<String>,
    /// The labels that each series is shown with.
    pub(crate) constants: ConstantLabels,
    /// Whether the label text of all series together is UTF-8. In a region that is not
    /// damaged it is.
    is_text: bool,
}

impl Snapshot {
    /// Takes a new snapshot in this memory. `copy` fills in the raw one with the families whose
    /// names are wanted; only these are shown.
    pub(crate) fn take(
        &mut self,
        wants: impl Fn(&str) -> bool,
        copy: impl FnOnce(&mut talea_region::Snapshot, &dyn Fn(&FamilyCopy) -> bool),
    ) {
        self.refill(&wants, |raw| {
            copy(raw, &|family| {
                is_internal_kind(family.kind)
                    || std::str::from_utf8(&family.name).is_ok_and(|name: &str| {
                        let owner = samples::owner_of(name);
                        wants(owner)
                            || (owner != name || recent_of(family).is_some())
                                && wants(&names::recent(owner))
                    })
            });
            if wants(derived_series::DROPPED) {
                derived_series::dropped(raw);
            }
        });
    }

    /// As [`take`](Self::take), if `copy` chooses the families itself.
    pub(crate) fn refill(
        &mut self,
        wants: impl Fn(&str) -> bool,
        copy: impl FnOnce(&mut talea_region::Snapshot),
    ) {
        copy(&mut self.raw);
        self.constants.read(&self.raw);
        let ages = observed::Ages::of(&self.raw);
        if wants(derived_series::AGE) {
            ages.add_to(&mut self.raw);
        }
        derived_series::by_process(&mut self.raw);
        if !self.is_unchanged() {
            self.learn();
            self.hide_clashing();
            self.add_recent();
            self.put_texts();
        }
        for &(shown, other) in &self.rivals {
            add_rival(&mut self.raw, shown, other);
        }
        let Self { raw, families, texts, is_text, .. } = self;
        for FamilyMeta { n, kind, definition, quantiles, window_totals, .. } in families.iter_mut()
        {
            quantiles.clear();
            window_totals.clear();
            if *kind == Kind::StateSet {
                derived_series::by_state(raw, *n, &definition.states);
            }
        }
        *is_text = std::str::from_utf8(raw.text()).is_ok();
        let count = families.len();
        families.retain(|known| {
            let name = &texts[known.name.clone()];
            wants(name) && !ages.hides(name)
        });
        if families.len() < count {
            self.learned = None;
        }
        self.compare_with_constants();
        if self.families.iter().any(FamilyMeta::is_sampled) {
            self.show_samples(SystemTime::now());
        }
    }

    /// Whether the families, and so their definitions, are the same as the last time. If several
    /// families have one name, the answer is no: the processes decide which of them is in use.
    fn is_unchanged(&self) -> bool {
        let found = self.raw.families().iter().map(FamilyCopy::about);
        self.rivals.is_empty()
            && self.hidden.is_empty()
            && self.learned.as_ref().is_some_and(|learned| found.eq(learned.iter().copied()))
    }

    /// Reads the families again; definitions that are new are decoded.
    fn learn(&mut self) {
        let Self { raw, families, before, learned, rivals, .. } = self;
        let all = learned.get_or_insert_default();
        all.clear();
        all.extend(raw.families().iter().map(FamilyCopy::about));
        families.retain(|family| family.recent_name.is_none());
        // They mostly come in the order of the last time.
        families.sort_unstable_by_key(|family| family.n);
        std::mem::swap(families, before);
        let mut before = before.drain(..).peekable();
        for (n, family) in raw.families().iter().enumerate() {
            while before.next_if(|earlier| earlier.n < n).is_some() {}
            let same = before.next_if(|e| e.n == n && e.about == family.about());
            // A definition that cannot be decoded was not written by Talea, and is left out.
            let known = same.or_else(|| FamilyMeta::of(n, family, families));
            families.extend(known);
        }
        drop(before);
        // Of several definitions of one name, the newest that a living process uses is shown. If no
        // such process lives, the one that was used last is shown.
        let raw_of = |known: &FamilyMeta| &raw.families()[known.n];
        families.sort_unstable_by(|one, other| {
            let (one, other) = (raw_of(one), raw_of(other));
            one.name.cmp(&other.name).then(use_of(other).cmp(&use_of(one)))
        });
        rivals.clear();
        families.dedup_by(|other, shown| {
            let is_rival = raw_of(other).name == raw_of(shown).name;
            rivals.extend(is_rival.then_some((shown.n, other.n)));
            is_rival
        });
        samples::find(raw.families(), families.iter_mut().map(|it| (it.n, &mut it.samples)));
    }

    /// Leaves out families that newer ones have a name of: processes of a shared region can
    /// register what one process alone could not.
    fn hide_clashing(&mut self) {
        let Self { raw, families, hidden, .. } = self;
        hidden.clear();
        // A family alone has the names of no other.
        if families.len() < 2 {
            return;
        }
        let mut newest_first: Vec<&FamilyMeta> = families.iter().collect();
        newest_first
            .sort_unstable_by_key(|known| std::cmp::Reverse(use_of(&raw.families()[known.n])));
        let mut taken = TakenNames::default();
        hidden.extend(newest_first.into_iter().filter_map(|known| {
            let name = known.name_in(raw);
            taken.take(known.kind, name, known.n).map(|_| name.to_owned())
        }));
        if hidden.is_empty() {
            return;
        }
        hidden.sort_unstable();
        families
            .retain(|known| hidden.binary_search_by(|it| (**it).cmp(known.name_in(raw))).is_err());
        let n = raw.families().len();
        derived_series::hidden(raw, hidden);
        let known = raw.families().get(n).and_then(|family| FamilyMeta::of(n, family, families));
        let Some(known) = known else { return };
        if let Err(place) =
            families.binary_search_by(|other| other.name_in(raw).cmp(known.name_in(raw)))
        {
            families.insert(place, known);
        }
    }

    /// Adds the summaries of histograms that show quantiles of recent observations.
    fn add_recent(&mut self) {
        let Self { raw, families, .. } = self;
        let recent: Vec<FamilyMeta> =
            families.iter().filter_map(|known| known.recent(raw)).collect();
        if recent.is_empty() {
            return;
        }
        let mut taken = TakenNames::default();
        for known in families.iter() {
            taken.take(known.kind, known.name_in(raw), known.n);
        }
        for summary in recent {
            let name = summary.name_in(raw);
            // A family that has one of its names is shown as it is.
            let is_free = taken.take(summary.kind, name, summary.n).is_none();
            let place = families.binary_search_by(|known| known.name_in(raw).cmp(name));
            if let (true, Err(place)) = (is_free, place) {
                families.insert(place, summary);
            }
        }
    }

    /// Finds the families that have a label of the name of a constant one.
    fn compare_with_constants(&mut self) {
        for n in 0..self.families.len() {
            let family = self.family_of(&self.families[n]);
            let hides = self.constants.names().iter().any(|name| family.has_label(name));
            self.families[n].hides_constants = hides;
        }
    }

    /// Puts the names and the help of its families into the texts.
    fn put_texts(&mut self) {
        let Self { raw, families, texts, .. } = self;
        texts.clear();
        for known in families {
            let begin = texts.len();
            texts.push_str(known.name_in(raw));
            let end = texts.len();
            texts.push_str(&known.definition.help);
            (known.name, known.help) = (begin..end, end..texts.len());
        }
    }

    /// The families, sorted by name.
    pub fn families(&self) -> impl ExactSizeIterator<Item = FamilySnapshot<'_>> {
        self.families.iter().map(|known| self.family_of(known))
    }

    /// The labels that pages show each series with beside its own, by name and value; see
    /// [`Registry::set_constant_labels`](crate::Registry::set_constant_labels).
    pub fn constant_labels(&self) -> Vec<(&str, String)> {
        self.constants.pairs()
    }

    /// The text of those labels, for a family; empty if it has a label of one of their names.
    pub(crate) fn constant_text(&self, family: &FamilySnapshot<'_>) -> &str {
        if family.hides_constants() { "" } else { self.constants.text() }
    }

    /// The processes that had the region open when the snapshot was taken, and lived. Those beyond
    /// the 256 that have slots are not among them.
    pub fn living_processes(&self) -> impl Iterator<Item = LivingProcess> + '_ {
        self.raw.living()
    }

    /// How many series it has, those among them that only take what overflows. Cost: a look
    /// at each family.
    pub fn series_count(&self) -> usize {
        self.families().map(|family| self.raw.series(family.raw).len()).sum()
    }

    /// Whether all names of families and labels are such as every format has.
    pub(crate) fn is_plain(&self) -> bool {
        self.families.iter().all(|family| family.is_plain)
    }

    /// Whether any family shows quantiles that need [`Windows`](crate::Windows).
    pub(crate) fn has_summaries(&self) -> bool {
        self.families.iter().any(|family| family.kind == Kind::Summary && !family.is_sampled())
    }

    /// Fills in the quantiles, counts and sums of a family that stores samples. `fill` gets the
    /// family, the series that have its samples, and the vectors for the results, one series after
    /// the other.
    pub(crate) fn fill_samples(
        &mut self,
        family: usize,
        fill: impl FnOnce(&FamilySnapshot<'_>, Samples<'_>, &mut Vec<f64>, &mut Vec<(u64, f64)>),
    ) {
        let Some(known) = self.families.get_mut(family).filter(|known| known.is_sampled()) else {
            return;
        };
        let mut quantiles = std::mem::take(&mut known.quantiles);
        let mut window_totals = std::mem::take(&mut known.window_totals);
        quantiles.clear();
        window_totals.clear();
        let known = &self.families[family];
        let raw = &self.raw;
        let samples = known.samples.and_then(|n| raw.families().get(n));
        let samples = Samples { raw, family: samples };
        fill(&self.family_of(known), samples, &mut quantiles, &mut window_totals);
        let known = &mut self.families[family];
        (known.quantiles, known.window_totals) = (quantiles, window_totals);
    }

    /// Fills in the quantiles of a summary that stores no samples. `fill` gets the family, its
    /// quantiles and window, and the vector for the results, one series after the other.
    pub(crate) fn fill_quantiles(
        &mut self,
        family: usize,
        fill: impl FnOnce(&FamilySnapshot<'_>, &Recent, &mut Vec<f64>),
    ) {
        let Some(known) = self
            .families
            .get_mut(family)
            .filter(|known: &&mut FamilyMeta| known.kind == Kind::Summary && !known.is_sampled())
        else {
            return;
        };
        let mut quantiles = std::mem::take(&mut known.quantiles);
        quantiles.clear();
        let found = self.family_of(&self.families[family]);
        if let Some(recent) = found.recent() {
            fill(&found, recent, &mut quantiles);
        }
        self.families[family].quantiles = quantiles;
    }

    /// A family by its number in [`families`](Self::families), from 0; `None` beyond the last.
    pub fn family_at(&self, n: usize) -> Option<FamilySnapshot<'_>> {
        self.families.get(n).map(|known| self.family_of(known))
    }

    fn family_of<'a>(&'a self, known: &'a FamilyMeta) -> FamilySnapshot<'a> {
        FamilySnapshot {
            snapshot: &self.raw,
            is_text: self.is_text,
            raw: &self.raw.families()[known.n],
            name: &self.texts[known.name.clone()],
            help: &self.texts[known.help.clone()],
            meta: known,
        }
    }
}

/// Whether a name belongs to a family that no page shows, as it describes other families.
pub(crate) fn is_internal(name: &str) -> bool {
    [constant_labels::NAME, observed::NAME].contains(&name)
}

/// As [`is_internal`], of its kind.
pub(crate) fn is_internal_kind(kind: u8) -> bool {
    [constant_labels::KIND, observed::KIND].contains(&kind)
}

/// The series that have a family's samples.
#[derive(Clone, Copy)]
pub(crate) struct Samples<'a> {
    raw: &'a talea_region::Snapshot,
    family: Option<&'a FamilyCopy>,
}

impl<'a> Samples<'a> {
    pub(crate) fn series(self) -> impl Iterator<Item = SeriesView<'a>> {
        self.family.into_iter().flat_map(move |family| self.raw.series(family))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Bucketing, Counter, Histogram, Opts, Registry, Seconds, Summary};

    #[test]
    fn a_snapshot_that_is_filled_again_shows_the_same_as_a_new_one() {
        let registry = Registry::for_test().unwrap();
        let mut again = Snapshot::default();
        let mut assert_same = |wants: &dyn Fn(&str) -> bool, expected: &[&str]| {
            for _ in 0..2 {
                registry.snapshot_into(&mut again, wants);
                let names: Vec<_> = again.families().map(|family| family.name()).collect();
                assert_eq!(names, expected);
                assert_eq!(again.to_text(), registry.snapshot_of(wants).to_text());
            }
        };
        let all = |_: &str| true;
        assert_same(&all, &[]);
        let _: Counter = registry.register(Opts::new("c", "Some.")).unwrap();
        let b: Counter = registry.register(Opts::new("b", "Some.")).unwrap();
        assert_same(&all, &["b_total", "c_total"]);
        let opts = Opts::new("a", "Times.").bucketing(Bucketing::Dual).quantiles(&[0.5]);
        let a: Histogram<Seconds> = registry.register(opts).unwrap();
        a.observe(Duration::from_millis(20));
        let with_a = ["a_recent_seconds", "a_seconds", "b_total", "c_total"];
        assert_same(&all, &with_a);
        assert_same(&|name| name == "a_recent_seconds", &["a_recent_seconds"]);
        assert_same(&|name| name == "a_seconds", &["a_seconds"]);
        assert_same(&|name| name.starts_with('a'), &with_a[..2]);
        assert_same(&|_| false, &[]);
        assert_same(&all, &with_a);
        registry.unregister("b_total");
        assert_same(&all, &["a_recent_seconds", "a_seconds", "c_total"]);
        let _: Summary<Seconds> = registry.register(Opts::new("b", "Times.")).unwrap();
        let with_b = ["a_recent_seconds", "a_seconds", "b_seconds", "c_total"];
        assert_same(&all, &with_b);
        b.inc();
        registry.wipe(|_| true);
        assert_same(&all, &with_b);
        drop(registry.register::<Counter>(Opts::new("b", "Others.")));
        assert_same(&all, &["a_recent_seconds", "a_seconds", "b_seconds", "b_total", "c_total"]);
    }
}
