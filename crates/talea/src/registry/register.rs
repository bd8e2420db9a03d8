//! Registering: from the definition of a metric to its cells in the region.

use std::any::TypeId;
use std::borrow::Cow;
use std::collections::HashSet;
use std::marker::PhantomData;
use std::mem;
use std::sync::{MutexGuard, OnceLock, PoisonError};

use talea_region::{
    Cells, Combine, FamilyError, FamilySpec, LookupCache, Overflow, Registered, Storage,
};

use super::Registry;
use super::bounds::Bounds;
use crate::definition::Definition;
use crate::definition::kind::Kind;
use crate::definition::names::{self, OVERFLOW, PID};
use crate::definition::opts::Opts;
use crate::error::{Error, counted};
use crate::family::values::{self, DynamicLabels};
use crate::family::{self, Family};
use crate::histogram::buckets::Grid;
use crate::labels::{LabelText, Labels, draw_factors};
use crate::metric::slot::Slot;
use crate::metric::{Info, InfoSeries, Metric, Shape};
use crate::notice::notice;
use crate::snapshot::derived_series;

/// The default limit of series of a family.
pub(crate) const SERIES_LIMIT: u64 = 2000;

/// The most labels of a family. Readers refuse a series of more than 1,024, to which `pid`, the name of a state
/// set and constant labels count.
pub(crate) const MOST_LABELS: usize = 1000;

/// A metric or a family, which can be registered.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no metric that can be registered",
    label = "a field of Metrics must be a metric, a Family, or be marked #[metric(nested)]",
    note = "the labels of a `Family<L, M>` are a struct with `#[derive(Labels)]`"
)]
pub trait Registrable: Sized {
    /// A new one that is registered.
    #[doc(hidden)]
    fn registered(registry: &Registry, opts: &Opts<'_>) -> Result<Self, Error>;

    /// Registers this one under a name and binds it to its cells.
    ///
    /// # Errors
    ///
    /// As [`Registry::register`]; and it is installed in another registry.
    fn register(&self, registry: &Registry, opts: &Opts<'_>) -> Result<(), Error>;
}

#[diagnostic::do_not_recommend]
impl<M: Metric> Registrable for M {
    fn registered(registry: &Registry, opts: &Opts<'_>) -> Result<Self, Error> {
        let bound = registry.bound::<M>(opts, &Group::of::<()>())?;
        Ok(M::holding(Slot::bound(*bound.overflow)))
    }

    fn register(&self, registry: &Registry, opts: &Opts<'_>) -> Result<(), Error> {
        let bound = registry.bound::<M>(opts, &Group::of::<()>())?;
        // The series without labels is the one that an overflow would go to.
        in_one_place(self.slot().bind(bound.overflow), registry, opts)
    }
}

#[diagnostic::do_not_recommend]
impl<L: Labels + 'static, M: Metric> Registrable for Family<L, M> {
    fn registered(registry: &Registry, opts: &Opts<'_>) -> Result<Self, Error> {
        Ok(Self::of(registry.bound::<M>(opts, &Group::of::<L>())?))
    }

    fn register(&self, registry: &Registry, opts: &Opts<'_>) -> Result<(), Error> {
        let bound = registry.bound::<M>(opts, &Group::of::<L>())?;
        in_one_place(self.bind(bound), registry, opts)
    }
}

#[diagnostic::do_not_recommend]
impl<L: Labels + 'static> Registrable for Info<L> {
    fn registered(registry: &Registry, opts: &Opts<'_>) -> Result<Self, Error> {
        let info = Self::new();
        info.register(registry, opts)?;
        Ok(info)
    }

    fn register(&self, registry: &Registry, opts: &Opts<'_>) -> Result<(), Error> {
        let opts = opts.expires_after(None);
        let family = registry.passing_family::<L, InfoSeries>(&opts)?;
        let Some(bound) = family.late.get() else { return Ok(()) };
        in_one_place(self.family.bind(bound), registry, &opts)
    }
}

/// Whether a metric could be bound.
fn in_one_place(is_bound: bool, registry: &Registry, opts: &Opts<'_>) -> Result<(), Error> {
    if is_bound {
        return Ok(());
    }
    Err(Error::register(
        &registry.name_of(opts),
        "it is installed in another registry or under another name already; a metric has one place",
    ))
}

/// The labels of a family, independent of their type.
struct Group<'a> {
    names: &'a [&'a str],
    cardinality: Option<usize>,
    fault: Option<String>,
    write_nth: fn(usize, &mut LabelText),
    /// The type of which the combinations have numbers and keys.
    key_type: TypeId,
}

/// The type that stands for label combinations without numbers.
struct Open<L>(PhantomData<L>);

impl Group<'_> {
    fn of<L: Labels + 'static>() -> Self {
        let (cardinality, key_type) = (L::cardinality(), TypeId::of::<L>());
        Self { cardinality, key_type, ..Self::open::<L>() }
    }

    /// Treats all labels as dynamic: its combinations have no numbers.
    fn open<L: Labels + 'static>() -> Self {
        Self {
            names: L::NAMES,
            cardinality: None,
            fault: L::fault(),
            write_nth: L::write_nth,
            key_type: TypeId::of::<Open<L>>(),
        }
    }

    /// The label text of the series that takes what overflows; without labels, of the only one.
    fn beyond_limit(&self) -> &'static str {
        if self.names.is_empty() { "" } else { OVERFLOW }
    }

    fn check(&self, name: &str, shape: &Shape, opts: &Opts<'_>) -> Result<(), String> {
        if self.names.len() > MOST_LABELS {
            let found = self.names.len();
            return Err(format!("it has {found} labels; the maximum is {MOST_LABELS}"));
        }
        let measures = matches!(shape.kind, Kind::Histogram | Kind::Summary);
        let mut seen = HashSet::new();
        for label in self.names {
            let fault = if *label == PID && shape.combine == Combine::Each {
                Some("a gauge of which each process has its own gets this label from us")
            } else if *label == name && shape.kind == Kind::StateSet {
                Some("a state set names its states by this label")
            } else if names::is_written_by_us(label) && (measures || !opts.lenient_names) {
                Some("histograms and summaries write this label themselves")
            } else {
                names::fault_in_label(label, opts.name_rules())
            };
            if let Some(fault) = fault {
                return Err(format!("its label {label:?} cannot be used: {fault}"));
            }
            if !seen.insert(label) {
                return Err(format!("its label {label:?} is given twice"));
            }
        }
        self.fault.clone().map_or(Ok(()), Err)
    }
}

/// Why a metric cannot be registered.
pub(crate) enum Refusal {
    /// In words.
    Reason(String),
    Full,
}

impl Refusal {
    pub(crate) fn error(self, name: &str) -> Error {
        match self {
            Self::Reason(reason) => Error::register(name, reason),
            Self::Full => Error::Full { name: name.to_owned() },
        }
    }
}

impl From<String> for Refusal {
    fn from(reason: String) -> Self {
        Self::Reason(reason)
    }
}

impl From<FamilyError> for Refusal {
    fn from(error: FamilyError) -> Self {
        match error {
            FamilyError::Full => Self::Full,
            other => Self::Reason(other.to_string()),
        }
    }
}

impl From<Overflow> for Refusal {
    fn from(error: Overflow) -> Self {
        match error {
            Overflow::Full => Self::Full,
            other => Self::Reason(other.to_string()),
        }
    }
}

impl Registry {
    /// Registers a metric, or finds the one with an equal definition. Use this if names are known
    /// at run time; otherwise derive [`Metrics`](crate::Metrics).
    ///
    /// Cost: it takes a lock, allocates, and looks the name up in the region, so register
    /// once and keep what it returns.
    ///
    /// # Errors
    ///
    /// The name, a label or the buckets are not usable; the name is taken by
    /// another definition; the region is full.
    pub fn register<R: Registrable>(&self, opts: Opts<'_>) -> Result<R, Error> {
        R::registered(self, &opts)
    }

    /// Registers a family whose label names are known at run time, or finds the one with an equal
    /// definition.
    ///
    /// ```
    /// use talea::{Counter, Opts, Registry};
    ///
    /// let registry = Registry::for_test()?;
    /// let names: Vec<String> = vec!["method".into(), "country".into()];
    /// let orders = registry.family::<Counter>(Opts::new("orders", "Orders accepted."), &names)?;
    /// orders.with_values(&["card", "pe"]).inc();
    /// let labels = [("method", "card"), ("country", "pe")];
    /// assert_eq!(registry.snapshot().value("orders_total", &labels), Some(1.0));
    /// # Ok::<(), talea::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`register`](Self::register).
    pub fn family<M: Metric>(
        &self,
        opts: Opts<'_>,
        labels: &[impl AsRef<str>],
    ) -> Result<Family<DynamicLabels, M>, Error> {
        let names: Vec<&str> = labels.iter().map(AsRef::as_ref).collect();
        let group = Group {
            names: &names,
            cardinality: None,
            fault: None,
            write_nth: |_, _| {},
            key_type: TypeId::of::<DynamicLabels>(),
        };
        Ok(Family::of(self.bound::<M>(&opts, &group)?))
    }

    /// Registers an info whose label names are known at run time; each combination of values of `labels`
    /// has one of its own. See [`Info::set_pairs`].
    ///
    /// # Errors
    ///
    /// As [`register`](Self::register).
    pub fn info(
        &self,
        opts: Opts<'_>,
        labels: &[impl AsRef<str>],
    ) -> Result<Info<DynamicLabels>, Error> {
        let opts = opts.expires_after(None);
        // A family without labels has one series, which stays. Infos replace theirs.
        let family = match labels {
            [] => self.family::<InfoSeries>(opts, &["fact"]),
            labels => self.family::<InfoSeries>(opts, labels),
        };
        Ok(Info { family: family? })
    }

    /// Registers a family whose series may all be removed, also if its labels are fixed.
    pub(crate) fn passing_family<L: Labels + 'static, M: Metric>(
        &self,
        opts: &Opts<'_>,
    ) -> Result<Family<L, M>, Error> {
        Ok(Family::of(self.bound::<M>(opts, &Group::open::<L>())?))
    }

    fn bound<M: Metric>(
        &self,
        opts: &Opts<'_>,
        group: &Group<'_>,
    ) -> Result<&'static family::BoundFamily<M>, Error> {
        let name = self.name_of(opts);
        let opts = Opts { name: &name, ..*opts };
        self.try_bound(&opts, group).map_err(|refusal| refusal.error(&name))
    }

    /// A metric's name, with the prefix of the field that this registry is for.
    pub(super) fn name_of<'a>(&self, opts: &Opts<'a>) -> Cow<'a, str> {
        match &self.field {
            None => Cow::Borrowed(opts.name),
            Some(field) => Cow::Owned(field.prefixed(opts.name)),
        }
    }

    fn try_bound<M: Metric>(
        &self,
        opts: &Opts<'_>,
        group: &Group<'_>,
    ) -> Result<&'static family::BoundFamily<M>, Refusal> {
        let mut defined = self.define(M::shape(opts)?, opts, group)?;
        let bound = bound_once::<M>(&mut defined, group)?;
        let Defined { bounds, name, definition, .. } = defined;
        drop(bounds);
        if let Some(recent) = definition.recent.as_ref().filter(|recent| !recent.sampled) {
            self.kept.keep(self.region, &name, recent);
        }
        if opts.whole {
            make_whole(bound, group)?;
        }
        Ok(bound)
    }

    /// Checks a definition, and finds or makes its family. Compiled once, for all types of metrics.
    fn define(
        &self,
        mut shape: Shape,
        opts: &Opts<'_>,
        group: &Group<'_>,
    ) -> Result<Defined<'_>, Refusal> {
        let name = names::completed(opts.name, shape.ending);
        self.region.prefetch_family(name.as_bytes());
        self.check(&name, &shape, opts, group)?;
        // Held until its name is this one's: else two threads could give it to two.
        let mut bounds = self.bounds.lock().unwrap_or_else(PoisonError::into_inner);
        let own = (shape.kind == Kind::StateSet).then_some(&*name);
        bounds.use_labels(&name, group.names.iter().copied().chain(own))?;
        self.check_related(&name, shape.kind, opts.allows_others)?;
        let combinations = combinations(opts, group)?;
        let definition = Definition {
            labels: group.names.iter().map(|&label| label.to_owned()).collect(),
            layout: mem::take(&mut shape.layout),
            recent: shape.recent.take(),
            states: mem::take(&mut shape.states),
            // A line of a text must not end with one.
            help: opts.help.trim_end_matches('\r').to_owned(),
        };
        let spec = FamilySpec {
            name: name.as_bytes(),
            definition: &definition.encode(),
            kind: shape.kind as u8,
            storage: storage(&shape, opts, group),
            number: shape.number,
            combine: shape.combine,
            cells: shape.cells as u16,
            segments: shape.segments as u16,
            made_segment: shape.made_segment,
            limit: opts.limit.or(combinations).unwrap_or(SERIES_LIMIT),
            idle_minutes: if combinations.is_some() { 0 } else { idle_minutes(opts) },
            accumulates: matches!(shape.kind, Kind::Counter | Kind::Histogram | Kind::Summary),
            relation: Definition::relation,
            allows_others: opts.allows_others,
            beyond_limit: Some(group.beyond_limit().as_bytes()),
        };
        let Registered { family, conflict, replaced } =
            self.region.family(spec).map_err(|error| match error {
                FamilyError::Conflict => self.conflict(&name, &shape, &definition).into(),
                other => Refusal::from(other),
            })?;
        if conflict {
            notice(format_args!(
                "the metric {name:?} is in use with another definition too; scrapes show the newest \
                 one that a living process uses, and the series of those that differ in labels alone"
            ));
        }
        if replaced && !conflict {
            notice(format_args!(
                "processes that have ended defined the metric {name:?} otherwise; it begins anew in the \
                 definition of this process, and scrapes no longer show its earlier values"
            ));
        }
        Ok(Defined { bounds, name, family, definition })
    }

    /// The faults of a definition by itself.
    fn check(
        &self,
        name: &str,
        shape: &Shape,
        opts: &Opts<'_>,
        group: &Group<'_>,
    ) -> Result<(), Refusal> {
        names::fault_in_metric(name, shape.ending, shape.kind, opts.name_rules())
            .map_or(Ok(()), Err)?;
        if !opts.lenient_names {
            names::fault_in_ending(name, shape.kind).map_or(Ok(()), Err)?;
        }
        group.check(name, shape, opts)?;
        if opts.help.trim().is_empty() {
            return Err("the help is empty; say in a sentence what is measured".to_owned().into());
        }
        if let Some(field) = &self.field {
            field.define(name)?;
        }
        Ok(())
    }

    /// Whether a page could not show it beside another family: one or one of its samples would have a name of
    /// the other.
    fn check_related(&self, name: &str, kind: Kind, allows_others: bool) -> Result<(), String> {
        if let Some((other, reason)) =
            derived_series::ADDED.into_iter().find_map(|family: (Kind, &'static str)| {
                Some((family.1, names::clash((kind, name), family)?))
            })
        {
            return Err(format!("Talea itself shows {other:?}, and {reason}; rename it"));
        }
        let mut clashing = None;
        self.region.each_related(name.as_bytes(), |other, other_kind, is_own| {
            let (Some(other_kind), Ok(other)) =
                (Kind::from_u8(other_kind), std::str::from_utf8(other))
            else {
                return;
            };
            // Another definition of this very name has an error of its own.
            let clash = names::clash((kind, name), (other_kind, other)).filter(|_| other != name);
            match clash {
                Some(reason) if is_own && !allows_others => {
                    clashing = Some((other.to_owned(), reason))
                }
                Some(reason) => notice(format_args!(
                    "the metric {other:?} is in use beside {name:?}, and {reason}; while both are, \
                     scrapes show the newer one only"
                )),
                None => {}
            }
        });
        clashing.map_or(Ok(()), |(other, reason)| {
            Err(format!("{other:?} is registered already, and {reason}; rename one"))
        })
    }

    /// The difference between a definition and the one that the name has.
    fn conflict(&self, name: &str, shape: &Shape, wanted: &Definition) -> String {
        let snapshot = self.region.snapshot_of(&|found| found.name == name.as_bytes());
        let difference = snapshot.families().first().map_or_else(
            || FamilyError::Conflict.to_string(),
            |found| {
                let kind = Kind::from_u8(found.kind).unwrap_or(shape.kind);
                if kind != shape.kind {
                    let (found, wanted) = (kind.as_str(), shape.kind.as_str());
                    format!("it is already registered as a {found}, not as a {wanted}")
                } else if found.combine != shape.combine {
                    let (found, wanted) = (found.combine, shape.combine);
                    format!(
                        "it is already registered with `combine` {found:?}, not with {wanted:?}"
                    )
                } else {
                    Definition::decode(&found.definition, wanted.layout.numbers)
                        .map_or_else(String::new, |found| found.difference(wanted))
                }
            },
        );
        format!("{difference}; use one definition, or another name")
    }
}

/// A family that is in the region, and the lock on what this process knows of its families.
struct Defined<'a> {
    bounds: MutexGuard<'a, Bounds>,
    name: String,
    family: talea_region::Family,
    definition: Definition,
}

impl Defined<'_> {
    /// The series that takes what overflows, and how an observation finds its bucket.
    fn overflow(&self, group: &Group<'_>) -> Result<(Cells, &'static Grid), Refusal> {
        let beyond_limit = group.beyond_limit().as_bytes();
        let overflow = self.family.series_beyond_limit(beyond_limit).map_err(|error| {
            // This process did not register it before: then the series would exist.
            self.family.give_up();
            Refusal::from(error)
        })?;
        // Nothing after this can fail, so a retry in a full region leaks nothing.
        Ok((overflow, Grid::shared(&self.definition.layout)))
    }
}

/// The data that handles of a family point to. It is never freed, as they may live for ever, so it
/// is made once, however often the family is registered.
fn bound_once<M: Metric>(
    defined: &mut Defined<'_>,
    group: &Group<'_>,
) -> Result<&'static family::BoundFamily<M>, Refusal> {
    let family = defined.family;
    if let Some(found) =
        defined.bounds.get::<family::BoundFamily<M>>(family.number(), group.key_type)
    {
        return Ok(found);
    }
    let (overflow, grid) = defined.overflow(group)?;
    let places = family::places(group.cardinality).unwrap_or(0);
    let looks_up = places == 0 && !group.names.is_empty();
    if looks_up {
        draw_factors();
    }
    let bound = &*Box::leak(Box::new(family::BoundFamily {
        family,
        grid,
        overflow: Box::leak(Box::new(M::bind(overflow, grid))),
        fixed: Vec::leak((0..places).map(|_| OnceLock::new()).collect()),
        cache: looks_up.then(|| &*Box::leak(Box::new(LookupCache::of(family)))),
        openings: Vec::leak(values::openings(group.names)),
    }));
    defined.bounds.insert(family.number(), group.key_type, bound);
    Ok(bound)
}

/// The number of label combinations, if all labels are fixed.
fn combinations(opts: &Opts<'_>, group: &Group<'_>) -> Result<Option<u64>, String> {
    let combinations = group.cardinality.map(|n| n as u64);
    match (opts.whole, combinations, opts.limit) {
        (true, None, _) => {
            Err("`whole` needs labels with fixed values; leave it out, or give each \
                                label an enum or a label_set!"
                .to_owned())
        }
        (true, Some(all), Some(limit)) if limit < all => Err(format!(
            "`whole` needs a series for each combination: its limit is {limit}, and it has {}; \
             raise the limit",
            counted(all as usize, "label combination")
        )),
        _ => Ok(combinations),
    }
}

/// Makes every series.
fn make_whole<M: Metric>(bound: &family::BoundFamily<M>, group: &Group<'_>) -> Result<(), Refusal> {
    for n in 0..group.cardinality.unwrap_or(0) {
        let cells = permanent_series(bound.family, group, n)?;
        if let Some(place) = bound.fixed.get(n) {
            place.get_or_init(|| M::bind(cells, bound.grid));
        }
    }
    Ok(())
}

fn permanent_series(
    family: talea_region::Family,
    group: &Group<'_>,
    n: usize,
) -> Result<Cells, Refusal> {
    let mut text = LabelText::new();
    (group.write_nth)(n, &mut text);
    family.permanent_series(text.as_bytes()).map_err(|error| match error {
        Overflow::Full => Refusal::Full,
        other => format!("its series cannot all be created: {other}").into(),
    })
}

pub(crate) fn idle_minutes(opts: &Opts<'_>) -> u32 {
    opts.expires_after
        .map_or(0, |idle| u32::try_from(idle.as_secs().div_ceil(60)).unwrap_or(u32::MAX).max(1))
}

fn storage(shape: &Shape, opts: &Opts<'_>, group: &Group<'_>) -> Storage {
    shape.storage.unwrap_or(match opts.striped.unwrap_or(group.cardinality.is_some()) {
        true => Storage::Striped,
        false => Storage::Single,
    })
}
