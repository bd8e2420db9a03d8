//! Mapped memory: never unmapped, and accessed one atomic word at a time.
//!
//! A mapping lives until the process ends. So a word of it can be borrowed for `'static`, a handle
//! is a plain pointer that copies for free, and neither a signal handler nor a late thread can
//! access unmapped memory. The cost is address space for each region ever opened, and the pages
//! that were used in it.

use std::io;

use crate::layout::WORD;
use crate::primitive::{AtomicU64, Word, Words};

#[cfg(all(target_os = "linux", not(loom)))]
pub(crate) use linux::Backing;
#[cfg(any(not(target_os = "linux"), loom))]
pub(crate) use portable::Backing;

/// A mapped region of memory.
#[derive(Debug)]
pub(crate) struct Mapping {
    words: Words,
    backing: Backing,
}

impl Mapping {
    /// Maps `len` bytes of what backs them.
    pub(crate) fn of(backing: Backing, len: u64) -> io::Result<Self> {
        Ok(Self { words: backing.map(len)?, backing })
    }

    pub(crate) fn len(&self) -> u64 {
        self.words.len() as u64 * 8
    }

    /// The word at a byte offset; `None` where the offset is not a multiple
    /// of 8 or lies outside.
    #[inline]
    pub(crate) fn word(&self, at: u64) -> Option<Word> {
        if at % 8 == 0 { self.words.get((at / 8) as usize) } else { None }
    }

    /// `count` words from a byte offset on.
    pub(crate) fn words(&self, at: u64, count: u64) -> Option<Words> {
        if at % 8 != 0 {
            return None;
        }
        let first = (at / 8) as usize;
        self.words.get(first..first.checked_add(count as usize)?)
    }

    /// The byte offset of a word of this mapping.
    #[inline]
    pub(crate) fn offset_of(&self, word: Word) -> Option<u64> {
        let from = (word as *const AtomicU64 as usize).checked_sub(self.words.as_ptr() as usize)?;
        // Bytes of the region: a model checker's words are larger.
        let from = (from / size_of::<AtomicU64>() * 8) as u64;
        (from < self.len()).then_some(from)
    }

    /// See [`Backing::back`].
    pub(crate) fn back(&self, at: u64, len: u64) -> io::Result<()> {
        self.backing.back(at, len)
    }

    /// Panics if a word lies in a page that was never backed.
    #[cfg(loom)]
    pub(crate) fn assert_backed(&self, word: Word) {
        let page = self.offset_of(word).unwrap_or(0) / crate::layout::PAGE;
        assert!(self.backing.has_backed(page), "page {page} has no memory");
    }

    /// The file that backs the memory.
    pub(crate) fn backing(&self) -> &Backing {
        &self.backing
    }
}

/// The words of a part of the region, by their place in the region.
#[derive(Clone, Copy)]
pub(crate) struct PoolWords {
    first: u64,
    words: Words,
}

impl PoolWords {
    pub(crate) fn of(map: &Mapping, at: u64, len: u64) -> Self {
        let words = map.words(at, len / WORD);
        debug_assert!(words.is_some(), "a section at {at} of {len} bytes is outside the region");
        Self { first: at / WORD, words: words.unwrap_or(&[]) }
    }

    /// The word that is `n` behind a place; `None` where it is no word of the part.
    #[inline(always)]
    pub(crate) fn word(&self, place: u64, n: u64) -> Option<Word> {
        let from_first = place.wrapping_sub(self.first).wrapping_add(n);
        self.words.get(usize::try_from(from_first).ok()?)
    }
}

#[cfg(all(test, target_os = "linux", not(loom)))]
std::thread_local! {
    /// How often this thread was refused pages, while it is refused any.
    static REFUSED: std::cell::Cell<Option<u64>> = const { std::cell::Cell::new(None) };
}

/// Runs a test as on a tmpfs that is full: this thread is refused all pages, and asks how often it
/// was so far.
#[cfg(all(test, target_os = "linux", not(loom), not(miri)))]
pub(crate) fn refused_calls<T>(work: impl FnOnce(&dyn Fn() -> u64) -> T) -> T {
    REFUSED.set(Some(0));
    let done = work(&|| REFUSED.get().unwrap_or(0));
    REFUSED.set(None);
    done
}

#[cfg(all(test, target_os = "linux", not(loom)))]
fn is_refused() -> bool {
    REFUSED.set(REFUSED.get().map(|calls| calls + 1));
    REFUSED.get().is_some()
}

pub(crate) const LINE_WORDS: usize = 8;

/// Zeroed cache lines that no other process sees, never given back; `None` if there is no
/// memory. On Linux they have pages once they are used.
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
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    /// Slots are locked by one byte each, far beyond the end of any region, so
    /// that a lock never covers data.
    const LOCKS_AT: i64 = 1 << 48;

    /// The seals of a region in memory: its length can no longer change.
    pub(crate) const SEALS: libc::c_int =
        libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

    /// The file that backs the memory, and the locks that show which processes live.
    ///
    /// A lock belongs to an open file description, and ends with the last reference to it. A
    /// mapping refers to the description that it was made from, also in children made by `fork`, as
    /// long as they live. So the locks have a description of their own, which is never mapped, and
    /// which a child replaces by one of its own.
    #[derive(Debug)]
    pub(crate) struct Backing {
        file: File,
        /// The device and the inode of the file. A program may have closed our descriptors, as
        /// some do that become daemons, and have others with the same numbers now.
        identity: (u64, u64),
        locks: Option<File>,
        /// Whether `locks` is an opening that no other process has. If none could be had, slots are
        /// locked for the process as such (`F_SETLK`), which ends when the process closes any
        /// descriptor of the file.
        has_own_locks: AtomicBool,
        is_closed: AtomicBool,
    }

    impl Backing {
        /// The backing of a region that is only read, and in which nothing is locked.
        pub(crate) fn read_only(file: File) -> io::Result<Self> {
            let meta = file.metadata()?;
            let identity = (meta.dev(), meta.ino());
            let (locks, has_own_locks, is_closed) = Default::default();
            Ok(Self { file, identity, locks, has_own_locks, is_closed })
        }

        fn of(file: File) -> io::Result<Self> {
            let locks = open_again(&file).ok();
            let has_own_locks = AtomicBool::new(locks.is_some());
            Ok(Self { locks, has_own_locks, ..Self::read_only(file)? })
        }

        pub(crate) fn file(&self) -> &File {
            &self.file
        }

        /// Replaces the open file description that this process shares with its parent by one of
        /// its own: the parent's locks must end with the parent. If it cannot be opened (no
        /// permission, no /proc, no descriptor left), the process does without. Safe to call
        /// between `fork` and `exec`.
        ///
        /// False if our descriptors are not ours any more; nothing can be locked then.
        pub(crate) fn leave_parent(&self) -> bool {
            let all = [Some(&self.file), self.locks.as_ref()];
            if self.is_closed.load(Relaxed)
                || !all.into_iter().flatten().all(|file| self.is_ours(file))
            {
                return false;
            }
            let Some(locks) = &self.locks else { return true };
            let [inherited, mapped] = [locks, &self.file].map(AsRawFd::as_raw_fd);
            // SAFETY: the path is NUL-terminated and lives through the call; the other calls have
            // integers only. `self.locks` goes on owning the same descriptor, which then names
            // another opening.
            unsafe {
                let flags = libc::O_RDWR | libc::O_CLOEXEC;
                let own = libc::open(path_of(mapped).as_ptr().cast(), flags);
                self.has_own_locks.store(own >= 0, Relaxed);
                // The opening that is mapped has no locks, so it may be shared.
                let other = if own < 0 { mapped } else { own };
                let replaced = libc::dup3(other, inherited, libc::O_CLOEXEC) >= 0;
                if own >= 0 {
                    libc::close(own);
                }
                replaced
            }
        }

        /// Closes the descriptors of a region that this process uses no more: its slot is free then, and
        /// memory that has no pages yet gets none. With `clears`, all pages go too, and the memory is
        /// zero.
        pub(crate) fn close(&self, clears: Option<u64>) {
            if self.is_closed.swap(true, Relaxed) || !self.is_ours(&self.file) {
                return;
            }
            let how = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
            for file in [Some(&self.file), self.locks.as_ref()].into_iter().flatten() {
                let fd = file.as_raw_fd();
                // SAFETY: calls with integers. Nobody closes the descriptors again: a region is never
                // dropped. Each use looks first whether they are closed.
                unsafe {
                    if let Some(len) = clears {
                        libc::fallocate(fd, how, 0, len as libc::off_t);
                    }
                    libc::close(fd);
                }
            }
        }

        /// Whether a descriptor still names the file of this region. Cost: a call of the system.
        fn is_ours(&self, file: &File) -> bool {
            // SAFETY: stat is plain integers, for which zero is a valid value.
            let mut found: libc::stat = unsafe { std::mem::zeroed() };
            // SAFETY: a call with an integer, whose result is ours to write.
            let is_open = unsafe { libc::fstat(file.as_raw_fd(), &mut found) } == 0;
            is_open && (found.st_dev, found.st_ino) == self.identity
        }

        /// Fresh zeroed memory: a sealed memfd, which children made by `fork` share.
        pub(crate) fn anonymous(len: u64) -> io::Result<Self> {
            let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
            // SAFETY: the name is a NUL-terminated literal; the result is checked.
            let fd = checked(unsafe { libc::memfd_create(c"talea".as_ptr(), flags) })?;
            // SAFETY: `fd` was just made and nobody else owns it.
            let file = unsafe { File::from_raw_fd(fd) };
            set_len(&file, len)?;
            // SAFETY: a call on an open descriptor with integers only.
            checked(unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, SEALS) })?;
            Self::of(file)
        }

        /// `len` zeroed bytes of a file that has no name yet.
        pub(crate) fn fresh(file: File, len: u64) -> io::Result<Self> {
            set_len(&file, len)?;
            Self::of(file)
        }

        pub(super) fn map(&self, len: u64) -> io::Result<Words> {
            let (access, fd) = (libc::PROT_READ | libc::PROT_WRITE, self.file.as_raw_fd());
            let (anywhere, shared) = (std::ptr::null_mut(), libc::MAP_SHARED);
            // SAFETY: a fresh shared mapping at an address of the kernel's choice
            // touches no memory of ours.
            let base = unsafe { libc::mmap(anywhere, len as usize, access, shared, fd, 0) };
            if base == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            // SAFETY: the mapping is page-aligned, `len` bytes long, readable and
            // writable, never unmapped, and reached only through these atomics (or
            // by restartable sequences, which the compiler sees as opaque). Other
            // processes may write to it at any time, which atomics allow.
            Ok(unsafe { std::slice::from_raw_parts(base.cast(), (len / 8) as usize) })
        }

        /// Makes sure that the bytes from `at` on have pages, so that touching them
        /// cannot raise SIGBUS.
        pub(crate) fn back(&self, at: u64, len: u64) -> io::Result<()> {
            #[cfg(test)]
            if super::is_refused() {
                return Err(io::ErrorKind::StorageFull.into());
            }
            if self.is_closed.load(Relaxed) || !self.is_ours(&self.file) {
                return Err(io::ErrorKind::NotFound.into());
            }
            let (fd, at, len) = (self.file.as_raw_fd(), at as libc::off_t, len as libc::off_t);
            loop {
                // SAFETY: a call on an open descriptor with integers only.
                match checked(unsafe { libc::fallocate(fd, 0, at, len) }) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    done => return done.map(|_| ()),
                }
            }
        }

        /// Locks the byte of process slot `slot`; false if another process holds it. The kernel
        /// releases the lock when the process ends in any way. (It waits while a child that `fork`
        /// made holds the description and has not begun to run.)
        pub(crate) fn lock_slot(&self, slot: u64) -> io::Result<bool> {
            let lock = flock(libc::F_WRLCK, LOCKS_AT + slot as i64, 1);
            let command = match self.has_own_locks.load(Relaxed) {
                true => libc::F_OFD_SETLK,
                // A process does not conflict with its own lock, which another opening of this
                // region may hold.
                false if self.others_hold(slot..slot + 1)? => return Ok(false),
                false => libc::F_SETLK,
            };
            let file = self.locks.as_ref().unwrap_or(&self.file);
            // SAFETY: `lock` is a valid flock for the length of the call.
            let locked = checked(unsafe { libc::fcntl(file.as_raw_fd(), command, &lock) });
            match locked.as_ref().map_err(io::Error::raw_os_error) {
                Err(Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
                _ => locked.map(|_| true),
            }
        }

        /// Whether another opening, or a process as such, holds the byte of any of `slots`.
        pub(crate) fn others_hold(&self, slots: std::ops::Range<u64>) -> io::Result<bool> {
            if self.is_closed.load(Relaxed) {
                return Err(io::ErrorKind::NotFound.into());
            }
            others_hold(self.locks.as_ref().unwrap_or(&self.file), slots)
        }

        /// Gives a file that has no name yet its name; fails with
        /// `AlreadyExists` where the name is taken.
        pub(crate) fn publish(&self, path: &Path) -> io::Result<()> {
            let from = std::ffi::CString::new(format!("/proc/self/fd/{}", self.file.as_raw_fd()))?;
            let to = std::ffi::CString::new(path.as_os_str().as_bytes())?;
            let (here, flags) = (libc::AT_FDCWD, libc::AT_SYMLINK_FOLLOW);
            // SAFETY: both are NUL-terminated and live through the call.
            let linked = unsafe { libc::linkat(here, from.as_ptr(), here, to.as_ptr(), flags) };
            checked(linked).map(|_| ())
        }
    }

    /// The result of a call of the system that returns -1 for an error.
    pub(crate) fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
    }

    /// Whether a process holds the byte of any of `slots` of a region, other than by this open file
    /// description.
    pub(crate) fn others_hold(file: &File, slots: std::ops::Range<u64>) -> io::Result<bool> {
        let count = slots.end - slots.start;
        let mut lock = flock(libc::F_WRLCK, LOCKS_AT + slots.start as i64, count as i64);
        // SAFETY: `lock` is a valid flock that the kernel may write to.
        checked(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &mut lock) })?;
        Ok(i32::from(lock.l_type) != libc::F_UNLCK)
    }

    /// How long a file is; `InvalidData` if no region is as long.
    pub(crate) fn region_len(file: &File) -> io::Result<u64> {
        let len = file.metadata()?.len();
        if len < crate::layout::MIN_LEN || len % crate::layout::PAGE != 0 {
            let found = format!("{len} bytes long, which no region is");
            return Err(io::Error::new(io::ErrorKind::InvalidData, found));
        }
        Ok(len)
    }

    impl Mapping {
        /// Maps a file that is open, if it is as long as a region can be.
        pub(crate) fn existing(file: File) -> io::Result<Self> {
            let len = region_len(&file)?;
            Self::of(Backing::of(file)?, len)
        }
    }

    /// Another opening of a file.
    fn open_again(file: &File) -> io::Result<File> {
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        OpenOptions::new().read(true).write(true).open(path)
    }

    /// "/proc/self/fd/" and a number, ended by NUL, built without allocating.
    fn path_of(fd: libc::c_int) -> [u8; 25] {
        let mut path = *b"/proc/self/fd/\0\0\0\0\0\0\0\0\0\0\0";
        let digits = (1..10).find(|&n| fd < 10_i32.pow(n)).unwrap_or(10) as usize;
        let mut rest = fd;
        for at in (14..14 + digits).rev() {
            path[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        path
    }

    /// Makes a file as long as a region. A process that may not make such a file would get a
    /// signal (SIGXFSZ), which ends it.
    fn set_len(file: &File, len: u64) -> io::Result<()> {
        if let Some(limit) = longest_file().filter(|&limit| limit < len) {
            let reason = format!(
                "{len} bytes are more than a file of this process may have, {limit} (ulimit -f, \
                 RLIMIT_FSIZE); raise that limit or ask for fewer bytes"
            );
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, reason));
        }
        file.set_len(len)
    }

    /// How long a file may get that this process makes longer, if there is a limit.
    pub(crate) fn longest_file() -> Option<u64> {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the result is ours to write.
        let is_known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } == 0;
        (is_known && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
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
}

#[cfg(all(target_os = "linux", not(loom)))]
use linux::own_bytes;
#[cfg(all(target_os = "linux", not(loom)))]
pub(crate) use linux::{SEALS, checked, longest_file, others_hold, region_len};
#[cfg(not(any(target_os = "linux", loom)))]
use portable::own_bytes;

/// How long a file may get that this process makes longer: there are no files.
#[cfg(not(all(target_os = "linux", not(loom))))]
pub(crate) fn longest_file() -> Option<u64> {
    None
}

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
    #[derive(Debug, Default)]
    #[cfg_attr(target_os = "linux", allow(dead_code))]
    pub(crate) struct Backing {
        /// The pages that were asked for, so that models notice one that was not. (No word of the
        /// checker's: to look at it is no event.)
        #[cfg(loom)]
        pages: std::sync::Mutex<std::collections::BTreeSet<u64>>,
    }

    #[cfg_attr(target_os = "linux", allow(dead_code))]
    impl Backing {
        /// There are no descriptors.
        pub(crate) fn close(&self, _clears: Option<u64>) {}

        /// Fresh zeroed memory of the process's own heap.
        pub(crate) fn anonymous(_len: u64) -> io::Result<Self> {
            Ok(Self::default())
        }

        #[cfg(loom)]
        pub(super) fn map(&self, len: u64) -> io::Result<Words> {
            Ok(Vec::leak((0..len / 8).map(|_| AtomicU64::new(0)).collect()))
        }

        #[cfg(loom)]
        pub(super) fn has_backed(&self, page: u64) -> bool {
            self.pages.lock().unwrap().contains(&page)
        }

        #[cfg(loom)]
        pub(crate) fn back(&self, at: u64, len: u64) -> io::Result<()> {
            use crate::layout::PAGE;
            self.pages.lock().unwrap().extend(at / PAGE..(at + len).div_ceil(PAGE));
            Ok(())
        }

        #[cfg(not(loom))]
        pub(super) fn map(&self, len: u64) -> io::Result<Words> {
            let base = own_bytes(len as usize).ok_or(io::ErrorKind::OutOfMemory)?;
            // SAFETY: fresh, zeroed, aligned memory of this length that is never
            // freed; an atomic may hold any bits.
            Ok(unsafe { std::slice::from_raw_parts(base.cast(), (len / 8) as usize) })
        }

        #[cfg(not(loom))]
        pub(crate) fn back(&self, _at: u64, _len: u64) -> io::Result<()> {
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
            let backing = Backing::anonymous(1 << 20).unwrap();
            backing.back(0, 1 << 20).unwrap();
            let words = backing.map(1 << 20).unwrap();
            assert_eq!(words.len(), 1 << 17);
            assert_eq!(words[words.len() - 1].load(std::sync::atomic::Ordering::Relaxed), 0);
        }
    }
}
