//! Families: metrics with labels.

pub(crate) mod lazy;
pub(crate) mod timers;
pub(crate) mod unguarded;
pub(crate) mod values;

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::panic::Location;
use std::sync::OnceLock;

use talea_region::{Guard, LookupCache, Miss};

use crate::definition::Definition;
use crate::error::SeriesError;
use crate::histogram::buckets::Grid;
use crate::labels::{Fingerprint, KeyWriter, LabelKey, LabelText, Labels, pairs};
use crate::metric::Metric;
use crate::metric::discarded::Origin;
use crate::metric::slot::{Late, Slot};

/// A metric with labels: one series for each combination of values. `L` is
/// named with `'static`; a look-up takes borrowed values of any lifetime.
///
/// Any number of threads and processes may look series up, make and remove them at
/// once. A clone is the same family. Default: 2,000 series at most, or all combinations
/// where these are fixed; see [`Opts::limit`](crate::Opts::limit).
///
/// ```
/// use talea::{Counter, Family, Labels, Opts, Registry};
///
/// #[derive(Labels)]
/// struct Sale<'a> { country: &'a str }
///
/// let registry = Registry::new()?;
/// let sales: Family<Sale<'static>, Counter> = registry.register(Opts::new("sales", "Sales."))?;
/// let country = String::from("pe");
/// sales.with(Sale { country: &country }).inc();
/// assert_eq!(registry.snapshot().value("sales_total", &[("country", "pe")]), Some(1.0));
/// # Ok::<(), talea::Error>(())
/// ```
pub struct Family<L, M: Metric> {
    /// A copy of the content of `late`, in place, which look-ups read.
    bound: OnceLock<BoundFamily<M>>,
    /// A registry fills it once.
    pub(crate) late: Late<BoundFamily<M>>,
    labels: PhantomData<fn(L)>,
}

/// The label values of a look-up.
pub(crate) trait Values {
    fn add_to_key<K: KeyWriter>(&self, key: &mut K);
    fn write(&self, text: &mut LabelText);
}

impl<L: Labels> Values for L {
    #[inline]
    fn add_to_key<K: KeyWriter>(&self, key: &mut K) {
        Labels::add_to_key(self, key);
    }
    #[inline]
    fn write(&self, text: &mut LabelText) {
        Labels::write(self, text);
    }
}

pub(crate) struct BoundFamily<M: Metric> {
    pub(crate) family: talea_region::Family,
    pub(crate) grid: &'static Grid,
    /// The overflow series, which counts label combinations that there is no room for.
    pub(crate) overflow: &'static M::Bound,
    /// If the combinations are fixed, a place for each, filled as they are met; else empty. It
    /// lives as long as the region.
    pub(crate) fixed: &'static [OnceLock<M::Bound>],
    /// Otherwise, the lookup cache of this process.
    pub(crate) cache: Option<&'static LookupCache>,
    /// The label text before each value, if the label names are known at run time.
    pub(crate) openings: &'static [String],
}

// Derived, these would ask for an `M` that can be copied.
impl<M: Metric> Clone for BoundFamily<M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Metric> Copy for BoundFamily<M> {}

impl<M: Metric> PartialEq for BoundFamily<M> {
    fn eq(&self, other: &Self) -> bool {
        self.family == other.family
    }
}

/// The number of places that a family has for a number of combinations of fixed labels: one for each. With more than
/// 4,096 it has none, as a place takes memory, and they are looked up by hash.
#[inline]
pub(crate) fn places(cardinality: Option<usize>) -> Option<usize> {
    cardinality.filter(|&n| n <= 4096)
}

impl<M: Metric> BoundFamily<M> {
    /// The content of a place, if there is one and it was filled.
    #[inline(always)]
    fn placed(&self, labels: &impl Labels) -> Option<&'static M::Bound> {
        self.fixed.get(labels.index())?.get()
    }

    /// Finds or makes a series whose labels are fixed, and fills its place.
    fn place(
        &self,
        place: &'static OnceLock<M::Bound>,
        labels: &impl Labels,
    ) -> Result<&'static M::Bound, SeriesError> {
        let mut text = LabelText::new();
        labels.write(&mut text);
        let cells = self.family.permanent_series(text.as_bytes())?;
        Ok(place.get_or_init(|| M::bind(cells, self.grid)))
    }

    /// Finds or makes a series whose labels are fixed, and fills its place; with too many
    /// combinations for places, as if they were not fixed.
    ///
    /// Out of line, so that the look-up of a filled place is inlined.
    #[inline(never)]
    fn place_or_search(&self, labels: impl Labels) -> Result<SeriesGuard<M>, SeriesError> {
        match self.fixed.get(labels.index()) {
            Some(place) => self.place(place, &labels).map(SeriesGuard::lasting),
            None => self.get_cached(&labels).or_else(|miss| self.search(miss, &labels)),
        }
    }

    /// As [`place_or_search`](Self::place_or_search), or the overflow series.
    // The labels themselves: to be referred to, they would be written to memory each time.
    #[inline(never)]
    fn place_or_overflow(&self, labels: impl Labels) -> SeriesGuard<M> {
        self.place_or_search(labels).unwrap_or_else(|_| self.overflow_series())
    }

    /// Looks a series without a place up in the lookup cache of this process.
    ///
    /// Inlined, as is all code of a hit: to pass values in memory costs more than the look-up,
    /// since its words are written one by one and copied two at a time.
    #[inline(always)]
    pub(crate) fn get_cached(
        &self,
        values: &impl Values,
    ) -> Result<SeriesGuard<M>, Option<Miss<'static>>> {
        let Some(cache) = self.cache else { return Err(None) };
        let mut key = LabelKey::new();
        values.add_to_key(&mut key);
        match key.done().map(|key| cache.get(key)) {
            Some(Ok(found)) => Ok(self.passing(found)),
            Some(Err(miss)) => Err(Some(miss)),
            None => Err(None),
        }
    }

    /// As [`get_cached`](Self::get_cached), by the fingerprint of values that are too long for a key.
    #[inline(always)]
    fn get_cached_by_fingerprint(
        &self,
        values: &impl Values,
    ) -> Result<SeriesGuard<M>, Option<Miss<'static>>> {
        let cache = self.cache.filter(|cache| cache.has_room_for_all());
        let (Some(cache), Some(mut key)) = (cache, Fingerprint::new()) else { return Err(None) };
        values.add_to_key(&mut key);
        match key.done().map(|key| cache.get(key)) {
            Some(Ok(found)) => Ok(self.passing(found)),
            Some(Err(miss)) => Err(Some(miss)),
            None => Err(None),
        }
    }

    /// Finds or makes a series by its label text, and puts it into the lookup cache if its values
    /// have a key.
    ///
    /// Out of line, with all the room that label text takes.
    #[inline(never)]
    fn search_text(
        &self,
        miss: Option<Miss<'static>>,
        values: &impl Values,
    ) -> Result<SeriesGuard<M>, SeriesError> {
        // Written in place: moving the text would cost as much as hashing it.
        let mut text = LabelText::new();
        values.write(&mut text);
        let found = match miss {
            Some(miss) => miss.get_or_insert(text.as_bytes())?,
            None => self.family.series(text.as_bytes())?,
        };
        Ok(self.passing(found))
    }

    /// Finds or makes a series that [`get_cached`](Self::get_cached) did not find. The overflow series is
    /// not put into the lookup cache.
    #[inline(never)]
    pub(crate) fn search(
        &self,
        miss: Option<Miss<'static>>,
        values: &impl Values,
    ) -> Result<SeriesGuard<M>, SeriesError> {
        let found =
            miss.map_or_else(|| self.get_cached_by_fingerprint(values), |miss| Err(Some(miss)));
        found.or_else(|miss| self.search_text(miss, values))
    }

    /// As [`search`](Self::search), or the overflow series.
    #[inline(never)]
    fn search_or_overflow(
        &self,
        miss: Option<Miss<'static>>,
        values: &impl Values,
    ) -> SeriesGuard<M> {
        let found =
            miss.map_or_else(|| self.get_cached_by_fingerprint(values), |miss| Err(Some(miss)));
        found
            .or_else(|miss| self.search_text(miss, values))
            .unwrap_or_else(|_| self.overflow_series())
    }

    #[inline(always)]
    fn passing(&self, found: talea_region::SeriesGuard) -> SeriesGuard<M> {
        let (cells, guard) = found.into_parts();
        let bound = M::bind(cells, self.grid);
        let metric = M::holding(Slot::Bound { bound, passes: true });
        SeriesGuard { metric: ManuallyDrop::new(metric), _guard: Some(guard) }
    }

    /// The series with a label text, made if it is new.
    pub(crate) fn series_of_text(&self, text: &[u8]) -> Result<SeriesGuard<M>, SeriesError> {
        Ok(self.passing(self.family.series(text)?))
    }

    pub(crate) fn overflow_series(&self) -> SeriesGuard<M> {
        SeriesGuard::lasting(self.overflow)
    }
}

/// A metric that was just looked up by its labels: use it in the same expression, as in
/// `family.with(labels).inc()`, or [`keep`](Self::keep) it.
///
/// While one lives, no memory of retired series is reclaimed, anywhere in the region, so do not
/// hold it for long. It cannot be sent to another thread.
#[must_use = "a metric that is looked up and not used was at most made"]
#[derive(Debug)]
pub struct SeriesGuard<M> {
    /// Never dropped: it owns nothing, as the cells are copied. The compiler cannot prove that for
    /// a metric that is not bound, and would test at each drop.
    metric: ManuallyDrop<M>,
    /// With fixed labels there is no guard: such series never expire.
    _guard: Option<Guard>,
}

impl<M: Metric> SeriesGuard<M> {
    #[inline(always)]
    fn lasting(found: &'static M::Bound) -> Self {
        Self::looked_up(Some(found), None)
    }

    #[inline(always)]
    fn looked_up(bound: Option<&'static M::Bound>, origin: Option<Origin>) -> Self {
        let metric = M::holding(Slot::LookedUp { bound, origin });
        Self { metric: ManuallyDrop::new(metric), _guard: None }
    }

    /// A handle that keeps the series as long as this process lives. An idle counter or histogram
    /// is left out of scrapes after the family's expiry time, and comes back with the next add or
    /// when it is kept again.
    ///
    /// Cost: some atomic operations, and 48 bytes of the region for a series that was never kept
    /// before. If there is no room for those, or the family is not installed yet, all updates of
    /// the handle are discarded.
    pub fn keep(self) -> M
    where
        M: Clone,
    {
        // The clone of one that was looked up keeps it.
        (*self.metric).clone()
    }
}

impl<M> Deref for SeriesGuard<M> {
    type Target = M;

    #[inline]
    fn deref(&self) -> &M {
        &self.metric
    }
}

impl<L, M: Metric> Family<L, M> {
    /// A family that is not installed yet: until then, updates of its metrics are discarded. Its
    /// clones are installed with it; handles that were [kept](SeriesGuard::keep) before are not.
    #[track_caller]
    pub const fn new() -> Self {
        Self::at(Some(Location::caller()))
    }

    /// A family that was made at this place in the program.
    const fn at(origin: Option<Origin>) -> Self {
        Self { bound: OnceLock::new(), late: Late::new(origin), labels: PhantomData }
    }

    pub(crate) fn of(bound: &'static BoundFamily<M>) -> Self {
        let family = Self::at(None);
        family.bind(bound);
        family
    }

    #[inline]
    pub(crate) fn bound(&self) -> Option<&BoundFamily<M>> {
        self.bound.get().or_else(|| self.bound_late())
    }

    #[cold]
    #[inline(never)]
    fn bound_late(&self) -> Option<&BoundFamily<M>> {
        let bound = self.late.get()?;
        Some(self.bound.get_or_init(|| *bound))
    }

    /// Binds it, unless it is bound to something else; true if it is bound to this now.
    pub(crate) fn bind(&self, bound: &'static BoundFamily<M>) -> bool {
        let is_bound = self.late.fill(bound);
        self.bound_late();
        is_bound
    }

    /// The result of a look-up while the family is not installed.
    #[cold]
    pub(crate) fn looked_up_unbound(&self) -> SeriesGuard<M> {
        SeriesGuard::looked_up(None, self.late.origin())
    }
}

impl<L, M: Metric> Default for Family<L, M> {
    #[track_caller]
    fn default() -> Self {
        Self::new()
    }
}

impl<L: 'static, M: Metric> Family<L, M> {
    /// The metric of one label combination, made if it is new. If there is no room for a new one,
    /// the family's overflow series.
    ///
    /// Cost: if all labels are fixed (enums, bools) and have at most 4,096 combinations, some
    /// arithmetic and a load. Otherwise the thread publishes a guard in a word of its own, and this
    /// process has a combination in a lookup cache after the second look-up: that takes a hash and one
    /// or two cache lines. (An entry takes 128 to 256 bytes of the process. If there are fixed labels
    /// too, with 2 to 64 combinations, 512 to 1,024 bytes for all entries that differ in these alone,
    /// and 192 to 384 for each combination. A family takes at most 10 MiB.) If there are more than
    /// three texts, or texts and integers have more than 24 bytes together, they are known by a
    /// fingerprint, which takes some 20 ns more, and by which two combinations are taken for one with
    /// a probability of 2⁻¹²². Combinations of more than some 400 bytes, those with a value that
    /// [displays itself](crate::Displayed), and those with a fingerprint in a family of more than
    /// 65,536 series are rendered, hashed and compared; that allocates only for more than 256 bytes. If the labels are known beforehand, [`keep`](SeriesGuard::keep) the result: a
    /// kept handle needs no look-up.
    // Always inlined: a result that is returned in memory would have to be waited for.
    #[inline(always)]
    pub fn with<Q: Labels<Static = L>>(&self, labels: Q) -> SeriesGuard<M> {
        // Of the three ways only one is compiled. The first has all results in registers.
        if Q::is_known_early() && places(Q::cardinality()).is_some() {
            let placed = self.bound.get().and_then(|bound| bound.placed(&labels));
            return match placed.or_else(|| self.fill_place(labels)) {
                Some(found) => SeriesGuard::lasting(found),
                None => SeriesGuard::looked_up(None, self.late.origin()),
            };
        }
        let Some(bound) = self.bound.get() else { return self.with_shared(labels) };
        if Q::cardinality().is_some() {
            return match bound.placed(&labels) {
                Some(found) => SeriesGuard::lasting(found),
                None => bound.place_or_overflow(labels),
            };
        }
        bound.get_cached(&labels).unwrap_or_else(|miss| bound.search_or_overflow(miss, &labels))
    }

    /// As [`with`](Self::with), but an error if the combination is new and there is no room for it;
    /// that counts as [dropped](Self::dropped). A family that is not installed yet never fails.
    /// Cost: as [`with`](Self::with).
    ///
    /// # Errors
    ///
    /// The family is at its limit, the region is full, or the labels are too long.
    #[inline]
    pub fn try_with<Q: Labels<Static = L>>(
        &self,
        labels: Q,
    ) -> Result<SeriesGuard<M>, SeriesError> {
        let Some(bound) = self.bound.get() else { return self.try_with_shared(labels) };
        if Q::cardinality().is_some() {
            return match bound.placed(&labels) {
                Some(found) => Ok(SeriesGuard::lasting(found)),
                None => bound.place_or_search(labels),
            };
        }
        bound.get_cached(&labels).or_else(|miss| bound.search(miss, &labels))
    }

    /// As [`with`](Self::with), by labels that have a place, which is not filled.
    // The labels themselves: to be referred to, they would be written to memory each time.
    #[cold]
    #[inline(never)]
    fn fill_place<Q: Labels<Static = L>>(&self, labels: Q) -> Option<&'static M::Bound> {
        let bound = self.bound()?;
        let place = bound.fixed.get(labels.index());
        let found = place.and_then(|place| bound.place(place, &labels).ok());
        Some(found.unwrap_or(bound.overflow))
    }

    /// As [`try_with`](Self::try_with), if no look-up found this family installed so far; a clone
    /// may be.
    #[cold]
    #[inline(never)]
    fn with_shared<Q: Labels<Static = L>>(&self, labels: Q) -> SeriesGuard<M> {
        match self.bound_late() {
            Some(_) => self.with(labels),
            None => self.looked_up_unbound(),
        }
    }

    #[cold]
    #[inline(never)]
    fn try_with_shared<Q: Labels<Static = L>>(
        &self,
        labels: Q,
    ) -> Result<SeriesGuard<M>, SeriesError> {
        match self.bound_late() {
            Some(_) => self.try_with(labels),
            None => Ok(self.looked_up_unbound()),
        }
    }

    /// Removes the series of a label combination with its counts; the next look-up makes a new one.
    /// A series that a living process keeps is left out of scrapes until its value changes, and
    /// counts from 0. Returns false if there is no such series, or if the labels are fixed: such series stay.
    ///
    /// Cost: a look-up. The memory is reclaimed once no look-up of any thread can reach the
    /// series.
    pub fn remove<Q: Labels<Static = L>>(&self, labels: Q) -> bool {
        self.remove_text(LabelText::of(&labels).as_bytes())
    }
}

impl<L, M: Metric> Family<L, M> {
    /// Its family in the region, and the families of other versions of the service that are shown with it in
    /// one sum, which would fall if a part of it went.
    pub(crate) fn each_added(&self) -> impl Iterator<Item = talea_region::Family> {
        let all = self.bound().map(|bound| bound.family.with_added(Definition::relation));
        all.into_iter().flatten()
    }

    pub(crate) fn remove_text(&self, text: &[u8]) -> bool {
        self.each_added().fold(false, |any, family| family.remove(text) | any)
    }

    /// Removes all label combinations that carry these labels among others, each as
    /// [`remove`](Self::remove) does; returns how many series those were. Without labels it removes all of
    /// them; if all labels are fixed, none. The overflow series stays. Cost: a look at each series
    /// of the family.
    ///
    /// ```
    /// # use talea::{Counter, Family, Labels, Opts, Registry};
    /// # #[derive(Labels)]
    /// # struct Call<'a> { tenant: &'a str, path: &'a str }
    /// # let registry = Registry::for_test()?;
    /// # let calls: Family<Call<'static>, Counter> = registry.register(Opts::new("calls", "Calls."))?;
    /// for path in ["/", "/basket"] {
    ///     calls.with(Call { tenant: "acme", path }).inc();
    ///     calls.with(Call { tenant: "zeta", path }).inc();
    /// }
    /// assert_eq!(calls.remove_matching(&[("tenant", "acme")]), 2);
    /// assert_eq!(registry.snapshot().total("calls_total", &[]), Some(2.0));
    /// # Ok::<(), talea::Error>(())
    /// ```
    pub fn remove_matching(&self, labels: &[(&str, &str)]) -> u64 {
        self.each_added()
            .map(|family| {
                family.remove_where(&|text: &[u8]| {
                    let found = std::str::from_utf8(text).map(pairs).unwrap_or_default();
                    !LabelText::is_overflow(text)
                        && labels.iter().all(|(name, value): &(&str, &str)| {
                            found.iter().any(|(n, v)| n == name && v == value)
                        })
                })
            })
            .sum()
    }

    /// Resets the family to 0. Series with dynamic labels are removed, unless a living process
    /// [keeps](SeriesGuard::keep) them; all others stay and are 0. Counts in flight
    /// ([`UpDownCounter`](crate::UpDownCounter)) and per-process gauges stay. False if the region
    /// has no room to note the counts so far of a series that stays; then that series is not reset.
    ///
    /// Handles stay valid and count from 0 too. A concurrent add counts either before or after the
    /// reset. Cost: a look at each series of the family.
    pub fn wipe(&self) -> bool {
        self.each_added().fold(true, |all, family| family.wipe() & all)
    }

    /// Whether any process [unregistered](crate::Registry::unregister) it. Then updates are
    /// discarded until it is registered again with the same definition. Cost: a load.
    #[inline]
    pub fn is_ended(&self) -> bool {
        self.bound().is_some_and(|bound| bound.family.is_ended())
    }

    /// How many of its series were removed or hidden so far, over all processes. Cost: a load.
    #[doc(hidden)]
    pub fn removals(&self) -> u64 {
        self.bound().map_or(0, |bound| bound.family.removals())
    }

    /// The number of its family in the region; `None` if it is not installed.
    #[doc(hidden)]
    pub fn number(&self) -> Option<u32> {
        self.bound.get().map(|bound| bound.family.number())
    }

    /// How often a label combination went to the overflow series because it was new and there was
    /// no room for it, over all processes; 0 if it is not installed. Scrapes show it as
    /// `talea_series_dropped_total`. Cost: a load.
    pub fn dropped(&self) -> u64 {
        self.bound().map_or(0, |bound| bound.family.dropped())
    }
}

impl<L, M: Metric> Clone for Family<L, M> {
    fn clone(&self) -> Self {
        Self { bound: self.bound.clone(), late: self.late.clone(), labels: PhantomData }
    }
}

impl<L, M: Metric> fmt::Debug for Family<L, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Family").field("installed", &self.bound().is_some()).finish_non_exhaustive()
    }
}
