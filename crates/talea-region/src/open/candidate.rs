//! Candidates: files that may hold the region that a process opens.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::files::trust::{self, NotOpened};
use crate::header;
use crate::layout::{MAGIC, SLOT_COUNT, SLOTS, Sections};
use crate::memory::mapping::{others_hold, region_len};

/// The file at a path that may come to be used.
pub(crate) enum Candidate {
    Region(File, Box<Sections>),
    Unusable {
        reason: String,
        used: bool,
    },
    /// No region of any layout: a file that has another purpose.
    Foreign,
}

/// Inspects the file at a path, without taking part in its region.
pub(crate) fn inspect(path: &Path, users: &[u32]) -> Result<Candidate, NotOpened> {
    let file = trust::open(path, users, OpenOptions::new().read(true).write(true))?;
    inspect_file(file).map_err(NotOpened::System)
}

/// Inspects an open file. It is read and not mapped: a mapping lasts as long as the process, and with it the memory of the
/// file, also when that is removed.
pub(crate) fn inspect_file(file: File) -> io::Result<Candidate> {
    if !may_be_region(&file)? {
        return Ok(Candidate::Foreign);
    }
    let mut head = vec![0; SLOTS as usize];
    let read = region_len(&file).and_then(|len| file.read_exact_at(&mut head, 0).map(|()| len));
    let len = match read {
        Ok(len) => len,
        // A length that no region has: an empty or truncated file.
        Err(error) if matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof) => {
            return Ok(Candidate::Unusable { reason: error.to_string(), used: false });
        }
        Err(error) => return Err(error),
    };
    let word = |at: u64| {
        let bytes = head.get(at as usize..).and_then(|from| from.first_chunk());
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    };
    let sections = header::validate(word, len)
        .and_then(|sections| header::check_marks(word, &sections).map(|()| sections));
    Ok(match sections {
        Ok(sections) => Candidate::Region(file, Box::new(sections)),
        Err(reason) => {
            let used = others_hold(&file, 0..SLOT_COUNT).unwrap_or(true);
            Candidate::Unusable { reason, used }
        }
    })
}

/// Whether a file begins as a region of any layout does. An empty one may be: nothing is lost with it.
fn may_be_region(file: &File) -> io::Result<bool> {
    let mut magic = [0; 8];
    match file.read_exact_at(&mut magic, 0) {
        Ok(()) => Ok(u64::from_le_bytes(magic) == MAGIC),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(file.metadata()?.len() == 0),
        Err(error) => Err(error),
    }
}
