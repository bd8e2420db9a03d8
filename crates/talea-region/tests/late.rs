//! Claims about a library that is loaded into a running process, with a copy of
//! Talea of its own, and closed while it counts.
#![cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
#![allow(unsafe_code)]

#[macro_use]
mod support;

use std::ffi::{CStr, CString, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use crate::support::process::{arguments, line_of, output_of};
use crate::support::region;
use crate::support::tmpfs::Shm;
use talea_region::{AddPath, Cell, FamilySpec, Region, Storage};

/// The number of adds of each thread at a time.
const EACH: u64 = 200_000;

fn cell(path: &Path) -> Cell {
    let spec = FamilySpec { storage: Storage::Striped, limit: 10, ..FamilySpec::default() };
    region::family(region::open(path), "shared", spec).series(b"").unwrap().at(0)
}

/// Builds the library beside the tests, as a file of this name.
fn library(name: &str, features: &[&str]) -> PathBuf {
    // All are built in one place, one after the other.
    static BUILDING: Mutex<()> = Mutex::new(());
    let _building = BUILDING.lock();
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("late");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--locked", "--quiet", "--package", "talea-late"])
        .args(["--target", "x86_64-unknown-linux-gnu", "--target-dir"])
        .arg(&place)
        .args(features)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .unwrap();
    assert!(built.success());
    let library = place.join(name);
    std::fs::copy(place.join("x86_64-unknown-linux-gnu/debug/libtalea_late.so"), &library).unwrap();
    library
}

/// The library, loaded.
struct Late {
    handle: *mut c_void,
    open: unsafe extern "C" fn(*const c_char) -> bool,
    add: extern "C" fn(u64),
    start: extern "C" fn(u64),
    running: extern "C" fn() -> u64,
}

impl Late {
    fn load(library: &Path) -> Self {
        let path = CString::new(library.as_os_str().as_bytes()).unwrap();
        // SAFETY: the path ends with a zero.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        // SAFETY: the text ends with a zero.
        assert!(!handle.is_null(), "{:?}", unsafe { CStr::from_ptr(libc::dlerror()) });
        // SAFETY: the fields are of the types that the library gives them.
        unsafe {
            Self {
                handle,
                open: function(handle, c"late_open"),
                add: function(handle, c"late_add"),
                start: function(handle, c"late_start"),
                running: function(handle, c"late_running"),
            }
        }
    }

    fn open(&self, region: &Path) -> bool {
        let path = CString::new(region.as_os_str().as_bytes()).unwrap();
        // SAFETY: the path ends with a zero.
        unsafe { (self.open)(path.as_ptr()) }
    }

    /// Unloads the library, as a host does with a plugin that it no longer needs.
    fn close(&self) {
        // SAFETY: the handle is open, and closed once.
        assert_eq!(unsafe { libc::dlclose(self.handle) }, 0);
    }
}

/// A function of a library.
///
/// # Safety
///
/// The handle is open, and `F` is the function's type.
unsafe fn function<F: Copy>(handle: *mut c_void, name: &CStr) -> F {
    // SAFETY: the name ends with a zero; the rest is as the caller promises.
    unsafe {
        let found = libc::dlsym(handle, name.as_ptr());
        assert!(!found.is_null(), "{name:?}");
        std::mem::transmute_copy(&found)
    }
}

fn is_mapped(library: &Path) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().any(|line| Path::new(line.split_whitespace().nth(5).unwrap_or("")) == library)
}

/// The descriptor of a restartable sequence that the kernel would look at if
/// this thread was moved now; 0 for none.
fn armed() -> u64 {
    // SAFETY: the name ends with a zero; glibc declares it as a `ptrdiff_t`, the
    // distance of the thread's `struct rseq` from the thread pointer.
    unsafe {
        let offset = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr());
        let offset = *offset.cast::<isize>();
        let armed: u64;
        std::arch::asm!(
            "mov {armed}, qword ptr fs:[{offset} + 8]",
            armed = out(reg) armed,
            offset = in(reg) offset,
            options(nostack, readonly, preserves_flags),
        );
        armed
    }
}

/// Forks, and waits for the child.
fn in_a_child(work: impl Fn()) {
    // SAFETY: the child calls only functions that are safe after a fork, and no destructors.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            work();
            libc::_exit(0);
        }
        let mut status = -1;
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        assert_eq!(status, 0, "the child was killed or failed");
    }
}

#[test]
#[ignore = "a process that a test starts"]
fn is_a_host_when_asked() {
    let Some(paths) = arguments() else { return };
    let [library, region] = paths.map(PathBuf::from);
    let cell = cell(&region);
    let restartable = Region::add_path() == AddPath::Restartable;
    let loaded: OnceLock<extern "C" fn(u64)> = OnceLock::new();
    let closed = AtomicBool::new(false);
    let added: u64 = std::thread::scope(|scope| {
        // They run before the library comes, use it and outlive its closing.
        let threads = [(); 3].map(|()| {
            scope.spawn(|| {
                let (mut added, mut after) = (0, 0);
                while after < 3 {
                    after += u32::from(closed.load(SeqCst));
                    (0..EACH).for_each(|_| cell.add(1));
                    added += EACH;
                    let Some(add) = loaded.get() else { continue };
                    add(EACH);
                    added += EACH;
                    assert!(!restartable || armed() == 0, "a sequence stayed armed");
                }
                added
            })
        });
        assert!(!is_mapped(&library));
        // In a thread that ends: thread-local data of the library would keep the library loaded.
        let loading = scope.spawn(|| {
            let late = Late::load(&library);
            assert_eq!(late.open(&region), restartable, "both go the same way");
            loaded.set(late.add).unwrap();
            (0..2).for_each(|_| (late.start)(10 * EACH));
            late.close();
            closed.store(true, SeqCst);
            (late.add, late.running)
        });
        let (add, running) = loading.join().unwrap();
        let added: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        while running() > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        // Loaded again, it finds the same region and its values.
        for _ in 0..10 {
            let late = Late::load(&library);
            (late.add)(EACH);
            late.close();
            assert!(is_mapped(&library), "a library that has handles is never unloaded");
            std::thread::sleep(Duration::from_millis(5));
        }
        add(EACH);
        in_a_child(|| add(EACH));
        added + 32 * EACH
    });
    assert_eq!(cell.get(), added);
    println!("\nadded {added}");
}

#[test]
fn a_library_that_is_loaded_late_and_closed_loses_nothing_and_harms_nobody() {
    let library = library("late.so", &[]);
    for round in 0..3 {
        let shm = Shm::new(&format!("late-{round}"));
        let said = output_of(&mut again!("is_a_host_when_asked", library, shm.file()));
        assert_eq!(cell(&shm.file()).get().to_string(), line_of(&said, "added "));
    }
}

#[test]
#[ignore = "a process that a test starts"]
fn is_a_host_that_unloads_when_asked() {
    let Some(paths) = arguments() else { return };
    let [library, region] = paths.map(PathBuf::from);
    let late = Late::load(&library);
    let (open, add) = (late.open, late.add);
    let path = CString::new(region.as_os_str().as_bytes()).unwrap();
    // In a thread that ends, as above.
    let using = std::thread::spawn(move || {
        // SAFETY: the path ends with a zero.
        unsafe { open(path.as_ptr()) };
        add(1);
    });
    using.join().unwrap();
    late.close();
    assert!(!is_mapped(&library), "the library is unloaded");
    in_a_child(|| {});
    println!("\nforked");
}

#[test]
fn a_fork_after_the_library_was_unloaded_calls_none_of_its_handlers() {
    let library = library("unloadable.so", &["--features", "unloadable"]);
    let shm = Shm::new("unloaded");
    let said = output_of(&mut again!("is_a_host_that_unloads_when_asked", library, shm.file()));
    line_of(&said, "forked");
}
