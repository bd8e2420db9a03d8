//! The registry: a region, and the way of metrics into it.

use std::any::{Any, TypeId};
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use talea_region::{Config, OpenError, Region, Usage, group_named};

use crate::error::Error;
use crate::kept_windows::KeptWindows;
use crate::opts::Opts;
use crate::refreshing::{self, Refreshers};
use crate::register::Registrable;
use crate::samples::{own_name, owner_of};
use crate::set_fields::Field;
use crate::snapshot::Snapshot;
use crate::uninstalled;

/// The environment variable that names the file of a registry.
const REGION: &str = "TALEA_REGION";
/// The one that names the group that may read that file.
const GROUP: &str = "TALEA_REGION_GROUP";
/// How old what is read rather than told gets for whoever reads such a registry from outside.
const FRESH: Duration = Duration::from_secs(5);

/// A region and the metrics in it. Clones are the same registry, and cheap. Any number
/// of threads may use one at once; registering takes a lock, metrics and snapshots do
/// not wait for it.
#[derive(Clone)]
pub struct Registry {
    pub(crate) region: &'static Region,
    pub(crate) refreshers: Arc<Refreshers>,
    /// What handles point to, by the family's number, who tells its label
    /// combinations apart, and its metric type.
    pub(crate) bounds: Arc<Mutex<Bounds>>,
    pub(crate) kept: Arc<KeptWindows>,
    /// The field of a set that is being registered, where it was made for one.
    pub(crate) field: Option<Arc<Field>>,
}

pub(crate) type Bounds = HashMap<BoundKey, &'static (dyn Any + Send + Sync), Spread>;

/// By what [`Bounds`] are found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BoundKey {
    pub(crate) family: u32,
    pub(crate) told_by: TypeId,
    pub(crate) metric: TypeId,
}

/// By the family's number alone: nearly all families have one entry.
impl Hash for BoundKey {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        hasher.write_u32(self.family);
    }
}

/// Spreads the numbers of families over a table. Nobody chooses these numbers, so it need not
/// resist anybody.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spread(u64);

impl BuildHasher for Spread {
    type Hasher = Self;

    fn build_hasher(&self) -> Self {
        Self(0)
    }
}

impl Hasher for Spread {
    fn write_u32(&mut self, number: u32) {
        // 2⁶⁴ divided by the golden ratio (Fibonacci hashing).
        self.0 = u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(u32::from(byte)));
    }

    fn finish(&self) -> u64 {
        self.0.rotate_left(32)
    }
}

impl Registry {
    /// A registry in memory of its own, which children made by `fork` share.
    /// 64 MiB at most, of which pages are used as they are needed, or, where that is less, an
    /// eighth of the cgroup's memory limit or what `ulimit -f` allows.
    ///
    /// The memory stays mapped until the process ends, so that handles are plain
    /// pointers.
    ///
    /// Any registry that a process makes or opens, except one [for a test](Self::for_test),
    /// reports updates of metrics of the process that are not installed by its next snapshot: by
    /// a line on standard error, once for each place in the program where such a metric is made,
    /// and as `talea_uninstalled_updates_total`. Of several registries, the one reports an update
    /// whose snapshot is taken first.
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
        let registry = Self::of(Region::anonymous(config)?);
        uninstalled::report_in(&registry);
        Ok(registry)
    }

    /// A registry of 4 MiB for a test, which holds about 8,000 series, or some thousand
    /// histograms. Unlike others it does not report updates of metrics that are not installed,
    /// since tests that run side by side in one process would see those of each other.
    ///
    /// # Errors
    ///
    /// The system refuses memory.
    pub fn for_test() -> Result<Self, Error> {
        Ok(Self::of(Region::anonymous(Config::with_len(4 << 20))?))
    }

    /// Attaches to the registry in a file on tmpfs, or creates it, for processes
    /// that do not fork from one parent. A new one has the default limits of [`Config`]
    /// and mode 0600, whatever the umask. A file that cannot be used is moved aside, or a
    /// sibling opened, which gets the path once nobody uses the file there; a line on standard
    /// error says so. One of another user than this process's
    /// own or root, or that others may write to, is never used: see [`Config::owner`].
    ///
    /// Each opening counts as a process: twice in one process are two.
    ///
    /// # Errors
    ///
    /// The path is not on tmpfs, cannot be created or is no regular file; the system
    /// refuses memory, or a file of that length (`ulimit -f`); the system is not Linux.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(path, Config::default())
    }

    /// The same with limits of its own for a file that is new, and a group that may read it
    /// ([`Config::read_by_group`]); one that is there has the limits, the group and the mode
    /// that it was created with, and where these are not what was asked for, a line on standard
    /// error says so of the last two.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open); the limits do not fit each other; the process is not in the
    /// group that a new file is to have.
    pub fn open_with(path: impl AsRef<Path>, config: Config) -> Result<Self, Error> {
        let opened = Region::open(path, config)?;
        if let Some(notice) = opened.notice {
            eprintln!("talea: {notice}");
        }
        let registry = Self::of(opened.region);
        uninstalled::report_in(&registry);
        Ok(registry)
    }

    /// The registry in the file that the environment variable `TALEA_REGION` names, as
    /// [`open`](Self::open) opens it; where the variable is unset or empty, one in memory of
    /// its own, as [`new`](Self::new) makes it. So whoever runs a service decides whether its
    /// metrics outlive it, and who else counts in them.
    ///
    /// A path that is not absolute begins at the working directory. Values that are read
    /// rather than told are read every five seconds, for whoever reads them from outside:
    /// see [`refresh_every`](Self::refresh_every).
    ///
    /// A new file has mode 0600; where `TALEA_REGION_GROUP` names a group, by its name or its
    /// number, it has that group and mode 0640, so that an agent of another user can read it.
    /// Whoever creates it must be in the group. Without `TALEA_REGION` it says nothing.
    ///
    /// Each call opens the file anew and counts as a process: call it once and clone what it
    /// returns. The environment is read at that moment; a thread that changes it meanwhile is
    /// at fault, as with [`std::env::var_os`]. Cost: that of opening, some system calls;
    /// metrics in a file cost what those in memory do.
    ///
    /// ```
    /// use talea::{Counter, Opts, Registry};
    ///
    /// // TALEA_REGION=/dev/shm/shop.talea shop
    /// let registry = Registry::from_env()?;
    /// let orders: Counter = registry.register(Opts::new("orders", "Orders accepted."))?;
    /// orders.inc();
    /// # Ok::<(), talea::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`open_with`](Self::open_with), in an error that also names the variable, or as
    /// [`new`](Self::new); there is no such group.
    pub fn from_env() -> Result<Self, Error> {
        let set = |variable| std::env::var_os(variable).filter(|value| !value.is_empty());
        let registry = match set(REGION).map(PathBuf::from) {
            Some(path) => Self::at(path, set(GROUP))?,
            None => Self::new()?,
        };
        registry.refresh_every(FRESH);
        Ok(registry)
    }

    /// The registry in a file that the environment names.
    fn at(path: PathBuf, group: Option<OsString>) -> Result<Self, Error> {
        let config = match &group {
            Some(group) => Config::default().read_by_group(group_of(group)?),
            None => Config::default(),
        };
        Self::open_with(&path, config).map_err(|error| match (error, group) {
            (Error::Open(source @ OpenError::Group { .. }), Some(group)) => {
                Error::group(GROUP, &group, source.to_string())
            }
            (Error::Open(source), _) => Error::Environment { variable: REGION, path, source },
            (error, _) => error,
        })
    }

    /// Takes part in the registry in a file that others count in, and neither creates nor moves
    /// one: for an operator's tools. It counts as a process as long as this process lives.
    ///
    /// What others registered is not in use by it, and values that are read rather than told
    /// are as old as their process [lets them get](Self::refresh_every).
    ///
    /// # Errors
    ///
    /// There is no file, or it may not be read and written; it is another user's, or others may
    /// write to it; it is no region of this boot and layout, or damaged; all places for processes
    /// are taken; the system is not Linux.
    pub fn attach(path: impl AsRef<Path>) -> Result<Self, Error> {
        Ok(Self::of(Region::attach(path)?))
    }

    /// The same if the file belongs to one of `owners` (user ids), each of whom can end this process
    /// by cutting the file. [`attach`](Self::attach) takes files of its own effective user and of
    /// root.
    ///
    /// # Errors
    ///
    /// As [`attach`](Self::attach).
    pub fn attach_owned_by(path: impl AsRef<Path>, owners: &[u32]) -> Result<Self, Error> {
        Ok(Self::of(Region::attach_owned_by(path, owners)?))
    }

    /// The same with the registry that a running process has in memory, the first that it made.
    ///
    /// # Errors
    ///
    /// There is no such process, it may not be looked into, or its registry is in a file; and as
    /// [`attach`](Self::attach).
    pub fn attach_to_process(pid: u32) -> Result<Self, Error> {
        Ok(Self::of(Region::attach_to_process(pid)?))
    }

    pub(crate) fn of(region: &'static Region) -> Self {
        let (refreshers, bounds, kept) = Default::default();
        Self { region, refreshers, bounds, kept, field: None }
    }

    /// Registers a metric, or finds the one that is defined alike. Use this where
    /// names are known at run time; otherwise derive [`Metrics`](crate::Metrics).
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

    /// Calls `refresh` before each snapshot, for values that are read rather
    /// than counted, for as long as the registry lives. Keep it short: a scrape waits for
    /// it. It runs on the thread that takes the snapshot, in that process only, on several
    /// at once if they do; it must not take a snapshot of this registry, and if it panics,
    /// so does [`snapshot`](Self::snapshot).
    pub fn on_snapshot(&self, refresh: impl Fn() + Send + Sync + 'static) {
        self.refreshers.add(refresh);
    }

    /// All values at this instant. Any number of threads may ask at once. At most
    /// once a minute, series that are idle go before.
    ///
    /// Nobody who adds waits for it, and what they add meanwhile may be in it or not. No
    /// counter or bucket is ever less than in a snapshot before, unless it was wiped or
    /// removed.
    ///
    /// Cost: the series, and what [`on_snapshot`](Self::on_snapshot) calls. How many
    /// processes have the region open, or died, does not matter.
    pub fn snapshot(&self) -> Snapshot {
        self.snapshot_of(|_| true)
    }

    /// The values of those families whose names are wanted, as samples have them (a
    /// counter's with `_total`). Cost: their series; a word for each 64 others.
    pub fn snapshot_of(&self, wants: impl Fn(&str) -> bool) -> Snapshot {
        let mut snapshot = Snapshot::default();
        self.snapshot_into(&mut snapshot, wants);
        snapshot
    }

    /// The same into a snapshot that was taken before, whose memory is used again: for
    /// who takes one after the other. Once it is as large as it gets, nothing is
    /// allocated for it.
    pub fn snapshot_into(&self, out: &mut Snapshot, wants: impl Fn(&str) -> bool) {
        self.refreshers.refresh();
        refreshing::sweep_if_due(self.region);
        out.take(wants, |raw, wants| self.region.snapshot_into(raw, wants));
        self.show_windows(out);
    }

    /// Has the families whose names are wanted, as samples have them, count from 0 again,
    /// as [`Family::wipe`](crate::Family::wipe) does for one; false where one of them goes
    /// on. Cost: a look at each of their series.
    ///
    /// ```
    /// # use talea::{Counter, Opts, Registry};
    /// # let registry = Registry::for_test()?;
    /// let orders: Counter = registry.register(Opts::new("shop_orders", "Orders."))?;
    /// orders.add(3);
    /// registry.wipe(|name| name.starts_with("shop_"));
    /// orders.inc();
    /// assert_eq!(orders.get(), 1);
    /// # Ok::<(), talea::Error>(())
    /// ```
    pub fn wipe(&self, wants: impl Fn(&str) -> bool) -> bool {
        self.region.wipe(|name| std::str::from_utf8(name).is_ok_and(|name| wants(owner_of(name))))
    }

    /// Ends a family: scrapes show it no more, what its handles are told goes nowhere,
    /// and its name is free for another definition. Registered again as it was, it
    /// counts from 0, by its old handles too. False where there is no family of this
    /// name, which is as samples have it (a counter's with `_total`). What
    /// [`on_snapshot`](Self::on_snapshot) calls goes on being called.
    ///
    /// The memory of its series is used again when no process lives any more that
    /// registered it.
    pub fn unregister(&self, name: &str) -> bool {
        self.region.end_families(own_name(name).as_bytes());
        self.region.end_families(name.as_bytes())
    }

    /// The same of all families whose names are wanted. Returns how many these were. Cost: a look
    /// at each family, and each of their series.
    pub fn unregister_where(&self, wants: impl Fn(&str) -> bool) -> usize {
        let mut ended = HashSet::new();
        self.region.end_families_where(|name| {
            let Ok(name) = std::str::from_utf8(name) else { return false };
            let is_wanted = wants(owner_of(name));
            if is_wanted && owner_of(name) == name {
                ended.insert(name.to_owned());
            }
            is_wanted
        });
        ended.len()
    }

    /// How much of the region is in use. Cost: a look at a bit of each piece of it.
    pub fn usage(&self) -> Usage {
        self.region.usage()
    }

    /// Does a minute's sweep now: series that nobody looked up for their family's time
    /// go (see [`Opts::expires_after`]), and what was removed becomes free. Snapshots
    /// and new series see to that themselves; this is for tests, where each call
    /// counts as a minute. Cost: a look at every series.
    pub fn sweep(&self) {
        refreshing::sweep(self.region);
    }

    /// Removes series of the families that are wanted, now: those that nobody looked up for
    /// `longer` or, where that is `None`, for their family's time
    /// ([`Opts::expires_after`]). Returns how many went. `wants` is told a family's name, as
    /// samples have it, and whether its idle series go at all by themselves. The sweep that is
    /// due is done too, as by any snapshot.
    ///
    /// How long a series was idle is known by sweeps, which begin at least a minute apart, and
    /// by when the last one began: what goes was idle for so long, and what stays may have
    /// been, most of all where no process swept. Series stay that a handle keeps, that last as
    /// long as their family, or that hold what is in flight. Cost: a look at every series.
    pub fn expire(&self, longer: Option<Duration>, wants: impl Fn(&str, bool) -> bool) -> u64 {
        self.region.expire(longer, |name, minutes| {
            std::str::from_utf8(name).is_ok_and(|name| wants(owner_of(name), minutes > 0))
        })
    }
}

/// The number of a group that is named by it, or by name.
fn group_of(group: &OsStr) -> Result<u32, Error> {
    let told = |reason: String| Error::group(GROUP, group, reason);
    let name = group.to_str().unwrap_or_default();
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    match group_named(name) {
        Ok(Some(number)) => Ok(number),
        Ok(None) => {
            Err(told("the system knows no such group; name one of `getent group`".to_owned()))
        }
        Err(error) => Err(told(format!("the system could not look for it: {error}"))),
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").finish_non_exhaustive()
    }
}
