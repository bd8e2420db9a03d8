//! The memory itself: mapped, never unmapped, reached one atomic word at a time.
//!
//! A mapping lives until the process ends. So a word of it can be borrowed for
//! `'static`, a handle is a plain pointer that copies for free, and neither a
//! signal handler nor a late thread can meet memory that is gone. What that
//! costs is address space for each region ever opened, and the pages that were
//! used in it.

use std::io;

use crate::primitive::AtomicU64;

#[cfg(all(target_os = "linux", not(loom)))]
pub(crate) use linux::Backing;
#[cfg(any(not(target_os = "linux"), loom))]
pub(crate) use portable::Backing;

/// A mapped region of memory.
#[derive(Debug)]
pub(crate) struct Mapping {
    words: &'static [AtomicU64],
    backing: Backing,
}

impl Mapping {
    /// Fresh zeroed memory of `len` bytes: on Linux a sealed memfd, which
    /// children made by `fork` share; elsewhere the process's own heap.
    pub(crate) fn anonymous(len: u64) -> io::Result<Self> {
        let (backing, words) = Backing::anonymous(len)?;
        Ok(Self { words, backing })
    }

    pub(crate) fn len(&self) -> u64 {
        self.words.len() as u64 * 8
    }

    /// The word at a byte offset; `None` where the offset is not a multiple
    /// of 8 or lies outside.
    #[inline]
    pub(crate) fn word(&self, at: u64) -> Option<&'static AtomicU64> {
        if at % 8 == 0 { self.words.get((at / 8) as usize) } else { None }
    }

    /// `count` words from a byte offset on.
    pub(crate) fn words(&self, at: u64, count: u64) -> Option<&'static [AtomicU64]> {
        if at % 8 != 0 {
            return None;
        }
        let first = (at / 8) as usize;
        self.words.get(first..first.checked_add(count as usize)?)
    }

    /// The byte offset of a word of this mapping.
    #[inline]
    pub(crate) fn offset_of(&self, word: &'static AtomicU64) -> Option<u64> {
        let from = (word as *const AtomicU64 as usize).checked_sub(self.words.as_ptr() as usize)?;
        // Bytes of the region: a model checker's words are larger.
        let from = (from / size_of::<AtomicU64>() * 8) as u64;
        (from < self.len()).then_some(from)
    }

    /// Makes sure that the bytes from `at` on have pages, so that touching them
    /// cannot raise SIGBUS.
    pub(crate) fn back(&self, at: u64, len: u64) -> io::Result<()> {
        self.backing.back(at, len)
    }

    /// What holds the memory.
    pub(crate) fn backing(&self) -> &Backing {
        &self.backing
    }
}

/// Words of a cache line.
pub(crate) const LINE_WORDS: usize = 8;

/// So many zeroed cache lines that no other process sees, never given back; `None`
/// where there is no memory. On Linux they have pages once they are used.
pub(crate) fn own_lines(lines: u64) -> Option<&'static [[AtomicU64; LINE_WORDS]]> {
    let bytes =
        (lines as usize).checked_mul(size_of::<[u64; LINE_WORDS]>()).filter(|&len| len > 0)?;
    #[cfg(loom)]
    return Some(Vec::leak(
        (0..bytes / 64).map(|_| std::array::from_fn(|_| AtomicU64::new(0))).collect(),
    ));
    #[cfg(not(loom))]
    {
        let base = own_bytes(bytes)?;
        // SAFETY: the memory is fresh, zeroed, aligned to a page, as long as these
        // lines, and never given back; an atomic may hold any bits.
        Some(unsafe { std::slice::from_raw_parts(base.cast(), lines as usize) })
    }
}

#[cfg(all(target_os = "linux", not(loom)))]
mod linux {
    use super::*;
    use std::fs::{File, OpenOptions};
    use std::os::fd::{AsRawFd, FromRawFd};
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
    use std::path::Path;

    /// Slots are locked by one byte each, far beyond the end of any region, so
    /// that a lock never covers data.
    const LOCKS_AT: i64 = 1 << 48;

    #[derive(Debug)]
    pub(crate) struct Backing {
        file: File,
    }

    impl Backing {
        /// What holds a region that is only read.
        pub(crate) fn of(file: File) -> Self {
            Self { file }
        }

        pub(crate) fn file(&self) -> &File {
            &self.file
        }

        /// Puts an opening of its own in place of the one that this process
        /// shares with the parent that it was forked from: locks belong to the
        /// opening, and the parent's must end with the parent. Safe to call
        /// between `fork` and `exec`.
        pub(crate) fn reopen(&self) -> bool {
            let inherited = self.file.as_raw_fd();
            // "/proc/self/fd/" and a number, built without allocating.
            let mut path = *b"/proc/self/fd/\0\0\0\0\0\0\0\0\0\0\0";
            let digits = (1..10).find(|&n| inherited < 10_i32.pow(n)).unwrap_or(10) as usize;
            let mut rest = inherited;
            for at in (14..14 + digits).rev() {
                path[at] = b'0' + (rest % 10) as u8;
                rest /= 10;
            }
            // SAFETY: the path is NUL-terminated and lives through the call; the
            // other calls have integers only. `self.file` goes on owning the same
            // descriptor, which then names the new opening.
            unsafe {
                let own = libc::open(path.as_ptr().cast(), libc::O_RDWR | libc::O_CLOEXEC);
                if own < 0 {
                    return false;
                }
                let replaced = libc::dup3(own, inherited, libc::O_CLOEXEC) >= 0;
                libc::close(own);
                replaced
            }
        }

        pub(super) fn anonymous(len: u64) -> io::Result<(Self, &'static [AtomicU64])> {
            // SAFETY: the name is a NUL-terminated literal; the result is checked.
            let fd = unsafe {
                libc::memfd_create(c"talea".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING)
            };
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            // SAFETY: `fd` was just made and nobody else owns it.
            let file = unsafe { File::from_raw_fd(fd) };
            file.set_len(len)?;
            let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
            // SAFETY: a call on an open descriptor with integers only.
            if unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, seals) } < 0 {
                return Err(io::Error::last_os_error());
            }
            let words = map(&file, len)?;
            Ok((Self { file }, words))
        }

        pub(super) fn back(&self, at: u64, len: u64) -> io::Result<()> {
            loop {
                // SAFETY: a call on an open descriptor with integers only.
                let told = unsafe {
                    libc::fallocate(self.file.as_raw_fd(), 0, at as libc::off_t, len as libc::off_t)
                };
                if told == 0 {
                    return Ok(());
                }
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }

        /// Locks the byte of process slot `slot`; false where somebody holds it.
        /// The kernel lets go when the last descriptor of this opening is
        /// closed, so also at death. (It waits while a child holds it that was
        /// made by `fork` and has not begun to run.)
        pub(crate) fn lock_slot(&self, slot: u64) -> io::Result<bool> {
            let lock = flock(libc::F_WRLCK, LOCKS_AT + slot as i64, 1);
            // SAFETY: `lock` is a valid flock for the length of the call.
            if unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_OFD_SETLK, &lock) } == 0 {
                return Ok(true);
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EACCES) => Ok(false),
                _ => Err(error),
            }
        }

        /// Whether another opening holds the byte of any of `slots`.
        pub(crate) fn others_hold(&self, slots: std::ops::Range<u64>) -> io::Result<bool> {
            let count = slots.end - slots.start;
            let mut lock = flock(libc::F_WRLCK, LOCKS_AT + slots.start as i64, count as i64);
            // SAFETY: `lock` is a valid flock that the kernel may write to.
            if unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_OFD_GETLK, &mut lock) } < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(i32::from(lock.l_type) != libc::F_UNLCK)
        }

        /// Gives a file made by [`Mapping::unnamed`] its name; fails with
        /// `AlreadyExists` where the name is taken.
        pub(crate) fn publish(&self, path: &Path) -> io::Result<()> {
            let from = std::ffi::CString::new(format!("/proc/self/fd/{}", self.file.as_raw_fd()))?;
            let to = std::ffi::CString::new(path.as_os_str().as_bytes())?;
            // SAFETY: both are NUL-terminated and live through the call.
            let told = unsafe {
                libc::linkat(
                    libc::AT_FDCWD,
                    from.as_ptr(),
                    libc::AT_FDCWD,
                    to.as_ptr(),
                    libc::AT_SYMLINK_FOLLOW,
                )
            };
            if told == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
        }
    }

    impl Mapping {
        /// `len` zeroed bytes of a file that [`unnamed`] made.
        pub(crate) fn fresh(file: File, len: u64) -> io::Result<Self> {
            file.set_len(len)?;
            let words = map(&file, len)?;
            Ok(Self { words, backing: Backing { file } })
        }

        /// Maps an existing file; it must be a regular file of whole pages, and no
        /// symbolic link.
        pub(crate) fn existing(path: &Path) -> io::Result<Self> {
            Self::existing_with(path, libc::O_NOFOLLOW)
        }

        /// Maps what a descriptor of a process refers to, which is a link in `/proc`.
        pub(crate) fn of_descriptor(path: &Path) -> io::Result<Self> {
            Self::existing_with(path, 0)
        }

        fn existing_with(path: &Path, flags: libc::c_int) -> io::Result<Self> {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .custom_flags(flags | libc::O_NONBLOCK)
                .open(path)?;
            let meta = file.metadata()?;
            if !meta.is_file() {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
            }
            let len = meta.len();
            if len < crate::layout::MIN_LEN || len % crate::layout::PAGE != 0 {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("{len} bytes long, which no region is"),
                ));
            }
            let words = map(&file, len)?;
            Ok(Self { words, backing: Backing { file } })
        }
    }

    /// An empty file in `directory` that has no name yet, so that nobody can open it
    /// half made or before it has its mode.
    pub(crate) fn unnamed(directory: &Path) -> io::Result<File> {
        OpenOptions::new()
            .read(true)
            .write(true)
            .mode(0o600)
            .custom_flags(libc::O_TMPFILE)
            .open(directory)
    }

    /// Runs `work` while nobody else does so over the same file; `None` where the
    /// path names no file, or meanwhile names another.
    pub(crate) fn alone_with<T>(path: &Path, work: impl FnOnce() -> T) -> io::Result<Option<T>> {
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(path);
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        // SAFETY: a call on an open descriptor with integers only. The lock goes
        // when the file is closed, at the end of this function or of the process.
        while unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) } < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        let (locked, named) = (file.metadata()?, std::fs::symlink_metadata(path));
        let same =
            named.is_ok_and(|named| named.dev() == locked.dev() && named.ino() == locked.ino());
        Ok(same.then(work))
    }

    /// Whether `directory` is on tmpfs, where a written page stays in memory.
    pub(crate) fn is_tmpfs(directory: &Path) -> io::Result<bool> {
        let path = std::ffi::CString::new(directory.as_os_str().as_bytes())?;
        // SAFETY: statfs is plain integers, for which zero is a valid value.
        let mut told: libc::statfs = unsafe { std::mem::zeroed() };
        // SAFETY: the path is NUL-terminated, the result is ours to write.
        if unsafe { libc::statfs(path.as_ptr(), &mut told) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(told.f_type as i64 == libc::TMPFS_MAGIC)
    }

    fn flock(kind: libc::c_int, start: i64, len: i64) -> libc::flock {
        // SAFETY: flock is plain integers, for which zero is a valid value.
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        lock.l_type = kind as _;
        lock.l_whence = libc::SEEK_SET as _;
        lock.l_start = start as _;
        lock.l_len = len as _;
        lock
    }

    /// Memory of this process: zeroed pages, which are there once they are touched.
    pub(crate) fn own_bytes(len: usize) -> Option<*const u8> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh mapping at an address of the kernel's choice touches no
        // memory of ours.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), len, access, flags, -1, 0) };
        (base != libc::MAP_FAILED).then_some(base.cast_const().cast())
    }

    fn map(file: &File, len: u64) -> io::Result<&'static [AtomicU64]> {
        // SAFETY: a fresh shared mapping at an address of the kernel's choice
        // touches no memory of ours.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the mapping is page-aligned, `len` bytes long, readable and
        // writable, never unmapped, and reached only through these atomics (or
        // by restartable sequences, which the compiler sees as opaque). Other
        // processes may write to it at any time, which atomics allow.
        Ok(unsafe { std::slice::from_raw_parts(base.cast(), (len / 8) as usize) })
    }
}

#[cfg(all(target_os = "linux", not(loom)))]
use linux::own_bytes;
#[cfg(all(target_os = "linux", not(loom)))]
pub(crate) use linux::{alone_with, is_tmpfs, unnamed};
#[cfg(not(any(target_os = "linux", loom)))]
use portable::own_bytes;

#[cfg(any(test, not(target_os = "linux"), loom))]
mod portable {
    use super::*;
    #[cfg(not(loom))]
    use std::alloc::{Layout, alloc_zeroed};

    /// Memory of this process: zeroed, from the heap.
    #[cfg(not(loom))]
    pub(crate) fn own_bytes(len: usize) -> Option<*const u8> {
        let layout = Layout::from_size_align(len, 4096).ok().filter(|layout| layout.size() > 0)?;
        // SAFETY: the layout's size is not zero.
        let base = unsafe { alloc_zeroed(layout) };
        (!base.is_null()).then_some(base.cast_const())
    }

    /// Memory of this process alone: all of it is there from the start.
    #[derive(Debug)]
    #[cfg_attr(target_os = "linux", allow(dead_code))]
    pub(crate) struct Backing;

    #[cfg_attr(target_os = "linux", allow(dead_code))]
    impl Backing {
        #[cfg(loom)]
        pub(super) fn anonymous(len: u64) -> io::Result<(Self, &'static [AtomicU64])> {
            Ok((Self, Vec::leak((0..len / 8).map(|_| AtomicU64::new(0)).collect())))
        }

        #[cfg(not(loom))]
        pub(super) fn anonymous(len: u64) -> io::Result<(Self, &'static [AtomicU64])> {
            let base = own_bytes(len as usize).ok_or(io::ErrorKind::OutOfMemory)?;
            // SAFETY: fresh, zeroed, aligned memory of this length that is never
            // freed; an atomic may hold any bits.
            let words = unsafe { std::slice::from_raw_parts(base.cast(), (len / 8) as usize) };
            Ok((Self, words))
        }

        pub(super) fn back(&self, _at: u64, _len: u64) -> io::Result<()> {
            Ok(())
        }

        pub(crate) fn lock_slot(&self, _slot: u64) -> io::Result<bool> {
            Ok(true)
        }

        pub(crate) fn others_hold(&self, _slots: std::ops::Range<u64>) -> io::Result<bool> {
            Ok(false)
        }
    }

    #[cfg(all(test, not(loom)))]
    mod tests {
        use super::*;

        #[test]
        fn heap_memory_comes_zeroed_and_whole() {
            let (backing, words) = Backing::anonymous(1 << 20).unwrap();
            backing.back(0, 1 << 20).unwrap();
            assert_eq!(words.len(), 1 << 17);
            assert_eq!(words[words.len() - 1].load(std::sync::atomic::Ordering::Relaxed), 0);
        }
    }
}
