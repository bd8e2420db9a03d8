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
    /// The users of whom one must own the file, where that matters.
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
        if file.read_exact_at(header.bytes(PAGE), 0).is_err() {
            let short = io::Error::new(io::ErrorKind::InvalidData, "shorter than a region");
            return Err(failed(short));
        }
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
    /// reused. Beside that it takes some hundred kilobytes, the size of all cells in use if
    /// series have segments or exemplars or were wiped, and 8 bytes for each series if memory of
    /// removed ones is given back meanwhile. Series that are made meanwhile may be left out.
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
        self.s.end()
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
    use crate::series::family::Family;
    use crate::source::Windows;
    use crate::testing::Random;
    use crate::values::Storage;

    /// A copy that calls a function before and after each window is read.
    struct Meddling<'a, F> {
        copy: Copy<'a>,
        meddle: F,
    }

    impl<'a, F: FnMut()> Windows for Meddling<'a, F> {
        type Of = Copy<'a>;

        fn source(&self) -> &Copy<'a> {
            &self.copy
        }

        fn turn_to(&mut self, records: Range<u64>) -> io::Result<()> {
            (self.meddle)();
            self.copy.turn_to(records)?;
            (self.meddle)();
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
        let mut calls = 0;
        let meddling = Meddling {
            copy,
            meddle: || {
                calls += 1;
                if calls == 2 {
                    assert!(family.remove(b"7"));
                    add(7);
                }
            },
        };
        let mut snapshot = Snapshot::default();
        snapshot::take(meddling, &|_| true, &mut snapshot).unwrap();
        let all = snapshot.series(&snapshot.families()[0]);
        let sevens = all.filter(|series| series.text == b"7").count();
        assert_eq!((sevens, snapshot.families()[0].live_series), (1, SERIES));
    }

    /// Series that come and go. The value of each is its number, which its text has at both ends.
    struct Churn {
        region: &'static Region,
        family: Family,
        random: Random,
        texts: Vec<String>,
        number: u64,
    }

    impl Churn {
        fn add(&mut self, longest: u64) {
            self.number += 1;
            let [number, len] = [self.number, 1 + self.random.below(longest)];
            let text = format!("{number}{}{number}", "-".repeat(len as usize));
            self.family.series(text.as_bytes()).unwrap().at(0).add(number);
            self.texts.push(text);
        }

        fn remove(&mut self, n: usize) {
            assert!(self.family.remove(self.texts.swap_remove(n).as_bytes()));
        }

        /// Gives all back that was removed: no more comes back while series are made.
        fn settle(&self) {
            (0..3).for_each(|_| self.region.sweep());
        }

        /// Of ten changes, so many are removals.
        fn change(&mut self, changes: u64, removals: u64) {
            for _ in 0..changes {
                match self.random.below(10) < removals {
                    true => self.remove(self.random.0 as usize % self.texts.len()),
                    false => self.add(400),
                }
            }
        }

        /// Removes all of these numbers.
        fn remove_all(&mut self, which: impl Fn(u64) -> bool) {
            self.texts.retain(|text| {
                let number = text.split_once('-').unwrap().0.parse().unwrap();
                !which(number) || !self.family.remove(text.as_bytes())
            });
            self.settle();
        }

        /// A window of records whose texts are far apart, and another one that has room.
        fn scatter(&mut self) {
            (0..4_500).for_each(|_| self.add(400));
            self.remove_all(|number| number < 4_096 && number % 100 != 0);
            (0..4_055).for_each(|_| self.add(1));
            self.remove_all(|number| (4_100..4_500).contains(&number));
        }
    }

    #[test]
    fn a_copy_shows_no_series_with_the_text_or_the_value_of_another() {
        let path = format!("/dev/shm/talea-others-{}", std::process::id());
        for seed in 0..40 {
            let region = Region::open(&path, Config::with_len(16 << 20)).unwrap().region;
            let reader = Reader::open(&path).unwrap();
            std::fs::remove_file(&path).unwrap();
            let storage = [Storage::Striped, Storage::Single][seed as usize % 2];
            let spec = FamilySpec { name: b"x", limit: 20_000, storage, ..FamilySpec::default() };
            let family = region.family(spec).unwrap().family;
            let random = Random(seed);
            let mut churn = Churn { region, family, random, texts: Vec::new(), number: 0 };
            match seed / 2 % 2 {
                0 => churn.change(500, 0),
                _ => churn.scatter(),
            }
            // Removals while the copy is made begin before or after the first window, or never.
            let begin = [0, 1, 9][seed as usize % 3];
            for _ in 0..3 {
                churn.change(100, 5);
                if begin > 0 {
                    churn.settle();
                }
                let copy = Copy::begin(&reader.locks, &reader.s, |_| Vec::new()).unwrap();
                let (mut snapshot, mut calls) = (Snapshot::default(), 0..);
                let meddling = Meddling {
                    copy,
                    meddle: || match calls.next() >= Some(begin) {
                        true => churn.change(600, 4),
                        false => churn.change(100, 0),
                    },
                };
                snapshot::take(meddling, &|_| true, &mut snapshot).unwrap();
                for series in snapshot.series(&snapshot.families()[0]) {
                    let text = String::from_utf8_lossy(series.text);
                    let (first, last) = text.split_once('-').unwrap_or_default();
                    let value = series.values[0];
                    let is_own = !first.is_empty()
                        && first == last.trim_start_matches('-')
                        && (value == 0 || first == value.to_string());
                    assert!(is_own, "seed {seed}: {text:?} {value}");
                }
            }
        }
    }
}
