//! Reading a region from outside, without mapping it: what an agent does.
//!
//! A file that somebody else made may be damaged, hostile, or cut under our
//! eyes. So it is read, never mapped (a page that is gone would raise SIGBUS, and
//! touching a hole would allocate it): each section once, up to what its mark
//! says is in use, into memory of our own, page by page at page-aligned
//! addresses. What is then looked at cannot change any more.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::error::OpenError;
use crate::layout::*;
use crate::mapping::Backing;
use crate::record::{self, Head};
use crate::region::Region;
use crate::snapshot::{self, Snapshot, Source};

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
                return Self::with_flags(&path, 0);
            }
        }
        Err(failed(io::Error::new(io::ErrorKind::NotFound, "the process has no region in memory")))
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
            .map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")));
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
        let file = self.locks.file();
        let s = &self.s;
        let mut copy = Copy { reader: self, parts: Vec::new(), records_after: Pages::for_bytes(0) };
        copy.read(file, 0, s.families)?;
        let used =
            |copy: &Copy<'_>, marks, len| copy.word(marks).min(copy.word(marks + BACKED)).min(len);
        let pool = |copy: &Copy<'_>, pool: &Pool| (pool.at, used(copy, pool.marks, pool.len));
        let records = pool(&copy, &s.records);
        let parts = [
            (s.families, used(&copy, M_FAMILIES, s.family_max * FAMILY_LEN)),
            records,
            pool(&copy, &s.arena),
            pool(&copy, &s.singles),
        ];
        let striped = pool(&copy, &s.striped).1;
        let owned = pool(&copy, &s.owned).1;
        let planes = snapshot::planes(&copy).map(|delta| (s.striped.at + delta, striped));
        let living = snapshot::living(&copy).map(|delta| (s.owned.at + delta, owned));
        let all: Vec<(u64, u64)> = parts.into_iter().chain(planes).chain(living).collect();
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
        copy.records_after = pages(file, records.0, records.1)?;
        Ok(snapshot::take(&copy))
    }
}

/// Parts of a region, copied.
struct Copy<'a> {
    reader: &'a Reader,
    /// Where each part begins, and its words.
    parts: Vec<(u64, Pages)>,
    /// The series records after all else was read.
    records_after: Pages,
}

impl Copy<'_> {
    fn read(&mut self, file: &File, at: u64, len: u64) -> io::Result<()> {
        if len == 0 {
            return Ok(());
        }
        // Owned blocks and the family table begin within a page.
        let (first, end) = (at / PAGE * PAGE, page_up(at.saturating_add(len)));
        if end > self.reader.s.plane(self.reader.s.plane_count) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a plane outside the region"));
        }
        self.parts.push((first, pages(file, first, end - first)?));
        Ok(())
    }
}

/// Whole pages of a file.
fn pages(file: &File, first: u64, len: u64) -> io::Result<Pages> {
    let mut pages = Pages::for_bytes(len);
    file.read_exact_at(pages.bytes(), first)?;
    Ok(pages)
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
        let first = ((record - self.reader.s.records.at) / WORD) as usize;
        let after = |at: u64| self.records_after.words().get(first + (at / WORD) as usize).copied();
        // That it was looked up or hidden meanwhile does not matter.
        let is = |head: u64| (record::state(head), Head::unpack(head).family);
        after(SERIES_HEAD).is_some_and(|head| is(head) == is(self.word(record + SERIES_HEAD)))
            && [SERIES_TEXT, SERIES_CELLS, SERIES_CREATED]
                .iter()
                .all(|&at| after(at) == Some(self.word(record + at)))
    }

    fn lives(&self, slot: u64) -> bool {
        self.reader.locks.others_hold(slot..slot + 1).unwrap_or(true)
    }
}

/// Memory that begins on a page bound, so that the kernel copies whole cache
/// lines and no word is read in halves.
struct Pages(Vec<Page>);

#[derive(Clone, Copy)]
#[repr(C, align(4096))]
struct Page([u64; 512]);

impl Pages {
    fn for_bytes(len: u64) -> Self {
        Self(vec![Page([0; 512]); len.div_ceil(PAGE) as usize])
    }

    fn words(&self) -> &[u64] {
        // SAFETY: a page is 512 words and nothing else, so pages in a row are
        // words in a row.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() * 512) }
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: as above; any bytes are valid words.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), self.0.len() * 4096) }
    }
}
