//! A folder with a file for each collection that waits.
//!
//! A file is written under another name, forced to disk and then renamed, so that it is there as a whole or
//! not at all. The name is the collection's number. A collection that was sent is removed. If the process dies
//! between the two, all of it is sent once more: with the same times, which are still the newest that the
//! receiver has of each series.
//!
//! ```text
//! file:    magic (8) | CRC-32 of the rest of the head (4) | number of records (4) | time in ms (8)
//!          | samples (8) | histograms (8) | exemplars (8) | records
//! record:  CRC-32 of the rest (4) | length of the body (4) | samples (8) | histograms (8) | exemplars (8)
//!          | body
//! ```
//! Numbers are little-endian.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::record::{Collection, Counts, Record};

/// Also has the version of this format.
const MAGIC: &[u8; 8] = b"talpush1";
pub(super) const HEAD: usize = 8 + 4 + 4 + 8 + 24;
pub(super) const RECORD_HEAD: usize = 4 + 4 + 24;

const ENDING: &str = "push";
/// What a process left that died while it wrote.
const UNFINISHED: &str = "new";

/// The folder of one pusher.
pub(super) struct Folder {
    path: PathBuf,
    /// Locked as long as the folder is in use.
    _lock: File,
}

/// A file, as its head describes it.
pub(super) struct Waiting {
    pub(super) id: u64,
    pub(super) time: i64,
    pub(super) counts: Counts,
    pub(super) bytes: usize,
}

/// What a folder has when it is opened.
pub(super) struct Found {
    /// By their numbers.
    pub(super) files: Vec<Waiting>,
    /// How many had no head, and were removed.
    pub(super) damaged: u64,
}

impl Folder {
    /// Takes a folder into use, which is made if it is not there.
    pub(super) fn open(path: &Path) -> Result<(Self, Found), Error> {
        let file = |error| Error::file(path, error);
        make(path).map_err(file)?;
        let lock = lock(&path.join("lock")).map_err(file)?;
        let folder = Self { path: path.to_owned(), _lock: lock };
        let found = folder.find().map_err(file)?;
        Ok((folder, found))
    }

    fn find(&self) -> io::Result<Found> {
        let mut found = Found { files: Vec::new(), damaged: 0 };
        for entry in fs::read_dir(&self.path)? {
            let path = entry?.path();
            let ending = path.extension().and_then(|ending| ending.to_str());
            let number = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
            match (ending, number) {
                (Some(UNFINISHED), Some(_)) => fs::remove_file(&path)?,
                (Some(ENDING), Some(id)) => match read_head(&path, id) {
                    Ok(waiting) => found.files.push(waiting),
                    Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                        found.damaged += 1;
                        fs::remove_file(&path)?;
                    }
                    Err(error) => return Err(error),
                },
                _ => {}
            }
        }
        found.files.sort_by_key(|waiting| waiting.id);
        Ok(found)
    }

    fn name(&self, id: u64, ending: &str) -> PathBuf {
        self.path.join(format!("{id:020}.{ending}"))
    }

    /// Writes a collection. When this returns, it outlives the process and the machine's power.
    pub(super) fn write(&mut self, id: u64, collection: &Collection) -> io::Result<()> {
        let (new, name) = (self.name(id, UNFINISHED), self.name(id, ENDING));
        let written = write(&new, collection).and_then(|()| fs::rename(&new, &name));
        let written = written.and_then(|()| File::open(&self.path)?.sync_all());
        if written.is_err() {
            // It may be there under either name. What is not counted as waiting must not come back.
            let _ = fs::remove_file(&new);
            let _ = fs::remove_file(&name);
        }
        written
    }

    /// A collection, as far as it can be read, and the error behind that.
    pub(super) fn read(&self, id: u64) -> (Option<Collection>, Option<io::Error>) {
        let bytes = match fs::read(self.name(id, ENDING)) {
            Ok(bytes) => bytes,
            Err(error) => return (None, Some(error)),
        };
        let Some(head) = Head::of(&bytes) else { return (None, Some(damaged())) };
        let mut collection = Collection { time: head.time, records: Vec::new() };
        let mut rest = &bytes[HEAD..];
        for _ in 0..head.records {
            match record(&mut rest) {
                Some(record) => collection.records.push(record),
                None => return (Some(collection), Some(damaged())),
            }
        }
        (Some(collection), None)
    }

    /// Removes a collection. If that fails, it is sent again after the next start.
    pub(super) fn remove(&mut self, id: u64) {
        let _ = fs::remove_file(self.name(id, ENDING));
    }
}

/// Makes a folder that only its owner reads.
fn make(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// How often a lock is tried that another pusher has, and the pause between.
#[cfg(unix)]
const TRIES: u32 = 50;
#[cfg(unix)]
const PAUSE: std::time::Duration = std::time::Duration::from_millis(20);

/// Locks a file until it is closed. A second process that tried would send each value twice. A child has the lock too, from its
/// start until it runs its program, so it may outlive a pusher that was dropped just now.
fn lock(path: &Path) -> io::Result<File> {
    let file = File::options().create(true).truncate(false).write(true).open(path)?;
    #[cfg(unix)]
    for tried in 1.. {
        match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => break,
            Err(rustix::io::Errno::WOULDBLOCK) if tried < TRIES => std::thread::sleep(PAUSE),
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(io::Error::other("another pusher uses this folder"));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(file)
}

fn write(path: &Path, collection: &Collection) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(HEAD + collection.bytes());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&(collection.records.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&collection.time.to_le_bytes());
    put_counts(&mut bytes, collection.counts());
    let checksum = crc32fast::hash(&bytes[12..]);
    bytes[8..12].copy_from_slice(&checksum.to_le_bytes());
    for Record { counts, body } in &collection.records {
        let begin = bytes.len();
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
        put_counts(&mut bytes, *counts);
        bytes.extend_from_slice(body);
        let checksum = crc32fast::hash(&bytes[begin + 4..]);
        bytes[begin..begin + 4].copy_from_slice(&checksum.to_le_bytes());
    }
    let mut options = File::options();
    options.create(true).truncate(true).write(true);
    // Labels may say what others should not read.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(&bytes)?;
    file.sync_all()
}

fn put_counts(out: &mut Vec<u8>, counts: Counts) {
    for count in [counts.samples, counts.histograms, counts.exemplars] {
        out.extend_from_slice(&count.to_le_bytes());
    }
}

struct Head {
    records: u32,
    time: i64,
    counts: Counts,
}

impl Head {
    fn of(bytes: &[u8]) -> Option<Self> {
        let head = bytes.get(..HEAD).filter(|head| head.starts_with(MAGIC))?;
        let checksum = u32::from_le_bytes(array(head, 8)?);
        let is_whole = checksum == crc32fast::hash(&head[12..]);
        is_whole.then_some(())?;
        Some(Self {
            records: u32::from_le_bytes(array(head, 12)?),
            time: i64::from_le_bytes(array(head, 16)?),
            counts: counts(head, 24)?,
        })
    }
}

fn read_head(path: &Path, id: u64) -> io::Result<Waiting> {
    let file = File::open(path)?;
    let len = file.metadata()?.len();
    let mut bytes = Vec::with_capacity(HEAD);
    file.take(HEAD as u64).read_to_end(&mut bytes)?;
    let Head { records, time, counts } = Head::of(&bytes).ok_or_else(damaged)?;
    let heads = HEAD as u64 + u64::from(records) * RECORD_HEAD as u64;
    let bytes = usize::try_from(len.saturating_sub(heads)).unwrap_or(usize::MAX);
    Ok(Waiting { id, time, counts, bytes })
}

/// The first record of some bytes, which it is taken from; `None` if it is not whole.
fn record(rest: &mut &[u8]) -> Option<Record> {
    let checksum = u32::from_le_bytes(array(rest, 0)?);
    let len = u32::from_le_bytes(array(rest, 4)?) as usize;
    let end = RECORD_HEAD.checked_add(len)?;
    let whole = rest.get(..end)?;
    if checksum != crc32fast::hash(&whole[4..]) {
        return None;
    }
    let record = Record { counts: counts(whole, 8)?, body: whole[RECORD_HEAD..].to_vec() };
    *rest = &rest[end..];
    Some(record)
}

fn counts(bytes: &[u8], at: usize) -> Option<Counts> {
    let [samples, histograms, exemplars] =
        [at, at + 8, at + 16].map(|at| array(bytes, at).map(u64::from_le_bytes));
    Some(Counts { samples: samples?, histograms: histograms?, exemplars: exemplars? })
}

fn array<const LEN: usize>(bytes: &[u8], at: usize) -> Option<[u8; LEN]> {
    bytes.get(at..at + LEN)?.try_into().ok()
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the file is damaged: its checksum does not fit it")
}
