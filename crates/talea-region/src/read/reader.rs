//! Reading a region from outside, without mapping it, as an agent does.
//!
//! A file that another process made may be damaged, hostile, or truncated at any time. So it is
//! read, never mapped (a page that is gone would raise SIGBUS, and touching a hole would allocate
//! it): each part once, up to its mark of use, into memory of this process, page by page at
//! page-aligned addresses. The copy cannot change any more.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use super::copy::{Copy, Pages};
use crate::error::OpenError;
use crate::files::descriptors::descriptor_of_process;
use crate::files::trust::kind_of;
use crate::header;
use crate::layout::*;
use crate::memory::mapping::Backing;
use crate::read::overview::{self, Overview};
use crate::snapshot::{self, FamilyCopy, Snapshot};
use crate::source::Source;

/// The purpose of a reader, for errors.
pub(crate) const DOING: &str = "read the region";

/// A region that is read from outside the processes that use it.
#[derive(Debug)]
pub struct Reader {
    locks: Backing,
    s: Sections,
    created_unix_nanos: u64,
    /// Whose file it must be, where that matters.
    pub(crate) owners: Option<Box<[u32]>>,
}

impl Reader {
    /// Opens the region in a file for reading. No symbolic link is followed.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is not a region of this boot and layout.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::with_flags(path.as_ref(), libc::O_NOFOLLOW)
    }

    /// Opens the memory region of a running process of the same user, the first
    /// that it has. It can be read also after the process has died.
    ///
    /// # Errors
    ///
    /// There is no such process, it may not be looked into, or it has no region.
    pub fn of_process(pid: u32) -> Result<Self, OpenError> {
        Self::with_flags(&descriptor_of_process(pid)?, 0)
    }

    fn with_flags(path: &Path, flags: libc::c_int) -> Result<Self, OpenError> {
        let options = &mut OpenOptions::new();
        let opened = options.read(true).custom_flags(flags | libc::O_NONBLOCK).open(path);
        let file = opened.map_err(in_words).map_err(OpenError::system(DOING, path))?;
        Self::of_file(path, file)
    }

    /// Makes a reader of a file that was opened for reading. `path` is its name in errors.
    pub(crate) fn of_file(path: &Path, file: File) -> Result<Self, OpenError> {
        let failed = OpenError::system(DOING, path);
        let metadata = file.metadata().map_err(&failed)?;
        if !metadata.is_file() {
            let found = format!("{}, not a regular file", kind_of(metadata.file_type()));
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, found)));
        }
        let mut header = Pages::default();
        let short = |_| failed(io::Error::new(io::ErrorKind::InvalidData, "shorter than a region"));
        file.read_exact_at(header.bytes(PAGE), 0).map_err(short)?;
        let word = |at: u64| header.words()[(at / WORD) as usize];
        let s = header::validate(word, metadata.len())
            .map_err(|reason| OpenError::Damaged { path: path.to_owned(), reason })?;
        let (locks, created_unix_nanos) =
            (Backing::read_only(file).map_err(failed)?, word(H_CREATED));
        Ok(Self { locks, s, created_unix_nanos, owners: None })
    }

    /// When the region was made, in nanoseconds since 1970.
    pub fn created_unix_nanos(&self) -> u64 {
        self.created_unix_nanos
    }

    /// Copies all values out. It costs the writers nothing, and works whatever
    /// they do: busy, stopped or dead.
    ///
    /// # Errors
    ///
    /// The file was cut, or claims to have more in use than it has.
    pub fn snapshot(&self) -> io::Result<Snapshot> {
        let mut snapshot = Snapshot::default();
        self.snapshot_into(&mut snapshot, &|_| true)?;
        Ok(snapshot)
    }

    /// Copies the values of the families that `wants` selects into a snapshot, whose memory is
    /// reused. Beside that it takes some hundred kilobytes, and the size of all cells in use if
    /// series have segments or exemplars or were wiped.
    ///
    /// # Errors
    ///
    /// As [`snapshot`](Self::snapshot); then `out` is incomplete.
    pub fn snapshot_into(
        &self,
        out: &mut Snapshot,
        wants: &dyn Fn(&FamilyCopy) -> bool,
    ) -> io::Result<()> {
        let copy = Copy::begin(&self.locks, &self.s, |_| Vec::new())?;
        snapshot::take(copy, wants, out)
    }

    /// Copies all values out, and returns them with the region's overview: its identity, how full
    /// it is, and the processes that have it open, all from one copy. Like
    /// [`snapshot`](Self::snapshot), it costs the writers nothing.
    ///
    /// # Errors
    ///
    /// As [`snapshot`](Self::snapshot); and marks with impossible values.
    pub fn look(&self) -> io::Result<(Overview, Snapshot)> {
        let mut copy = Copy::begin(&self.locks, &self.s, overview::bits)?;
        copy.load_all()?;
        header::check_marks(|at| copy.word(at), &self.s)
            .map_err(|reason| io::Error::new(io::ErrorKind::InvalidData, reason))?;
        let overview = overview::overview(&copy);
        let mut snapshot = Snapshot::default();
        snapshot::take(copy, &|_| true, &mut snapshot)?;
        Ok((overview, snapshot))
    }

    pub(crate) fn file(&self) -> &File {
        self.locks.file()
    }

    /// How long the file was when it was opened.
    pub(crate) fn len(&self) -> u64 {
        self.s.plane(self.s.plane_count)
    }
}

/// Rewords the system's error for a file that is not opened, if its text is hard to understand.
fn in_words(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::ELOOP) => io::Error::new(
            io::ErrorKind::InvalidInput,
            "a symbolic link, which is not followed; name the file that it leads to",
        ),
        Some(libc::ENXIO) => {
            io::Error::new(io::ErrorKind::InvalidInput, "a socket or a device, not a regular file")
        }
        _ => error,
    }
}

#[cfg(all(test, target_os = "linux", not(loom)))]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::config::Config;
    use crate::lookup::register::FamilySpec;
    use crate::region::Region;
    use crate::source::Windows;

    /// A copy that calls a function when its first window was read.
    struct Meddling<'a, F> {
        copy: Copy<'a>,
        meddle: Option<F>,
    }

    impl<'a, F: FnOnce()> Windows for Meddling<'a, F> {
        type Of = Copy<'a>;

        fn source(&self) -> &Copy<'a> {
            &self.copy
        }

        fn turn_to(&mut self, records: Range<u64>) -> io::Result<()> {
            self.copy.turn_to(records)?;
            self.meddle.take().into_iter().for_each(|meddle| meddle());
            Ok(())
        }

        fn read_families_again(&mut self) -> io::Result<()> {
            self.copy.read_families_again()
        }
    }

    #[test]
    fn a_series_whose_text_is_younger_than_the_copy_is_not_shown_without_it() {
        let path = format!("/dev/shm/talea-younger-{}", std::process::id());
        let region = Region::open(&path, Config::with_len(1 << 20)).unwrap().region;
        let reader = Reader::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let spec = FamilySpec { name: b"x", ..FamilySpec::default() };
        let family = region.family(spec).unwrap().family;
        // Its record is free again, and the next series gets it.
        assert!(family.series(b"a").is_ok() && family.remove(b"a"));
        (0..3).for_each(|_| region.sweep());
        let copy = Copy::begin(&reader.locks, &reader.s, |_| Vec::new()).unwrap();
        family.series(b"a text beyond all that were there").unwrap();
        let mut snapshot = Snapshot::default();
        snapshot::take(copy, &|_| true, &mut snapshot).unwrap();
        let texts: Vec<_> = snapshot.series(&snapshot.families()[0]).map(|one| one.text).collect();
        assert!(texts.is_empty(), "{texts:?}");
    }

    #[test]
    fn a_series_that_is_removed_and_made_again_meanwhile_is_shown_once() {
        // More than a window.
        const SERIES: u64 = 5_000;
        let path = format!("/dev/shm/talea-repeats-{}", std::process::id());
        let region = Region::open(&path, Config::with_len(4 << 20)).unwrap().region;
        let reader = Reader::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let spec = FamilySpec { name: b"x", limit: 2 * SERIES, ..FamilySpec::default() };
        let family = region.family(spec).unwrap().family;
        let add = |n: u64| family.series(n.to_string().as_bytes()).unwrap().at(0).add(n);
        (0..SERIES + 100).for_each(add);
        // The next series get these records.
        (SERIES..SERIES + 100).for_each(|n| assert!(family.remove(n.to_string().as_bytes())));
        (0..3).for_each(|_| region.sweep());
        let copy = Copy::begin(&reader.locks, &reader.s, |_| Vec::new()).unwrap();
        let meddle = || {
            assert!(family.remove(b"7"));
            add(7);
        };
        let (mut snapshot, meddle) = (Snapshot::default(), Some(meddle));
        snapshot::take(Meddling { copy, meddle }, &|_| true, &mut snapshot).unwrap();
        let all = snapshot.series(&snapshot.families()[0]);
        let sevens = all.filter(|series| series.text == b"7").count();
        assert_eq!((sevens, snapshot.families()[0].live_series), (1, SERIES));
    }
}
