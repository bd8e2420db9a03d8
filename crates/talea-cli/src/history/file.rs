//! The file of a history: `talea history 1` and a line end, then records. Each has its length and a
//! checksum (CRC-32), 4 bytes each, the lowest first, then the number of its store, then the record itself.

use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rustix::fs::{FlockOperation, OFlags, flock};

use super::block::{LATER, PACKED};

const BEGINS: &[u8; 16] = b"talea history 1\n";
/// A record is not longer; more is damage.
const LONGEST: usize = if cfg!(test) { 1 << 20 } else { 64 << 20 };
/// A file is written anew when it is so much longer than what is kept.
const ROOM: u64 = 1 << 20;

/// A history that this process writes.
#[derive(Debug)]
pub(super) struct HistoryFile {
    path: PathBuf,
    file: File,
    len: u64,
    /// The stores of which the last record is missing, so that later ones would be misread.
    broken: [bool; 2],
    /// Another file has its path, so that nothing is written any more.
    is_displaced: bool,
    /// Has the next record fail as on a disk that is full.
    #[cfg(test)]
    pub(super) fail_next: bool,
}

impl HistoryFile {
    /// Opens a file or makes one, and hands its records to `take`. Bytes behind the last whole record, where
    /// a writer was killed, are removed.
    pub(super) fn open(path: &Path, take: impl FnMut(usize, &[u8])) -> Result<Self> {
        let doing = || format!("the history {}", path.display());
        let mut file = open(path, OpenOptions::new().read(true).write(true).create(true))
            .with_context(doing)?;
        lock(&file).with_context(doing)?;
        if file.metadata().with_context(doing)?.len() == 0 {
            file.write_all(BEGINS).with_context(doing)?;
        }
        file.rewind().with_context(doing)?;
        let len = read_records(&file, take).with_context(doing)?;
        file.set_len(len).with_context(doing)?;
        file.seek(SeekFrom::Start(len)).with_context(doing)?;
        Ok(Self {
            path: path.to_owned(),
            file,
            len,
            broken: [false; 2],
            is_displaced: false,
            #[cfg(test)]
            fail_next: false,
        })
    }

    /// Hands the records of a file to `take`, as far as they are written.
    pub(super) fn read(path: &Path, take: impl FnMut(usize, &[u8])) -> Result<()> {
        let doing = || format!("the history {}", path.display());
        let file = open(path, OpenOptions::new().read(true)).with_context(doing)?;
        read_records(&file, take).with_context(doing)?;
        Ok(())
    }

    /// Appends a record. Where one could not be written, those of its store are left out until a block
    /// begins.
    pub(super) fn append(&mut self, store: usize, record: &[u8]) -> Result<()> {
        if self.is_displaced {
            self.broken[store] = record.first() != Some(&PACKED);
            return Ok(());
        }
        // Records after one that is missing cannot be read.
        if self.broken[store] && record.first() == Some(&LATER) {
            return Ok(());
        }
        let framed = framed(store, record);
        let written = if is_too_long(record) {
            // A reader would take it for damage, and lose those behind it.
            Err(io::Error::other("a record is too long for the file"))
        } else {
            self.write(&framed)
        };
        self.broken[store] = written.is_err() && record.first() != Some(&PACKED);
        match written {
            Ok(()) => self.len += framed.len() as u64,
            // Half a record would hide those behind it.
            Err(_) => {
                self.file.set_len(self.len)?;
                self.file.seek(SeekFrom::Start(self.len))?;
            }
        }
        written.with_context(|| format!("the history {}", self.path.display()))
    }

    fn write(&mut self, framed: &[u8]) -> io::Result<()> {
        #[cfg(test)]
        if self.fail_next {
            self.file.write_all(&framed[..framed.len() / 2])?;
            return Err(ErrorKind::StorageFull.into());
        }
        self.file.write_all(framed)
    }

    /// Writes the file anew where it has much that is not kept any more, or was removed or moved away. A file that
    /// somebody else put at its path is left alone.
    pub(super) fn shrink<'a, I: Iterator<Item = (usize, &'a [u8])>>(
        &mut self,
        records: impl Fn() -> I,
    ) -> Result<()> {
        let is_there = self.is_there();
        let is_there = is_there.with_context(|| format!("the history {}", self.path.display()))?;
        let kept = records().map(|(_, record)| record.len() as u64 + 9).sum::<u64>();
        if is_there && self.len <= 2 * kept + ROOM {
            return Ok(());
        }
        self.replace(records()).with_context(|| format!("the history {}", self.path.display()))
    }

    /// Whether its path names it. Fails if that names another file.
    fn is_there(&mut self) -> Result<bool> {
        let there = match std::fs::symlink_metadata(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            there => Some(there?),
        };
        let own = self.file.metadata()?;
        let is_other = |it: &Metadata| (it.dev(), it.ino()) != (own.dev(), own.ino());
        self.is_displaced = there.as_ref().is_some_and(is_other);
        if self.is_displaced {
            bail!("another file has taken its place; nothing is written any more");
        }
        Ok(there.is_some())
    }

    fn replace<'a>(&mut self, records: impl Iterator<Item = (usize, &'a [u8])>) -> Result<()> {
        let beside = beside(&self.path);
        let file = open(&beside, OpenOptions::new().write(true).create(true).truncate(false))?;
        // Root may open anybody's, who would then own the history.
        let (owner, user) = (file.metadata()?.uid(), rustix::process::geteuid().as_raw());
        if owner != user {
            bail!("{} belongs to the user {owner}, expected {user}", beside.display());
        }
        // Another agent's is neither emptied nor removed.
        lock(&file).with_context(|| beside.display().to_string())?;
        let written = write_anew(file, records).and_then(|written| {
            std::fs::rename(&beside, &self.path)?;
            Ok(written)
        });
        match written {
            Ok(written) => (self.file, self.len, self.broken) = written,
            Err(error) => {
                let _ = std::fs::remove_file(&beside);
                return Err(error.into());
            }
        }
        Ok(())
    }
}

/// The file that takes the place of the one at `path` when it is complete: `.FILE.new` in its folder. A
/// hidden name, since that file is emptied, and `FILE.new` may be somebody's.
fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".new");
    path.with_file_name(name)
}

/// Empties a file and writes records to it. Returns it with its length and the stores that miss their last record.
fn write_anew<'a>(
    file: File,
    records: impl Iterator<Item = (usize, &'a [u8])>,
) -> io::Result<(File, u64, [bool; 2])> {
    file.set_len(0)?;
    let mut out = BufWriter::new(file);
    out.write_all(BEGINS)?;
    let mut broken = [false; 2];
    for (store, record) in records {
        if is_too_long(record) {
            broken[store] = record.first() != Some(&PACKED);
        } else if !broken[store] || record.first() != Some(&LATER) {
            broken[store] = false;
            out.write_all(&framed(store, record))?;
        }
    }
    let mut file = out.into_inner()?;
    let len = file.stream_position()?;
    Ok((file, len, broken))
}

/// Whether a record is too long for a file, with the number of its store.
fn is_too_long(record: &[u8]) -> bool {
    record.len() + 1 > LONGEST
}

fn framed(store: usize, record: &[u8]) -> Vec<u8> {
    let mut framed = vec![0; 8];
    framed.push(store as u8);
    framed.extend_from_slice(record);
    let (len, sum) = ((framed.len() - 8) as u32, crc32fast::hash(&framed[8..]));
    framed[..4].copy_from_slice(&len.to_le_bytes());
    framed[4..8].copy_from_slice(&sum.to_le_bytes());
    framed
}

/// Opens a file of this user; no symbolic link is followed.
fn open(path: &Path, how: &mut OpenOptions) -> Result<File> {
    // Opening does not wait, even if the path is no regular file.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = how.mode(0o600).custom_flags(flags.bits() as i32).open(path)?;
    let facts = file.metadata()?;
    if !facts.is_file() {
        bail!("it is no regular file");
    }
    let user = rustix::process::geteuid().as_raw();
    if facts.uid() != user && user != 0 {
        bail!("it belongs to the user {}, expected {user}", facts.uid());
    }
    Ok(file)
}

fn lock(file: &File) -> Result<()> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => {
            bail!("another agent writes to it; name another file")
        }
        locked => Ok(locked?),
    }
}

/// Hands all whole records to `take`; where the last one ends.
fn read_records(file: &File, mut take: impl FnMut(usize, &[u8])) -> Result<u64> {
    let mut input = BufReader::new(file);
    let mut begins = [0; BEGINS.len()];
    let is_history = match input.read_exact(&mut begins) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => false,
        read => read.map(|()| begins == *BEGINS)?,
    };
    if !is_history {
        bail!("it is no history of this version, and is left as it is; name another file");
    }
    let mut end = BEGINS.len() as u64;
    let mut record = Vec::new();
    while read_record(&mut input, &mut record)? {
        take(usize::from(record[0]), &record[1..]);
        end += 8 + record.len() as u64;
    }
    Ok(end)
}

/// Reads a record with the number of its store; false at the end, and at what is damaged.
fn read_record(input: &mut impl Read, record: &mut Vec<u8>) -> io::Result<bool> {
    let mut head = [0; 8];
    match input.read_exact(&mut head) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(false),
        read => read?,
    }
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let len = word(0) as usize;
    if len == 0 || len > LONGEST {
        return Ok(false);
    }
    record.clear();
    // Memory for what is there, whatever the length says.
    input.take(len as u64).read_to_end(record)?;
    Ok(record.len() == len && crc32fast::hash(record) == word(4))
}
