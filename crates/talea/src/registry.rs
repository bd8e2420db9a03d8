//! The registry: a region, and the way of metrics into it.

use std::collections::HashSet;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use talea_region::{Config, FamilyError, FamilySpec, Region, Registered, Storage};

use crate::definition::Definition;
use crate::error::Error;
use crate::family::{self, Family};
use crate::labels::{LabelText, Labels};
use crate::metric::{Kind, Metric, Shape};
use crate::names;
use crate::opts::Opts;
use crate::slot::Slot;
use crate::snapshot::Snapshot;

/// Series a family, unless it says otherwise.
const SERIES_LIMIT: u64 = 2000;

/// Families of more combinations than this are looked up by hash, however fixed
/// these are: a place for each takes memory.
const FIXED_AT_MOST: usize = 4096;

/// The label text of the series that takes what overflows.
pub(crate) const OVERFLOW: &str = "otel_metric_overflow=\"true\"";

/// A region and the metrics in it. Clones are the same registry.
#[derive(Clone)]
pub struct Registry {
    region: &'static Region,
    refresh: Arc<Mutex<Vec<Arc<Refresh>>>>,
}

type Refresh = dyn Fn() + Send + Sync;

impl Registry {
    /// A registry in memory of its own, which children made by `fork` share.
    /// 64 MiB at most, of which pages are used as they are needed, or an eighth
    /// of the cgroup's memory limit where that is less.
    ///
    /// The memory stays mapped until the process ends, so that handles are plain
    /// pointers.
    ///
    /// # Errors
    ///
    /// The system refuses memory.
    pub fn new() -> Result<Self, Error> {
        Self::with_config(Config::default())
    }

    /// A registry with limits of its own; see [`Config`].
    ///
    /// # Errors
    ///
    /// The limits do not fit each other, or the system refuses memory.
    pub fn with_config(config: Config) -> Result<Self, Error> {
        Ok(Self::of(Region::anonymous(config)?))
    }

    /// A registry of 1 MiB for a test, which holds about 2,000 series.
    ///
    /// # Errors
    ///
    /// The system refuses memory.
    pub fn for_test() -> Result<Self, Error> {
        Self::with_config(Config::with_len(1 << 20))
    }

    /// Attaches to the registry in a file on tmpfs, or creates it, for processes
    /// that do not fork from one parent. A file that cannot be used is moved
    /// aside, or a sibling opened; a line on standard error says so.
    ///
    /// # Errors
    ///
    /// The path is not on tmpfs, cannot be created or is no regular file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let opened = Region::open(path, Config::default())?;
        if let Some(notice) = opened.notice {
            eprintln!("talea: {notice}");
        }
        Ok(Self::of(opened.region))
    }

    fn of(region: &'static Region) -> Self {
        Self { region, refresh: Arc::default() }
    }

    /// Registers a metric, or finds the one that is defined alike. Use this where
    /// names are known at run time; otherwise derive [`Metrics`].
    ///
    /// # Errors
    ///
    /// The name, a label or the buckets are not usable; the name is taken by
    /// another definition; the region is full.
    pub fn register<R: Registrable>(&self, opts: Opts<'_>) -> Result<R, Error> {
        let metric = R::unbound();
        metric.register(self, &opts)?;
        Ok(metric)
    }

    /// Calls `refresh` before each snapshot, for values that are read rather
    /// than counted. Keep it short: a scrape waits for it.
    pub fn on_snapshot(&self, refresh: impl Fn() + Send + Sync + 'static) {
        self.refresh.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::new(refresh));
    }

    /// All values at this instant. Any number of threads may ask at once. At most
    /// once a minute, series that are idle go before.
    pub fn snapshot(&self) -> Snapshot {
        let refresh = self.refresh.lock().unwrap_or_else(PoisonError::into_inner).clone();
        refresh.iter().for_each(|refresh| refresh());
        self.region.sweep_if_due();
        Snapshot::of(self.region.snapshot())
    }

    /// Does a minute's sweep now: series that nobody looked up for their family's time
    /// go (see [`Opts::expires_after`]), and what was removed becomes free. Snapshots
    /// and new series see to that themselves; this is for tests, where each call
    /// counts as a minute. Cost: a look at every series.
    pub fn sweep(&self) {
        self.region.sweep();
    }

    /// Registers a family of `M` with labels `L`.
    fn family<L: Labels, M: Metric>(&self, opts: &Opts<'_>) -> Result<family::Bound<M>, Error> {
        let fail = |reason: String| Error::register(opts.name, reason);
        let shape = M::shape(opts).map_err(fail)?;
        if let Some(fault) = L::fault() {
            return Err(fail(fault));
        }
        let cardinality = L::cardinality();
        let name = names::completed(opts.name, shape.ending);
        if let Some(fault) = names::fault_in_metric(&name) {
            return Err(fail(fault));
        }
        check_labels(L::NAMES).map_err(fail)?;
        if opts.help.trim().is_empty() {
            return Err(fail("the help is empty; say in a sentence what is measured".to_owned()));
        }
        let storage = storage(&shape, opts, cardinality);
        let Shape { kind, number, per_unit, thresholds, cells, .. } = shape;
        let definition = Definition {
            per_unit,
            labels: L::NAMES.iter().map(|&label| label.to_owned()).collect(),
            thresholds,
            help: opts.help.to_owned(),
        };
        let fixed = cardinality.map(|n| n as u64);
        let spec = FamilySpec {
            name: name.as_bytes(),
            definition: &definition.encode(),
            kind: kind as u8,
            storage,
            number,
            cells: cells as u32,
            limit: opts.limit.or(fixed).unwrap_or(SERIES_LIMIT),
            idle_minutes: if fixed.is_some() { 0 } else { idle_minutes(opts) },
            // A gauge that stands still says something.
            hides: kind != Kind::Gauge,
        };
        let Registered { family, conflict } = self.region.family(spec).map_err(|error| {
            fail(match error {
                FamilyError::Conflict => self.conflict(&name, &definition),
                other => other.to_string(),
            })
        })?;
        if conflict {
            eprintln!(
                "talea: other processes define the metric {name:?} otherwise; until they end, \
                 scrapes show the newest definition only"
            );
        }
        // Bounds live as long as the handles that point to them.
        let thresholds: &'static [u64] = Vec::leak(definition.thresholds);
        let overflow = if L::NAMES.is_empty() {
            family.series_beyond_limit(b"")
        } else {
            family.series_beyond_limit(OVERFLOW.as_bytes())
        };
        let overflow = overflow.map_err(|error| fail(error.to_string()))?;
        let places = cardinality.filter(|&n| n <= FIXED_AT_MOST).unwrap_or(0);
        let fixed = Vec::leak((0..places).map(|_| OnceLock::new()).collect());
        Ok(family::Bound { family, thresholds, overflow: M::bind(overflow, thresholds), fixed })
    }

    fn conflict(&self, name: &str, wanted: &Definition) -> String {
        let snapshot = self.region.snapshot();
        let found = snapshot.families().iter().find(|family| family.name == name.as_bytes());
        let found = found.and_then(|family| Definition::decode(&family.definition));
        let difference = found
            .map_or_else(|| FamilyError::Conflict.to_string(), |found| found.difference(wanted));
        format!("{difference}; use one definition, or another name")
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").finish_non_exhaustive()
    }
}

fn check_labels(names: &[&str]) -> Result<(), String> {
    let mut seen = HashSet::new();
    for name in names {
        if let Some(fault) = names::fault_in_label(name) {
            return Err(format!("its label {name:?} cannot be used: {fault}"));
        }
        if !seen.insert(name) {
            return Err(format!("its label {name:?} is there twice"));
        }
    }
    Ok(())
}

fn idle_minutes(opts: &Opts<'_>) -> u32 {
    opts.expires_after
        .map_or(0, |idle| u32::try_from(idle.as_secs().div_ceil(60)).unwrap_or(u32::MAX).max(1))
}

fn storage(shape: &Shape, opts: &Opts<'_>, cardinality: Option<usize>) -> Storage {
    shape.storage.unwrap_or(match opts.striped.unwrap_or(cardinality.is_some()) {
        true => Storage::Striped,
        false => Storage::Single,
    })
}

/// What can be registered: a metric, or a family of them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no metric that can be registered",
    label = "a field of Metrics must be a metric, a Family, or be marked #[metric(nested)]",
    note = "the labels of a `Family<L, M>` are a struct with `#[derive(Labels)]`"
)]
pub trait Registrable: Sized {
    /// One that is not installed yet.
    #[doc(hidden)]
    fn unbound() -> Self;

    /// Registers this one under a name and binds it to its cells.
    ///
    /// # Errors
    ///
    /// As [`Registry::register`]; and it is installed in another registry.
    fn register(&self, registry: &Registry, opts: &Opts<'_>) -> Result<(), Error>;
}

#[diagnostic::do_not_recommend]
impl<M: Metric> Registrable for M {
    fn unbound() -> Self {
        M::holding(Slot::late())
    }

    fn register(&self, registry: &Registry, opts: &Opts<'_>) -> Result<(), Error> {
        // The series without labels is the one that an overflow would go to.
        bind(self.slot(), registry.family::<(), M>(opts)?.overflow, opts)
    }
}

#[diagnostic::do_not_recommend]
impl<L: Labels + 'static, M: Metric> Registrable for Family<L, M> {
    fn unbound() -> Self {
        Self::new()
    }

    fn register(&self, registry: &Registry, opts: &Opts<'_>) -> Result<(), Error> {
        bind(&self.bound, registry.family::<L, M>(opts)?, opts)
    }
}

fn bind<T: Copy + PartialEq>(slot: &Slot<T>, bound: T, opts: &Opts<'_>) -> Result<(), Error> {
    if slot.bind(bound) {
        return Ok(());
    }
    Err(Error::register(
        opts.name,
        "it is installed in another registry or under another name already; a metric has one place",
    ))
}

/// A set of metrics that an application installs: by `#[derive(Metrics)]` on a
/// struct whose fields are metrics, families or further sets.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no set of metrics",
    label = "give it `#[derive(Metrics)]`; if it is a metric or a Family, remove `nested`"
)]
pub trait Metrics: Sync {
    /// Registers each of them.
    ///
    /// # Errors
    ///
    /// As [`Registry::register`].
    fn register(&self, registry: &Registry) -> Result<(), Error>;
}

/// Installs sets of metrics, once, at the start of the application. Doing it
/// again with the same registry changes nothing.
///
/// # Errors
///
/// The first metric that cannot be registered; those before it are.
pub fn install(registry: &Registry, sets: &[&dyn Metrics]) -> Result<(), Error> {
    sets.iter().try_for_each(|set| set.register(registry))
}

impl LabelText {
    /// Whether a label text is that of an overflow series.
    pub(crate) fn is_overflow(text: &[u8]) -> bool {
        text == OVERFLOW.as_bytes()
    }
}
