//! Opens registries: in memory, in a file, from the environment, and the registries of other processes.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use talea_region::{Config, OpenError, Region, group_named};

use super::{Registry, uninstalled};
use crate::error::Error;
use crate::notice::notice;

/// The environment variable that names the file of a registry.
const REGION: &str = "TALEA_REGION";
/// The one that names the group that may read that file.
const GROUP: &str = "TALEA_REGION_GROUP";
/// The most age of observable values for a reader from outside.
const FRESH: Duration = Duration::from_secs(5);

impl Registry {
    /// A registry in memory of its own, which children made by `fork` share. 64 MiB at most, of
    /// which pages are used as they are needed, or, if that is less, an eighth of the cgroup's
    /// memory limit or what `ulimit -f` allows.
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
    /// since tests that run side by side in one process would see each other's registries.
    ///
    /// # Errors
    ///
    /// The system refuses memory.
    pub fn for_test() -> Result<Self, Error> {
        Ok(Self::of(Region::anonymous(Config::with_len(4 << 20))?))
    }

    /// Attaches to the registry in a file on tmpfs, or creates it, for processes that do not fork
    /// from one parent. A new one has the default limits of [`Config`] and mode 0600, whatever the
    /// umask. A region that cannot be used is moved aside, or a sibling opened, which gets the path
    /// once nobody uses the file there; a line on standard error says so. A file of another user
    /// than this process's own or root, or that others may write to, is never used: see
    /// [`Config::owner`].
    ///
    /// Each opening counts as a process: twice in one process are two.
    ///
    /// # Errors
    ///
    /// The path is not on tmpfs, cannot be created, is no regular file, or is a file of something else,
    /// which stays; the system
    /// refuses memory, or a file of that length (`ulimit -f`); the system is not Linux.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(path, Config::default())
    }

    /// As [`open`](Self::open), with limits for a new file, and a group that may read it
    /// ([`Config::read_by_group`]). An existing file keeps the limits, the group and the mode that
    /// it was created with. If its group or mode is not the one asked for, a line on standard error
    /// says so.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open); the limits do not fit each other; the process is not in the
    /// group that a new file is to have.
    pub fn open_with(path: impl AsRef<Path>, config: Config) -> Result<Self, Error> {
        let opened = Region::open(path, config)?;
        opened.notice.into_iter().for_each(notice);
        let registry = Self::of(opened.region);
        uninstalled::report_in(&registry);
        Ok(registry)
    }

    /// The registry in the file that the environment variable `TALEA_REGION` names, as
    /// [`open`](Self::open) opens it; if the variable is unset or empty, one in memory of its own,
    /// as [`new`](Self::new) makes it. So the operator of a service decides whether its metrics
    /// outlive it, and which processes share them.
    ///
    /// A path that is not absolute begins at the working directory. Observable values are refreshed
    /// every five seconds, for readers outside the process: see
    /// [`refresh_every`](Self::refresh_every).
    ///
    /// A new file has mode 0600; if `TALEA_REGION_GROUP` names a group, by its name or its number,
    /// it has that group and mode 0640, so that an agent of another user can read it. The process
    /// that creates it must be in the group. Without `TALEA_REGION` that variable has no effect.
    ///
    /// Each call opens the file anew and counts as a process: call it once and clone what it
    /// returns. The environment is read at that moment; no thread may change it meanwhile, as with
    /// [`std::env::var_os`]. Cost: the opening, some system calls; metrics in a file cost what
    /// those in memory do.
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
        Self::from_env_with(Config::default())
    }

    /// As [`from_env`](Self::from_env), with limits for a new region.
    ///
    /// # Errors
    ///
    /// As there; the limits do not fit each other.
    pub fn from_env_with(config: Config) -> Result<Self, Error> {
        let set = |variable| std::env::var_os(variable).filter(|value| !value.is_empty());
        let registry = match set(REGION).map(PathBuf::from) {
            Some(path) => Self::at(path, set(GROUP), config)?,
            None => Self::with_config(config)?,
        };
        registry.refresh_every(FRESH);
        Ok(registry)
    }

    /// The registry in a file that the environment names.
    fn at(path: PathBuf, group: Option<OsString>, config: Config) -> Result<Self, Error> {
        let config = match &group {
            Some(group) => config.read_by_group(group_of(group)?),
            None => config,
        };
        Self::open_with(&path, config).map_err(|error| match (error, group) {
            (Error::Open(source @ OpenError::Group { .. }), Some(group)) => {
                Error::group(GROUP, &group, source.to_string())
            }
            (Error::Open(source), _) => Error::Environment { variable: REGION, path, source },
            (error, _) => error,
        })
    }

    /// Joins the registry in a file that other processes record in; it neither creates nor moves a
    /// file. For an operator's tools. It counts as a process as long as this process lives.
    ///
    /// It does not count as a user of the families that others registered, and observable values
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

    /// As [`attach`](Self::attach), if the file belongs to one of `owners` (user ids), each of whom
    /// can end this process by truncating the file. [`attach`](Self::attach) takes files of its own
    /// effective user and of root.
    ///
    /// # Errors
    ///
    /// As [`attach`](Self::attach).
    pub fn attach_owned_by(path: impl AsRef<Path>, owners: &[u32]) -> Result<Self, Error> {
        Ok(Self::of(Region::attach_owned_by(path, owners)?))
    }

    /// Joins the registry that a running process has in memory, the first that it made.
    ///
    /// # Errors
    ///
    /// There is no such process, it may not be looked into, or its registry is in a file; and as
    /// [`attach`](Self::attach).
    pub fn attach_to_process(pid: u32) -> Result<Self, Error> {
        Ok(Self::of(Region::attach_to_process(pid)?))
    }
}

/// The number of a group that is named by it, or by name.
fn group_of(group: &OsStr) -> Result<u32, Error> {
    let refused = |reason: String| Error::group(GROUP, group, reason);
    let name = group.to_str().unwrap_or_default();
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    match group_named(name) {
        Ok(Some(number)) => Ok(number),
        Ok(None) => {
            Err(refused("the system knows no such group; name one of `getent group`".to_owned()))
        }
        Err(error) => Err(refused(format!("the system could not look for it: {error}"))),
    }
}
