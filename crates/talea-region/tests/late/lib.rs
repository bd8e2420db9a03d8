//! A library with a copy of Talea of its own, as a plugin has it.

#![allow(unsafe_code)]

use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use talea_region::{AddPath, Cell, Config, FamilySpec, Region, Storage};

static CELL: OnceLock<Cell> = OnceLock::new();
static RUNNING: AtomicU64 = AtomicU64::new(0);

/// Opens the region and finds the series; whether adds are restartable
/// sequences.
///
/// # Safety
///
/// The path ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn late_open(path: *const c_char) -> bool {
    // SAFETY: as the caller promises.
    let path = OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes());
    let region = Region::open(path, Config::with_len(1 << 20)).unwrap().region;
    let storage = Storage::Striped;
    let spec = FamilySpec { name: b"shared", storage, limit: 10, ..FamilySpec::default() };
    CELL.set(region.family(spec).unwrap().family.series(b"").unwrap().at(0)).unwrap();
    Region::add_path() == AddPath::Restartable
}

/// Adds one, so many times.
#[unsafe(no_mangle)]
pub extern "C" fn late_add(times: u64) {
    let cell = CELL.get().unwrap();
    (0..times).for_each(|_| cell.add(1));
}

/// Starts a thread of the library's own that does so.
#[unsafe(no_mangle)]
pub extern "C" fn late_start(times: u64) {
    RUNNING.fetch_add(1, SeqCst);
    std::thread::spawn(move || {
        late_add(times);
        RUNNING.fetch_sub(1, SeqCst);
    });
}

/// How many of these threads still run.
#[unsafe(no_mangle)]
pub extern "C" fn late_running() -> u64 {
    RUNNING.load(SeqCst)
}
