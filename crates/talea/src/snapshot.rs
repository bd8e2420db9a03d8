//! A snapshot of a registry: what a scrape shows and a test asks.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use talea_region::{FamilyCopy, LastUse, LivingProcess, Number, SeriesView};

use crate::buckets::{Grid, Numbers};
use crate::definition::{Definition, Recent};
use crate::exemplar::Exemplar;
use crate::expose::{Encoder, Escaping, Format, Shown, is_plain};
use crate::histogram_snapshot::HistogramSnapshot;
use crate::labels::{LabelText, pairs};
use crate::metric::Kind;
use crate::names::{self, TakenNames, is_plain_label};
use crate::native_buckets::NativeBuckets;
use crate::samples;
use crate::told;

/// All values of a registry at one instant, copied out of the region: what happens
/// later does not change it, and it can be sent to any thread. A clone copies all of it.
#[derive(Clone, Default)]
pub struct Snapshot {
    raw: talea_region::Snapshot,
    /// The families that can be shown, by name.
    families: Vec<Known>,
    /// Those of the last time, while this one is filled.
    before: Vec<Known>,
    /// Their names and help, one after the other: so whoever goes through them all does not wait
    /// for the memory of each.
    texts: String,
    /// The raw families that were looked at for them, if none of them was left out since.
    learned: Option<Vec<[u64; 5]>>,
    /// Raw families of a name that has several definitions: the one that is shown, and another.
    rivals: Vec<(usize, usize)>,
    /// The names of families that are left out, since others have a name of theirs.
    hidden: Vec<String>,
    /// Whether the label text of all series together is UTF-8. In a region that is not
    /// damaged it is.
    is_text: bool,
}

/// A family that can be shown.
#[derive(Clone)]
struct Known {
    /// Which of the raw families it is.
    n: usize,
    about: [u64; 5],
    /// Where its name and its help are among the texts.
    name: Range<usize>,
    help: Range<usize>,
    /// Whether its name, and the names of its labels, are such as every format has.
    is_plain: bool,
    kind: Kind,
    /// Apart, so that those who go through all families pass over less memory.
    definition: Arc<Definition>,
    /// What many families have alike, and so share: their grid, and what of `definition` is
    /// looked at in each scrape.
    grid: Arc<Grid>,
    recent: Option<Arc<Recent>>,
    /// Of a summary that [`Windows`](crate::Windows) were asked for: its quantiles, of one
    /// series after the other.
    quantiles: Vec<f64>,
    /// Of a summary that keeps samples: which of the raw families has them.
    samples: Option<usize>,
    /// How many of them there are in its window and their sum, of one series after the other.
    lately: Vec<(u64, f64)>,
    /// Of what shows the quantiles of a histogram: its name.
    recent_name: Option<String>,
}

/// A family in a snapshot.
#[derive(Clone, Copy)]
pub struct FamilySnapshot<'a> {
    snapshot: &'a Snapshot,
    raw: &'a FamilyCopy,
    name: &'a str,
    help: &'a str,
    is_plain: bool,
    kind: Kind,
    definition: &'a Definition,
    grid: &'a Grid,
    recent: Option<&'a Recent>,
    quantiles: &'a [f64],
    lately: &'a [(u64, f64)],
}

/// A series in a snapshot.
#[derive(Clone, Copy)]
pub struct SeriesSnapshot<'a> {
    family: FamilySnapshot<'a>,
    /// Which of the family's it is.
    n: usize,
    raw: SeriesView<'a>,
}

/// What a series holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole count.
    Unsigned(u64),
    /// A whole number that may be negative.
    Signed(i64),
    /// A float.
    Float(f64),
    /// Buckets and a sum.
    Histogram(HistogramSnapshot),
    /// Quantiles, a count and a sum.
    Summary(SummarySnapshot),
}

/// What a summary shows.
#[derive(Clone, Debug, PartialEq)]
pub struct SummarySnapshot {
    /// Each quantile that it shows, with its value: NaN where nothing was observed in its
    /// window, or the snapshot is not one of a registry.
    pub quantiles: Vec<(f64, f64)>,
    /// All observations since it was made.
    pub count: u64,
    /// Their sum, in the shown unit.
    pub sum: f64,
}

impl Snapshot {
    /// Takes another, whose memory is used again: `copy` is to fill in the raw one, of the
    /// families whose names are wanted. Only these are shown.
    pub(crate) fn take(
        &mut self,
        wants: impl Fn(&str) -> bool,
        copy: impl FnOnce(&mut talea_region::Snapshot, &dyn Fn(&FamilyCopy) -> bool),
    ) {
        self.refill(&wants, |raw| {
            // The quantiles of a histogram have a name of their own.
            let wants_it = |name: &str| {
                let name = samples::owner_of(name);
                wants(name) || wants(&names::recent(name))
            };
            copy(raw, &|family| std::str::from_utf8(&family.name).is_ok_and(wants_it));
            if wants(told::DROPPED) {
                told::dropped(raw);
            }
        });
    }

    /// The same where `copy` sees to what is wanted.
    pub(crate) fn refill(
        &mut self,
        wants: impl Fn(&str) -> bool,
        copy: impl FnOnce(&mut talea_region::Snapshot),
    ) {
        copy(&mut self.raw);
        told::by_process(&mut self.raw);
        if !self.knows_all() {
            self.learn();
            self.hide_clashing();
            self.add_recent();
            self.put_texts();
        }
        for &(shown, other) in &self.rivals {
            add_rival(&mut self.raw, shown, other);
        }
        let Self { raw, families, texts, is_text, .. } = self;
        for Known { n, kind, definition, quantiles, lately, .. } in families.iter_mut() {
            quantiles.clear();
            lately.clear();
            if *kind == Kind::StateSet {
                told::by_state(raw, *n, &definition.states);
            }
        }
        *is_text = std::str::from_utf8(raw.text()).is_ok();
        let count = families.len();
        families.retain(|known| wants(&texts[known.name.clone()]));
        if families.len() < count {
            self.learned = None;
        }
        self.show_samples(SystemTime::now());
    }

    /// Whether the families are those of the last time. Then so is all that is known of them,
    /// unless families compete for a name: which of these is in use changes with the processes.
    fn knows_all(&self) -> bool {
        let found = self.raw.families().iter().map(FamilyCopy::about);
        self.rivals.is_empty()
            && self.hidden.is_empty()
            && self.learned.as_ref().is_some_and(|learned| found.eq(learned.iter().copied()))
    }

    /// Looks at the families anew, whose definitions are decoded where they are new.
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
            // What cannot be read was written by something that is not Talea, and is left
            // out.
            let known = same.or_else(|| Known::of(n, family, families));
            families.extend(known);
        }
        drop(before);
        // Of one name, the newest definition that a living process uses is shown. If none lives, it
        // is the one that was used last.
        let raw_of = |known: &Known| &raw.families()[known.n];
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
        let mut newest_first: Vec<&Known> = families.iter().collect();
        newest_first.sort_by_key(|known| std::cmp::Reverse(use_of(&raw.families()[known.n])));
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
        told::hidden(raw, hidden);
        let known = raw.families().get(n).and_then(|family| Known::of(n, family, families));
        let Some(known) = known else { return };
        if let Err(place) =
            families.binary_search_by(|other| other.name_in(raw).cmp(known.name_in(raw)))
        {
            families.insert(place, known);
        }
    }

    /// Adds the summaries of what histograms that show quantiles observed lately.
    fn add_recent(&mut self) {
        let Self { raw, families, .. } = self;
        let recent: Vec<Known> = families.iter().filter_map(|known| known.recent(raw)).collect();
        for summary in recent {
            let place =
                families.binary_search_by(|known| known.name_in(raw).cmp(summary.name_in(raw)));
            // A family of that very name is shown as it is.
            if let Err(place) = place {
                families.insert(place, summary);
            }
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

    /// Whether any family shows quantiles that only a reader who stays can tell.
    pub(crate) fn has_summaries(&self) -> bool {
        self.families.iter().any(|family| family.kind == Kind::Summary && !family.is_sampled())
    }

    /// Puts in what the samples of a family's series show, one series after the other, if it keeps
    /// any: `tell` is given the family, the series that have its samples, and where what they show
    /// belongs.
    pub(crate) fn put_lately(
        &mut self,
        family: usize,
        tell: impl FnOnce(&FamilySnapshot<'_>, Samples<'_>, &mut Vec<f64>, &mut Vec<(u64, f64)>),
    ) {
        let Some(known) = self.families.get_mut(family).filter(|known| known.is_sampled()) else {
            return;
        };
        let mut quantiles = std::mem::take(&mut known.quantiles);
        let mut lately = std::mem::take(&mut known.lately);
        quantiles.clear();
        lately.clear();
        let known = &self.families[family];
        let raw = &self.raw;
        let samples = known.samples.and_then(|n| raw.families().get(n));
        let samples = Samples { raw, family: samples };
        tell(&self.family_of(known), samples, &mut quantiles, &mut lately);
        let known = &mut self.families[family];
        (known.quantiles, known.lately) = (quantiles, lately);
    }

    /// Puts in the quantiles of a family's series, one after the other, if it shows any and keeps no
    /// samples: `tell`
    /// is given the family, what it shows, and where that belongs.
    pub(crate) fn put_quantiles(
        &mut self,
        family: usize,
        tell: impl FnOnce(&FamilySnapshot<'_>, &Recent, &mut Vec<f64>),
    ) {
        let shows = |known: &&mut Known| known.kind == Kind::Summary && !known.is_sampled();
        let Some(known) = self.families.get_mut(family).filter(shows) else { return };
        let mut quantiles = std::mem::take(&mut known.quantiles);
        quantiles.clear();
        let found = self.family_of(&self.families[family]);
        if let Some(recent) = found.recent {
            tell(&found, recent, &mut quantiles);
        }
        self.families[family].quantiles = quantiles;
    }

    /// One of [`families`](Self::families), counted from 0; `None` beyond the last.
    pub fn family_at(&self, n: usize) -> Option<FamilySnapshot<'_>> {
        self.families.get(n).map(|known| self.family_of(known))
    }

    fn family_of<'a>(&'a self, known: &'a Known) -> FamilySnapshot<'a> {
        let Known { n, is_plain, kind, definition, grid, recent, quantiles, lately, .. } = known;
        FamilySnapshot {
            snapshot: self,
            raw: &self.raw.families()[*n],
            name: &self.texts[known.name.clone()],
            help: &self.texts[known.help.clone()],
            is_plain: *is_plain,
            kind: *kind,
            definition,
            grid,
            recent: recent.as_deref(),
            quantiles,
            lately,
        }
    }

    /// The text exposition format, version 0.0.4: to be served as
    /// [`TEXT_CONTENT_TYPE`](crate::TEXT_CONTENT_TYPE). Families without series are left
    /// out; infos and state sets are gauges there. Cost: linear in the text.
    pub fn to_text(&self) -> String {
        let mut out = Vec::new();
        Encoder::new(Format::Text, Escaping::default()).write(self, &mut out);
        // Nothing but text is written.
        String::from_utf8(out).unwrap_or_default()
    }
}

impl Snapshot {
    /// The snapshot in a format, in pieces of about so many bytes: a piece ends with the
    /// series that makes it as long. So much of a large scrape is in memory at a time,
    /// beside the snapshot itself.
    ///
    /// ```
    /// # use talea::{Counter, Escaping, Format, Opts, Registry};
    /// # let registry = Registry::for_test()?;
    /// # let _: Counter = registry.register(Opts::new("orders", "Orders accepted."))?;
    /// let snapshot = registry.snapshot();
    /// let chunks = snapshot.chunks(Format::OpenMetrics, Escaping::default(), 1 << 16);
    /// let all: Vec<u8> = chunks.flatten().collect();
    /// assert!(all.ends_with(b"# EOF\n"));
    /// # Ok::<(), talea::Error>(())
    /// ```
    pub fn chunks(
        &self,
        format: Format,
        escaping: Escaping,
        len: usize,
    ) -> impl Iterator<Item = Vec<u8>> + use<'_> {
        let mut encoder = Encoder::new(format, escaping);
        let mut more = true;
        std::iter::from_fn(move || {
            let mut out = Vec::new();
            more = more && encoder.write_some(self, &mut out, len);
            (!out.is_empty()).then_some(out)
        })
    }
}

impl Known {
    fn name_in<'a>(&'a self, raw: &'a talea_region::Snapshot) -> &'a str {
        let name = || std::str::from_utf8(&raw.families()[self.n].name).unwrap_or_default();
        self.recent_name.as_deref().unwrap_or_else(name)
    }

    fn is_sampled(&self) -> bool {
        self.definition.recent.as_ref().is_some_and(|recent| recent.sampled)
    }

    /// The summary that a histogram shows beside itself, if it does.
    fn recent(&self, raw: &talea_region::Snapshot) -> Option<Self> {
        if self.kind != Kind::Histogram || self.definition.recent.is_none() {
            return None;
        }
        let name = names::recent(self.name_in(raw));
        Some(Self { kind: Kind::Summary, recent_name: Some(name), ..self.clone() })
    }

    /// What can be known of a family, where some others are known.
    fn of(n: usize, family: &FamilyCopy, others: &[Self]) -> Option<Self> {
        /// Among so many that came last there is mostly one that counts alike.
        const LATEST: usize = 8;
        let definition = definition(family)?;
        let name = std::str::from_utf8(&family.name).ok()?;
        let kind = Kind::from_u8(family.kind)?;
        let mut alike = others.iter().rev().take(LATEST).filter(|other| {
            let Definition { layout, recent, .. } = &*other.definition;
            (layout, recent) == (&definition.layout, &definition.recent)
        });
        let (grid, recent) = match alike.next() {
            Some(other) => (other.grid.clone(), other.recent.clone()),
            None => (
                Arc::new(Grid::new(definition.layout.clone())),
                definition.recent.clone().map(Arc::new),
            ),
        };
        let is_plain = is_plain(name)
            && definition.labels.iter().all(|label| is_plain_label(label))
            // A state set has its own name among its labels.
            && (kind != Kind::StateSet || is_plain_label(name));
        Some(Self {
            n,
            about: family.about(),
            name: 0..0,
            help: 0..0,
            is_plain,
            kind,
            definition: Arc::new(definition),
            grid,
            recent,
            quantiles: Vec::new(),
            samples: None,
            lately: Vec::new(),
            recent_name: None,
        })
    }
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

/// Where a series' label text lies in that of all, and its number.
type Placed = (Range<usize>, Shown);

/// What a format shows of a series whose first value is a word.
#[inline]
fn shown(kind: Kind, number: Number, word: u64) -> Shown {
    match (kind, number) {
        (Kind::Histogram, _) => Shown::Histogram,
        (Kind::Summary, _) => Shown::Summary,
        (_, Number::Float | Number::FloatLast) => Shown::Float(f64::from_bits(word)),
        (Kind::Gauge, Number::Integer) => Shown::Signed(word as i64),
        (Kind::Counter | Kind::Info | Kind::StateSet, Number::Integer) => Shown::Unsigned(word),
    }
}

/// Of families that compete for a name, the greatest is shown: the newest that a living process uses.
/// The later a family was made, the greater its number; its time of creation is of a clock that can
/// be set.
pub(crate) fn use_of(family: &FamilyCopy) -> (LastUse, u32) {
    (family.last_use, family.number())
}

/// Adds what was counted under another definition of a name to the one that is shown, if their values
/// can be added and never fall.
fn add_rival(raw: &mut talea_region::Snapshot, shown: usize, other: usize) {
    let [one, two] = [shown, other].map(|n| &raw.families()[n]);
    let is_added = !one.expires
        && !two.expires
        && Definition::are_added(one.number, &one.definition, &two.definition);
    if is_added {
        raw.add_family_to(shown, other);
    }
}

/// A family's definition; `None` where Talea did not write it.
pub(crate) fn definition(family: &FamilyCopy) -> Option<Definition> {
    Definition::decode(&family.definition, Numbers::of(family.number))
}

/// As the text format shows it.
impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text())
    }
}

impl<'a> FamilySnapshot<'a> {
    /// The name, as samples have it (a counter's with `_total`).
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// Whether its name and those of its labels are such as every format has.
    pub(crate) fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// What kind of metric it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The help text.
    pub fn help(&self) -> &'a str {
        self.help
    }

    /// How often a label combination was refused for want of room: a look-up each.
    pub fn dropped(&self) -> u64 {
        self.raw.dropped
    }

    /// Nanoseconds from 1970 to its registration.
    pub(crate) fn created_nanos(&self) -> u64 {
        self.raw.created_unix_nanos
    }

    /// In what it differs from another of its name that is expected, in words; `None` where
    /// it does not, other than by its help.
    pub(crate) fn disagreement(&self, wanted: &Self) -> Option<String> {
        if self.kind != wanted.kind {
            return Some(format!(
                "it is a {} here, and a {} in most others",
                self.kind.as_str(),
                wanted.kind.as_str()
            ));
        }
        self.definition.disagreement(wanted.definition)
    }

    /// The names of its labels.
    pub(crate) fn label_names(&self) -> &'a [String] {
        &self.definition.labels
    }

    /// Whether it has histograms or summaries of floats, which can be negative or NaN.
    pub(crate) fn has_floats(&self) -> bool {
        matches!(self.kind, Kind::Histogram | Kind::Summary) && self.raw.number == Number::FloatLast
    }

    /// The upper bounds of its histograms' buckets in the shown unit; the last is +Inf.
    pub(crate) fn bounds(&self) -> impl Iterator<Item = f64> + Clone + use<'a> {
        self.grid.bounds().chain([f64::INFINITY])
    }

    /// Of a family of numbers whose label text is sound: where that of each series, from
    /// one on, lies in that of all, which comes first, and its number. Overflow series are
    /// among them, shown or not.
    pub(crate) fn numbers(
        &self,
        from: usize,
    ) -> Option<(&'a [u8], impl Iterator<Item = Placed> + use<'a>)> {
        let Self { snapshot, raw, kind, .. } = *self;
        let number = raw.number;
        let is_number = !matches!(kind, Kind::Histogram | Kind::Summary);
        if !is_number || !snapshot.is_text || from >= snapshot.raw.series(raw).len() {
            return None;
        }
        let values = snapshot.raw.first_values(raw, from);
        Some((
            snapshot.raw.text(),
            values.map(move |(text, word)| (text, shown(kind, number, word))),
        ))
    }

    /// One of its series, counted from 0, shown or not.
    #[inline]
    pub(crate) fn series_at(&self, n: usize) -> Option<SeriesSnapshot<'a>> {
        let raw = self.snapshot.raw.series_at(self.raw, n)?;
        Some(SeriesSnapshot { family: *self, n, raw })
    }

    /// All of them, shown or not.
    pub(crate) fn all_series(&self) -> impl Iterator<Item = SeriesSnapshot<'a>> + use<'a> {
        let family = *self;
        let all = self.snapshot.raw.series(self.raw).enumerate();
        all.map(move |(n, raw)| SeriesSnapshot { family, n, raw })
    }

    /// What a summary shows quantiles of.
    pub(crate) fn recent(&self) -> Option<&'a Recent> {
        self.recent.filter(|_| self.kind == Kind::Summary)
    }

    /// The series in the order of their birth. An overflow series that nothing
    /// went to is left out.
    pub fn series(&self) -> impl Iterator<Item = SeriesSnapshot<'a>> + use<'a> {
        self.all_series().filter(SeriesSnapshot::is_shown)
    }
}

impl<'a> SeriesSnapshot<'a> {
    pub(crate) fn family(&self) -> FamilySnapshot<'a> {
        self.family
    }

    /// The labels as a scrape shows them: `method="GET",route="/"`, escaped.
    pub fn label_text(&self) -> &'a str {
        std::str::from_utf8(self.raw.text).unwrap_or_default()
    }

    /// The same as bytes, which are UTF-8, without looking at each.
    #[inline]
    pub(crate) fn label_bytes(&self) -> &'a [u8] {
        // A damaged region could cut a character between two series.
        let is_whole = self.raw.text.first().is_none_or(|first| first & 0xC0 != 0x80);
        match self.family.snapshot.is_text && is_whole {
            true => self.raw.text,
            false => self.label_text().as_bytes(),
        }
    }

    /// Whether it is shown: of an overflow series, whether anything went to it.
    #[inline]
    pub(crate) fn is_shown(&self) -> bool {
        let is_any = |values: &[u64]| values.iter().any(|&value| value != 0);
        !LabelText::is_overflow(self.raw.text)
            || is_any(self.raw.values)
            || self.raw.segments().any(|segment| is_any(segment.values))
    }

    /// What a format shows of it.
    #[inline]
    pub(crate) fn shown(&self) -> Shown {
        let word = self.raw.values.first().copied().unwrap_or_default();
        shown(self.family.kind, self.family.raw.number, word)
    }

    /// What is in each of a histogram's classic buckets, not cumulative: one more than
    /// thresholds.
    pub(crate) fn classic(&self, out: &mut Vec<u64>) {
        self.family.grid.classic(&self.raw, out);
    }

    /// How many observations there were.
    pub(crate) fn count(&self) -> u64 {
        self.family.grid.count(&self.raw)
    }

    /// A histogram's native buckets, if it has any.
    pub(crate) fn native(&self) -> Option<NativeBuckets> {
        self.family.grid.native(&self.raw)
    }

    /// The same in memory that is used again; false where it has none.
    pub(crate) fn native_into(&self, out: &mut NativeBuckets) -> bool {
        self.family.grid.native_into(&self.raw, out)
    }

    /// The sum of a histogram's observations in the shown unit.
    pub(crate) fn sum(&self) -> f64 {
        self.family.grid.beyond(&self.raw).sum(self.finite_sum())
    }

    /// That of the finite ones.
    fn finite_sum(&self) -> f64 {
        let sum = self.raw.values.last().copied().unwrap_or(0);
        match self.family.raw.number {
            Number::FloatLast => f64::from_bits(sum),
            _ => sum as f64 / self.family.grid.per_unit(),
        }
    }

    /// Nanoseconds from 1970 to when it was made, or wiped.
    pub(crate) fn created_nanos(&self) -> Option<u64> {
        Some(self.raw.created_unix_nanos).filter(|&nanos| nanos > 0)
    }

    /// The latest exemplar of the counter, or of each bucket of the histogram, where there
    /// is one.
    pub fn exemplars(&self) -> impl Iterator<Item = Exemplar> + use<'a> {
        self.raw.exemplars.iter().map(Exemplar::of)
    }

    pub(crate) fn raw_exemplars(&self) -> &'a [talea_region::Exemplar] {
        self.raw.exemplars
    }

    /// That of the counter, or of one of a histogram's classic buckets.
    #[inline]
    pub(crate) fn exemplar(&self, bucket: usize) -> Option<&'a talea_region::Exemplar> {
        let Self { family, raw, .. } = self;
        let is_of = |exemplar: &&talea_region::Exemplar| match family.kind {
            Kind::Histogram => family.grid.classic_of_base(exemplar.cell) == bucket,
            _ => exemplar.cell == bucket,
        };
        // Several base cells may be one bucket.
        raw.exemplars.iter().filter(is_of).max_by_key(|exemplar| exemplar.unix_nanos)
    }

    /// Since when it counts: when it was made, or wiped. `None` of what a reader adds.
    pub fn created(&self) -> Option<SystemTime> {
        UNIX_EPOCH.checked_add(Duration::from_nanos(self.created_nanos()?))
    }

    /// Label names and plain values, in the order of the labels. Cost: a few
    /// allocations.
    pub fn labels(&self) -> Vec<(&'a str, String)> {
        pairs(self.label_text())
    }

    /// The value; a histogram's is copied.
    pub fn value(&self) -> Value {
        match self.shown() {
            Shown::Histogram => Value::Histogram(self.histogram()),
            Shown::Summary => Value::Summary(SummarySnapshot {
                quantiles: self.quantiles().collect(),
                count: self.histogram().count(),
                sum: self.sum(),
            }),
            Shown::Unsigned(n) => Value::Unsigned(n),
            Shown::Signed(n) => Value::Signed(n),
            Shown::Float(x) => Value::Float(x),
        }
    }

    /// How many observations there were in the window of a
    /// [`SampledSummary`](crate::SampledSummary), and their sum; `None` of others.
    pub fn lately(&self) -> Option<(u64, f64)> {
        self.family.lately.get(self.n).copied()
    }

    /// Each quantile that a summary shows, with its value.
    pub(crate) fn quantiles(&self) -> impl Iterator<Item = (f64, f64)> + use<'a> {
        let all = self.family.recent().map_or(&[][..], |recent| &recent.quantiles);
        let from = self.n * all.len();
        let found = self.family.quantiles.get(from..from + all.len()).unwrap_or_default();
        let found = found.iter().copied().chain(std::iter::repeat(f64::NAN));
        all.iter().copied().zip(found)
    }

    pub(crate) fn histogram(&self) -> HistogramSnapshot {
        let thresholds = self.family.grid.bounds().collect();
        let mut buckets = Vec::new();
        self.classic(&mut buckets);
        let beyond = self.family.grid.beyond(&self.raw);
        let (finite_sum, native) = (self.finite_sum(), self.native());
        HistogramSnapshot { thresholds, buckets, finite_sum, beyond, native }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bucketing, Counter, Histogram, Opts, Registry, Seconds, Summary};

    #[test]
    fn one_that_is_filled_again_shows_what_a_new_one_does() {
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
