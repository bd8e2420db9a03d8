//! A thread's area: the `struct rseq` through which the kernel and the thread speak, and its
//! registration. Source: `rseq(2)`, <https://www.kernel.org/doc/html/latest/userspace-api/rseq.html>.
//!
//! A thread has at most one area. It lies at the same distance from the thread pointer in all threads,
//! which [`OFFSET`] holds:
//!
//! 1. glibc from 2.35 on registers every thread, and says where in `__rseq_offset` and `__rseq_size`. A
//!    size of 0 says that it does not, for example by `GLIBC_TUNABLES=glibc.pthread.rseq=0`.
//! 2. Where the C library does not know restartable sequences (musl, older glibc), a thread registers an
//!    area of its own at its first add, and ends that when the thread ends, before its memory is
//!    unmapped. This needs the code to be in the main program, because only the main program's
//!    thread-local variables surely have one distance in all threads. A library that is loaded
//!    later adds atomically.
//!
//! If another library has registered the thread's area first, the system refuses a second one, and this
//! thread adds atomically. A library that comes later is refused in the same way.

use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, AtomicU32, AtomicU64, Ordering::Relaxed};

use super::processor::{SIGNATURE, thread_pointer};
use crate::layout::CPUS;

/// The distance of a thread's area from its thread pointer in bytes; 0 while it is unknown, and where
/// restartable sequences are off. (It is never 0: the thread control block begins there.)
pub(super) static OFFSET: AtomicIsize = AtomicIsize::new(0);

/// The bytes of an area's first version, which the kernel reads and writes.
const AREA_LEN: u32 = 32;

/// `cpu_id` of an area that is not registered.
const UNREGISTERED: u32 = u32::MAX;
/// `cpu_id` of an area that cannot be registered, or must not be any more.
const REFUSED: u32 = u32::MAX - 1;

#[repr(C, align(32))]
struct Area {
    cpu_id_start: Cell<u32>,
    cpu_id: AtomicU32,
    /// The descriptor of the sequence that is armed.
    armed: AtomicU64,
    others: [Cell<u64>; 2],
    /// Not the kernel's: whether the thread has begun to end.
    has_ended: Cell<bool>,
}

thread_local! {
    // It needs no destructor, so it is there until the thread has ended.
    static OWN: Area = const {
        Area {
            cpu_id_start: Cell::new(0),
            cpu_id: AtomicU32::new(UNREGISTERED),
            armed: AtomicU64::new(0),
            others: [const { Cell::new(0) }; 2],
            has_ended: Cell::new(false),
        }
    };
}

/// Looks for the areas of this process's threads. Called before the first add.
pub(crate) fn detect() {
    let offset = match c_library() {
        Some(offset) => offset,
        None => own::offset(),
    };
    OFFSET.store(offset, Relaxed);
}

/// Turns restartable sequences off for this process, so that every add is atomic.
pub(crate) fn disable() {
    OFFSET.store(0, Relaxed);
}

#[inline]
pub(crate) fn enabled() -> bool {
    OFFSET.load(Relaxed) != 0
}

/// The CPU that this thread ran on a moment ago; `None` where restartable sequences are off for the
/// process or the thread. A thread without an area gets one here.
pub(crate) fn cpu() -> Option<u64> {
    let offset = OFFSET.load(Relaxed);
    if offset == 0 {
        return None;
    }
    let read = || {
        let area = thread_pointer().wrapping_add_signed(offset) as *const AtomicU32;
        // SAFETY: the offset leads to this thread's area, in which the second word is `cpu_id`.
        unsafe { (*area.add(1)).load(Relaxed) }
    };
    let cpu = match read() {
        UNREGISTERED if own::register() => read(),
        cpu => cpu,
    };
    (u64::from(cpu) < CPUS).then_some(u64::from(cpu))
}

/// The offset of the areas that the C library registers: 0 if it registers none, `None` if it does not
/// know them.
fn c_library() -> Option<isize> {
    // SAFETY: the names are NUL-terminated literals, and the default handle searches what is loaded
    // already.
    let (offset, size) = unsafe {
        (
            libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr()),
            libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr()),
        )
    };
    if offset.is_null() || size.is_null() {
        return None;
    }
    // SAFETY: glibc declares them as `const ptrdiff_t` and `const unsigned`.
    let (offset, size) = unsafe { (*offset.cast::<isize>(), *size.cast::<u32>()) };
    Some(if size == 0 { 0 } else { offset })
}

/// Areas of the threads' own.
mod own {
    use std::ffi::c_void;
    use std::sync::OnceLock;

    use super::*;

    const UNREGISTER: i32 = 1;

    /// Its destructors run when a thread ends. It holds the thread's area. (A thread-local variable with
    /// a destructor would allocate.)
    static AT_END: OnceLock<libc::pthread_key_t> = OnceLock::new();

    /// The offset of the threads' own areas; 0 if they cannot have one.
    pub(super) fn offset() -> isize {
        if is_unwanted() || !is_main_program() {
            return 0;
        }
        let mut key = 0;
        // SAFETY: the key is this function's, and the destructor fits it.
        let error = unsafe { libc::pthread_key_create(&raw mut key, Some(end)) };
        if error == 0 && AT_END.set(key).is_err() {
            // SAFETY: nobody has this one.
            unsafe { libc::pthread_key_delete(key) };
        }
        // The system may refuse it, for example by seccomp.
        if !register() {
            return 0;
        }
        let area = OWN.with(|area| std::ptr::from_ref(area).addr());
        area.wrapping_sub(thread_pointer()) as isize
    }

    /// Registers this thread's own area; whether it is registered now.
    ///
    /// It does not do so in a signal handler that interrupted an add of this thread between arming its
    /// sequence and reading the CPU. That add would go on with a CPU that the system now says, and
    /// without protection: the adds of the handler have disarmed its sequence. Such an add is recognised by
    /// its descriptor, as adds leave the descriptor armed that was there before them, and nobody else
    /// writes to an area that is not registered.
    #[cold]
    pub(super) fn register() -> bool {
        OWN.with(|area| {
            let may_have_it = !area.has_ended.get() && area.armed.load(Relaxed) == 0;
            let Some(key) = AT_END.get().filter(|_| may_have_it) else { return false };
            let place = std::ptr::from_ref(area).cast::<c_void>();
            // SAFETY: the key was made and is never deleted. `end` takes the area of the thread in which
            // it runs, which is this one.
            let is_noted = unsafe { libc::pthread_setspecific(*key, place) } == 0;
            let error = if is_noted { call(area, 0) } else { libc::ENOMEM };
            // A signal handler's add may have registered it just now.
            let is_registered = matches!(error, 0 | libc::EBUSY);
            if !is_registered {
                area.cpu_id.store(REFUSED, Relaxed);
            }
            is_registered
        })
    }

    /// Ends a thread's registration before its memory is unmapped.
    unsafe extern "C" fn end(_: *mut c_void) {
        OWN.with(|area| {
            area.has_ended.set(true);
            call(area, UNREGISTER);
            area.cpu_id.store(REFUSED, Relaxed);
        });
    }

    /// The system's error, or 0.
    fn call(area: &Area, flags: i32) -> i32 {
        let place = std::ptr::from_ref(area);
        // SAFETY: the area is this thread's, is aligned and as long as the call says, and stays mapped
        // until the thread ends, before which `end` runs. A thread that ends without it (by the bare
        // system call) does not unmap its memory itself.
        let result = unsafe { libc::syscall(libc::SYS_rseq, place, AREA_LEN, flags, SIGNATURE) };
        if result == 0 {
            return 0;
        }
        std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL)
    }

    /// Whether the user has turned restartable sequences off, in glibc's way.
    fn is_unwanted() -> bool {
        let tunables = std::env::var_os("GLIBC_TUNABLES").unwrap_or_default();
        tunables.to_string_lossy().split(':').any(|tunable| tunable == "glibc.pthread.rseq=0")
    }

    /// Whether this code is in the main program and not in a library.
    fn is_main_program() -> bool {
        unsafe extern "C" fn look(
            object: *mut libc::dl_phdr_info,
            _: usize,
            found: *mut c_void,
        ) -> i32 {
            // SAFETY: the C library hands over an object that is loaded, with its program headers.
            let (object, headers) = unsafe {
                let object = &*object;
                (object, std::slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()))
            };
            // SAFETY: it asks for a number.
            let main = unsafe { libc::getauxval(libc::AT_PHDR) };
            if object.dlpi_phdr.addr() as u64 != main {
                return 0;
            }
            let place = (detect as fn() as usize as u64).wrapping_sub(object.dlpi_addr);
            let has_it = headers.iter().any(|header| {
                header.p_type == libc::PT_LOAD
                    && (header.p_vaddr..header.p_vaddr + header.p_memsz).contains(&place)
            });
            // SAFETY: `found` is the flag below, which nothing else uses meanwhile.
            unsafe { *found.cast::<bool>() = has_it };
            1
        }
        let mut found = false;
        // SAFETY: the function and its argument fit, and it does not unwind.
        unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut found).cast()) };
        found
    }
}
