//! Opening a region.

use std::collections::BTreeMap;
use std::ffi::{OsStr, c_char};
use std::sync::{Mutex, PoisonError};

use talea::{Config, Error, Snapshot};

use crate::boundary::{self, guarded, guarded_with_message, place, required};
use crate::definition::{Kind, Unit};
use crate::family::Family;
use crate::fork::{self, WithoutSignals};
use crate::kept::Kept;
use crate::pin;
use crate::render;
use crate::status::{Failure, Status};
use crate::text::Text;

/// The `group` of talea_open_options may read a new file.
pub const TALEA_OPEN_READ_BY_GROUP: u32 = 1;

/// Those that are open.
static OPEN: Mutex<Vec<&'static Registry>> = Mutex::new(Vec::new());

/// A registry: a region of shared memory, and what was registered in it. It stays until the
/// process ends, so there is nothing to free. Any number of threads may use one.
pub struct Registry {
    pub(crate) registry: talea::Registry,
    /// By their numbers in the region and what they are here.
    pub(crate) families: Mutex<BTreeMap<(u32, Kind, Unit), &'static Family>>,
    /// The memory of the last scrape, for the next.
    pub(crate) kept_scrape: Kept<render::Memory>,
    pub(crate) kept_reading: Kept<Snapshot>,
}

/// How a region is opened. Zeros are defaults; set `size` by `sizeof`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct OpenOptions {
    /// How large this struct is.
    pub size: usize,
    /// A file on tmpfs, such as /dev/shm/shop.talea, which is created where it is not there.
    /// Empty: memory of this process, which children made by fork share.
    pub path: Text,
    /// Bytes of memory that a new region may come to use; pages are taken as they are needed.
    /// 0: 64 MiB, or, where that is less, an eighth of the cgroup's memory limit, or what ulimit -f
    /// allows.
    pub len: u64,
    /// Series that a new region can hold. 0: one for each 512 bytes.
    pub series: u64,
    /// TALEA_OPEN_READ_BY_GROUP, or 0.
    pub flags: u32,
    /// The number of the group that may read a new file (mode 0640), where the flag is set.
    pub group: u32,
}

// SAFETY: it is numbers and a text, which is numbers too; the first field is its size.
unsafe impl boundary::Options for OpenOptions {}

/// Opens a region: creates it, or attaches to a file that is there, with the limits that this
/// was created with. A file that cannot be used is moved aside, or a sibling opened; a line on
/// standard error says so.
///
/// `options` may be null: memory of this process. Open a region once in a process, and before
/// it forks; each opening counts as a process.
///
/// TALEA_STATUS_CANNOT_OPEN with a message, or TALEA_STATUS_NULL, _WRONG_SIZE, _WRONG_OPTION,
/// _NOT_UTF8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_open(
    options: *const OpenOptions,
    registry: *mut *const Registry,
    message: *mut c_char,
    message_len: usize,
) -> Status {
    // SAFETY: the header asks for as much.
    unsafe {
        guarded_with_message(message, message_len, || {
            let place = place(registry)?;
            let opened = match options.is_null() {
                true => open(talea::Registry::new)?,
                false => with_options(boundary::options(options)?)?,
            };
            place.write(opened);
            Ok(())
        })
    }
}

/// Opens the file that the environment variable TALEA_REGION names, readable by the group that
/// TALEA_REGION_GROUP names; where it is unset or empty, memory of this process.
///
/// TALEA_STATUS_CANNOT_OPEN with a message, or TALEA_STATUS_NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_open_from_environment(
    registry: *mut *const Registry,
    message: *mut c_char,
    message_len: usize,
) -> Status {
    // SAFETY: the header asks for as much.
    unsafe {
        guarded_with_message(message, message_len, || {
            // It has a thread that keeps values fresh.
            let _alone = WithoutSignals::new();
            place(registry)?.write(open(talea::Registry::from_env)?);
            Ok(())
        })
    }
}

/// How much of a region is in use, in bytes.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Usage {
    /// Records of series, and how many bytes there can be.
    pub records: u64,
    /// See `records`.
    pub records_room: u64,
    /// Names, help and label text, and how many bytes there can be.
    pub text: u64,
    /// See `text`.
    pub text_room: u64,
    /// Values of series, each CPU's copies once, and how many bytes there can be.
    pub cells: u64,
    /// See `cells`.
    pub cells_room: u64,
}

/// Reports how much of a region is in use. TALEA_STATUS_NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_usage(registry: *const Registry, usage: *mut Usage) -> Status {
    guarded(|| {
        // SAFETY: the header asks for as much.
        let (registry, place) = unsafe { (required(registry)?, place(usage)?) };
        let found = registry.registry.usage();
        let cells = [found.single_cells, found.striped_cells, found.owned_cells];
        place.write(Usage {
            records: found.records.taken,
            records_room: found.records.room,
            text: found.text.taken,
            text_room: found.text.room,
            cells: cells.iter().map(|part| part.taken).sum(),
            cells_room: cells.iter().map(|part| part.room).sum(),
        });
        Ok(())
    })
}

unsafe fn with_options(options: OpenOptions) -> Result<&'static Registry, Failure> {
    let OpenOptions { path, len, series, flags, group, .. } = options;
    if flags & !TALEA_OPEN_READ_BY_GROUP != 0 {
        let message = format!("the flags of the options are {flags:#x}; expected 0 or 1");
        return Err(Failure::new(Status::WrongOption, message));
    }
    let mut config = if len > 0 { Config::with_len(len) } else { Config::default() };
    if series > 0 {
        config.series = series;
    }
    if flags & TALEA_OPEN_READ_BY_GROUP != 0 {
        config = config.read_by_group(group);
    }
    // SAFETY: as the caller promises.
    let path = unsafe { boundary::slice(path.data.cast::<u8>(), path.len)? };
    match path {
        [] => open(|| talea::Registry::with_config(config)),
        path => open_file(path, config),
    }
}

#[cfg(unix)]
fn open_file(path: &[u8], config: Config) -> Result<&'static Registry, Failure> {
    use std::os::unix::ffi::OsStrExt;
    let path = OsStr::from_bytes(path);
    open(|| talea::Registry::open_with(path, config))
}

#[cfg(not(unix))]
fn open_file(path: &[u8], config: Config) -> Result<&'static Registry, Failure> {
    let path = OsStr::new(std::str::from_utf8(path).map_err(|_| Status::NotUtf8)?);
    open(|| talea::Registry::open_with(path, config))
}

fn open(
    open: impl FnOnce() -> Result<talea::Registry, Error>,
) -> Result<&'static Registry, Failure> {
    pin::stay_loaded();
    let _inside = fork::enter();
    let registry = open().map_err(|e| Failure::new(Status::CannotOpen, e.to_string()))?;
    // The region stays mapped, so this may stay too. The list of open registries keeps it reachable,
    // so that leak checkers do not report it.
    let opened: &Registry = Box::leak(Box::new(Registry {
        registry,
        families: Mutex::default(),
        kept_scrape: Kept::default(),
        kept_reading: Kept::default(),
    }));
    OPEN.lock().unwrap_or_else(PoisonError::into_inner).push(opened);
    Ok(opened)
}
