//! Reading a region from outside, without mapping it: what an agent does.
//!
//! A file that somebody else made may be damaged, hostile, or cut under our
//! eyes. So it is read, never mapped (a page that is gone would raise SIGBUS, and
//! touching a hole would allocate it): each section once, up to what its mark
//! says is in use, into memory of our own, page by page at page-aligned
//! addresses. What is then looked at cannot change any more.

use std::fs::{File, FileType, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::error::OpenError;
use crate::layout::*;
use crate::mapping::Backing;
use crate::overview::{self, Overview};
use crate::record::{self, Head};
use crate::region::Region;
use crate::snapshot::{self, RECORD_WORDS, Snapshot, Source};

/// A region that is read from outside the processes that use it.
#[derive(Debug)]
pub struct Reader {
    locks: Backing,
    s: Sections,
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
        let failed = |source| OpenError::System {
            doing: "read the region",
            path: Some(path.to_owned()),
            source,
        };
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags | libc::O_NONBLOCK)
            .open(path)
            .map_err(|error| failed(in_words(error)))?;
        Self::of_file(path, file)
    }

    /// Of a file that was opened for reading; `path` is what errors call it.
    pub(crate) fn of_file(path: &Path, file: File) -> Result<Self, OpenError> {
        let failed = |source| OpenError::System {
            doing: "read the region",
            path: Some(path.to_owned()),
            source,
        };
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            let told = format!("{}, not a regular file", kind_of(metadata.file_type()));
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, told)));
        }
        let mut header = Pages::for_bytes(PAGE);
        let short = |_| failed(io::Error::new(io::ErrorKind::InvalidData, "shorter than a region"));
        file.read_exact_at(header.bytes(), 0).map_err(short)?;
        let word = |at: u64| header.words()[(at / WORD) as usize];
        let s = Region::validate(word, metadata.len())
            .map_err(|reason| OpenError::Damaged { path: path.to_owned(), reason })?;
        Ok(Self { locks: Backing::of(file), s })
    }

    /// Copies all values out. It costs the writers nothing, and works whatever
    /// they do: busy, stopped or dead.
    ///
    /// # Errors
    ///
    /// The file was cut, or claims to have more in use than it has.
    pub fn snapshot(&self) -> io::Result<Snapshot> {
        let copy = self.copy(|_| Vec::new())?;
        Ok(copy.snapshot())
    }

    /// Copies all values out, and tells what the region is, how full it is and who has it
    /// open, all of one copy. It costs the writers nothing, as [`snapshot`](Self::snapshot)
    /// does not.
    ///
    /// # Errors
    ///
    /// As [`snapshot`](Self::snapshot); and its marks say what cannot be.
    pub fn look(&self) -> io::Result<(Overview, Snapshot)> {
        let s = &self.s;
        let copy =
            self.copy(|copy| overview::bits(s, |pool| overview::used(copy, pool)).collect())?;
        Region::check_marks(|at| copy.word(at), s)
            .map_err(|reason| io::Error::new(io::ErrorKind::InvalidData, reason))?;
        Ok((overview::overview(&copy), copy.snapshot()))
    }

    /// Copies what is in use, and what is named `beside` it, by where it begins and its
    /// length.
    fn copy(&self, beside: impl FnOnce(&Copy<'_>) -> Vec<(u64, u64)>) -> io::Result<Copy<'_>> {
        let file = self.locks.file();
        let s = &self.s;
        let mut copy = Copy { reader: self, parts: Vec::new(), stands: Vec::new() };
        copy.read(file, 0, s.families)?;
        let used =
            |copy: &Copy<'_>, marks, len| copy.word(marks).min(copy.word(marks + BACKED)).min(len);
        let pool = |copy: &Copy<'_>, pool: &Pool| (pool.at, used(copy, pool.marks, pool.len));
        let beside = beside(&copy);
        let records = pool(&copy, &s.records);
        let parts = [
            (s.families, used(&copy, M_FAMILIES, s.family_max * FAMILY_LEN)),
            records,
            pool(&copy, &s.arena),
            pool(&copy, &s.singles),
            (s.groups, (records.1 / RECORD_LEN).div_ceil(GROUP) * WORD),
        ];
        let striped = pool(&copy, &s.striped).1;
        let owned = pool(&copy, &s.owned).1;
        let planes = snapshot::planes(&copy).map(|delta| (s.striped.at + delta, striped));
        let living = snapshot::living(&copy).map(|block| (s.owned.at + block.delta, owned));
        let all: Vec<(u64, u64)> =
            parts.into_iter().chain(beside).chain(planes).chain(living).collect();
        // All of it was backed before it was used. A file of holes that claims to
        // be full would cost us the memory that it never had.
        let claimed: u64 = all.iter().map(|(_, len)| len).sum();
        let has = file.metadata()?.blocks() * 512;
        if claimed > has {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("the region claims {claimed} bytes in use and has {has}"),
            ));
        }
        for (at, len) in all {
            copy.read(file, at, len)?;
        }
        // The records once more: what one of them names may have come to belong to
        // another while it was read.
        copy.stands = copy.compare(file, records.1 / RECORD_LEN)?;
        Ok(copy)
    }
}

/// The first region in memory among the descriptors of a process, as a path.
pub(crate) fn descriptor_of_process(pid: u32) -> Result<PathBuf, OpenError> {
    let descriptors = Path::new("/proc").join(pid.to_string()).join("fd");
    let failed = |source| OpenError::System {
        doing: "look for a region among the descriptors in",
        path: Some(descriptors.clone()),
        source,
    };
    for entry in std::fs::read_dir(&descriptors).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let is_region = std::fs::read_link(&path)
            .is_ok_and(|target| target.to_string_lossy().starts_with("/memfd:talea"));
        if is_region {
            return Ok(path);
        }
    }
    Err(failed(io::Error::new(io::ErrorKind::NotFound, "the process has no region in memory")))
}

/// The file that is read, and how long it was when it was opened.
impl Reader {
    pub(crate) fn file(&self) -> &File {
        self.locks.file()
    }

    pub(crate) fn len(&self) -> u64 {
        self.s.plane(self.s.plane_count)
    }
}

/// What the system says of a file that it does not open, where that is hard to guess.
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

/// What stands where a file was expected.
pub(crate) fn kind_of(found: FileType) -> &'static str {
    match found {
        found if found.is_dir() => "a directory",
        found if found.is_fifo() => "a FIFO",
        found if found.is_socket() => "a socket",
        _ => "a device",
    }
}

/// Parts of a region, copied.
struct Copy<'a> {
    reader: &'a Reader,
    /// Where each part begins, and its words.
    parts: Vec<(u64, Pages)>,
    /// Of each series record, whether it was the same after all else was read.
    stands: Vec<bool>,
}

impl Copy<'_> {
    fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot::default();
        snapshot::take(self, &|_| true, &mut snapshot);
        snapshot
    }

    fn read(&mut self, file: &File, at: u64, len: u64) -> io::Result<()> {
        if len == 0 {
            return Ok(());
        }
        // Owned blocks and the family table begin within a page.
        let (first, end) = (at / PAGE * PAGE, page_up(at.saturating_add(len)));
        if end > self.reader.s.plane(self.reader.s.plane_count) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a plane outside the region"));
        }
        let mut pages = Pages::for_bytes(end - first);
        file.read_exact_at(pages.bytes(), first)?;
        self.parts.push((first, pages));
        Ok(())
    }

    /// Reads the series records again and says of each whether it is still the one
    /// that was copied.
    fn compare(&self, file: &File, records: u64) -> io::Result<Vec<bool>> {
        // A window that stays in the cache: nothing of it is kept.
        let mut window = Pages::for_bytes(16 * PAGE);
        let in_window = 16 * PAGE / RECORD_LEN;
        let mut stands = Vec::with_capacity(records as usize);
        for first in (0..records).step_by(in_window as usize) {
            let at = self.reader.s.records.at + first * RECORD_LEN;
            let count = in_window.min(records - first);
            file.read_exact_at(&mut window.bytes()[..(count * RECORD_LEN) as usize], at)?;
            let count_words = (count * RECORD_LEN / WORD) as usize;
            let mut copied = self.words(at, count_words as u64).into_iter().flatten();
            for now in window.words()[..count_words].chunks_exact(RECORD_WORDS) {
                let copied: [u64; RECORD_WORDS] =
                    std::array::from_fn(|_| copied.next().unwrap_or(0));
                stands.push(is_same(&copied, now));
            }
        }
        Ok(stands)
    }
}

impl Source for Copy<'_> {
    fn sections(&self) -> &Sections {
        &self.reader.s
    }

    fn words(&self, at: u64, count: u64) -> Option<impl Iterator<Item = u64>> {
        let end = at.checked_add(count.checked_mul(WORD)?)?;
        let (first, pages) = self.parts.iter().find(|(first, pages)| {
            *first <= at && end <= first + pages.words().len() as u64 * WORD
        })?;
        if at % WORD != 0 {
            return None;
        }
        let from = ((at - first) / WORD) as usize;
        Some(pages.words()[from..from + count as usize].iter().copied())
    }

    fn stands(&self, record: u64) -> bool {
        let n = (record - self.reader.s.records.at) / RECORD_LEN;
        self.stands.get(n as usize).copied().unwrap_or(false)
    }

    fn lives(&self, slot: u64) -> bool {
        self.reader.locks.others_hold(slot..slot + 1).unwrap_or(true)
    }
}

/// Whether two copies of a record are of one series. That it was looked up or hidden
/// meanwhile does not matter.
fn is_same(before: &[u64], after: &[u64]) -> bool {
    let at = |word: u64| (word / WORD) as usize;
    let is = |head: u64| (record::state(head), Head::unpack(head).family);
    is(before[at(SERIES_HEAD)]) == is(after[at(SERIES_HEAD)])
        && [SERIES_TEXT, SERIES_CELLS, SERIES_CREATED]
            .iter()
            .all(|&word| before[at(word)] == after[at(word)])
}

/// Zeroed memory that begins on a page bound, so that the kernel copies whole cache
/// lines and no word is read in halves.
struct Pages {
    /// What is there, and up to a page before it: of memory that is asked for with a
    /// greater alignment, every page would be written first.
    memory: Vec<u64>,
    first: usize,
}

/// Words of a page.
const PAGE_WORDS: usize = (PAGE / WORD) as usize;

impl Pages {
    fn for_bytes(len: u64) -> Self {
        let words = len.div_ceil(PAGE) as usize * PAGE_WORDS;
        let memory = vec![0; words + PAGE_WORDS];
        let past = memory.as_ptr() as usize % PAGE as usize / size_of::<u64>();
        Self { memory, first: (PAGE_WORDS - past) % PAGE_WORDS }
    }

    fn words(&self) -> &[u64] {
        &self.memory[self.first..][..self.memory.len() - PAGE_WORDS]
    }

    fn bytes(&mut self) -> &mut [u8] {
        let len = self.memory.len() - PAGE_WORDS;
        let words = &mut self.memory[self.first..][..len];
        // SAFETY: words in a row are eight times as many bytes in a row, of which any
        // are valid words.
        unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), len * 8) }
    }
}
