//! Opening a region.

use std::ffi::{OsStr, c_char};
use std::sync::{Mutex, PoisonError};

use talea::{Config, Error};

use crate::boundary::{self, guarded_with_message, place};
use crate::fork::{self, WithoutSignals};
use crate::pin;
use crate::registry::Registry;
use crate::status::{Failure, Status};
use crate::text::Text;

/// The `group` of talea_open_options may read a new file.
pub const TALEA_OPEN_READ_BY_GROUP: u32 = 1;

/// The open registries.
static OPEN: Mutex<Vec<&'static Registry>> = Mutex::new(Vec::new());

/// How a region is opened. Zeros are defaults; set `size` by `sizeof`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct OpenOptions {
    /// The size of this struct.
    pub size: usize,
    /// A file on tmpfs, such as /dev/shm/shop.talea; it is created if it is missing. Empty: memory
    /// of this process, shared with children made by fork.
    pub path: Text,
    /// The most bytes that a new region may use, a multiple of 4,096 from 512 KiB to 1 TiB; pages are
    /// allocated as they are needed. 0: 64 MiB, or, if that is less, an eighth of the cgroup's memory
    /// limit, or the limit of ulimit -f.
    pub len: u64,
    /// Series that a new region can hold, at most one for each 64 bytes. 0: one for each 512 bytes.
    pub series: u64,
    /// TALEA_OPEN_READ_BY_GROUP, or 0.
    pub flags: u32,
    /// The number of the group that may read a new file (mode 0640). Without the flag it is 0.
    pub group: u32,
    /// Planes that a new region can lend (talea_plane_borrow), at most 256. 0: none.
    pub lent_planes: u64,
}

// SAFETY: the fields are numbers and a text, which is numbers too; the first is the size.
unsafe impl boundary::Options for OpenOptions {}

/// Opens a region: creates it, or attaches to an existing file with the limits that it was created
/// with. A file that cannot be used is moved aside, or a sibling is opened; a line on standard error
/// says so.
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
    // SAFETY: the header demands valid pointers.
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
/// TALEA_REGION_GROUP names; if it is unset or empty, memory of this process.
///
/// TALEA_STATUS_CANNOT_OPEN with a message, or TALEA_STATUS_NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_open_from_environment(
    registry: *mut *const Registry,
    message: *mut c_char,
    message_len: usize,
) -> Status {
    // SAFETY: the header demands valid pointers.
    unsafe {
        guarded_with_message(message, message_len, || {
            // It starts a thread that removes idle series.
            let _blocked = WithoutSignals::new();
            place(registry)?.write(open(talea::Registry::from_env)?);
            Ok(())
        })
    }
}

unsafe fn with_options(options: OpenOptions) -> Result<&'static Registry, Failure> {
    let OpenOptions { path, len, series, flags, group, lent_planes, .. } = options;
    if flags & !TALEA_OPEN_READ_BY_GROUP != 0 {
        let message = format!("the flags of the options are {flags:#x}; expected 0 or 1");
        return Err(Failure::new(Status::WrongOption, message));
    }
    if group != 0 && flags == 0 {
        let message = format!("the group is {group} without TALEA_OPEN_READ_BY_GROUP");
        return Err(Failure::new(Status::WrongOption, message));
    }
    let mut config = if len > 0 { Config::with_len(len) } else { Config::default() };
    if series > 0 {
        config.series = series;
    }
    if flags != 0 {
        config = config.read_by_group(group);
    }
    let config = config.lending(lent_planes);
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
    // The region stays mapped, so this may stay too. The list keeps it reachable for leak checkers.
    let opened: &Registry = Box::leak(Box::new(Registry::new(registry)));
    OPEN.lock().unwrap_or_else(PoisonError::into_inner).push(opened);
    Ok(opened)
}
