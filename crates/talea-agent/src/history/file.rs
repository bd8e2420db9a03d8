//! The file of a history: `talea history 2` and a line end, then records. Each has a mark, its length and a
//! checksum (CRC-32) of what follows, 4 bytes each, the lowest first; then the number of its store (1 byte), the number
//! of its first tick (8 bytes), and the record itself. A tick that says what changed is read only behind the tick
//! before it, so damage never misleads.
//!
//! What is damaged is skipped: the next whole record is searched for by its mark. Bytes behind the last whole record, as
//! after a kill or a crash, are cut off. A file that is damaged otherwise is moved aside, and a new one is written of
//! all that could be read.

use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Seek, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use anyhow::{Context, Result, bail};
use rustix::fs::{FlockOperation, OFlags, flock};
use talea::outside::Reader;

use super::block::{LATER, PACKED, STEPS};
use talea_view::screen::note;

const BEGINS: &[u8; 16] = b"talea history 2\n";
/// The first line of any version, up to its number.
const VERSIONS: &[u8] = b"talea history ";
/// Each record begins so. No text has these bytes, and no run of equal bytes is one.
const MARK: [u8; 4] = [0xC1, b'r', b'e', 0xFE];
/// A record's mark, length and checksum.
const HEAD: usize = 12;
/// The least length of what follows: a store, a number, and the kind of the record.
const LEAST: usize = 10;
/// The most; more is damage.
const LONGEST: usize = if cfg!(test) { 1 << 20 } else { 64 << 20 };
/// A file is written anew when it is so much longer than what is kept.
const ROOM: u64 = 1 << 20;
/// How many files are moved aside; none of them is removed.
const MOST_ASIDE: u32 = 9;
/// The bytes that are read in search of whole records behind damage.
const MOST_SEARCHED: u64 = 512 << 20;
/// The bytes that are searched at once.
const CHUNK: usize = 1 << 16;

/// A history that this process writes.
#[derive(Debug)]
pub(super) struct HistoryFile {
    path: PathBuf,
    file: File,
    len: u64,
    /// The stores of which the last record is missing, so that later ones would be misread.
    broken: [bool; STEPS.len()],
    /// Its path does not name it, so that nothing is written to it any more.
    is_displaced: bool,
    /// It has damage within, and is to be written anew.
    is_damaged: bool,
    /// The bytes that could not be read when it was opened.
    lost: u64,
    /// Hands what was written to the disk, which may take seconds.
    syncing: Option<JoinHandle<io::Result<()>>>,
    /// Has the next record fail as on a disk that is full.
    #[cfg(test)]
    pub(super) fail_next: bool,
}

impl HistoryFile {
    /// Opens a file or makes one, and hands its records to `take`, which says whether it could use them.
    pub(super) fn open(path: &Path, take: impl FnMut(usize, u64, &[u8]) -> bool) -> Result<Self> {
        Self::open_or_make(path, take).with_context(|| format!("the history {}", path.display()))
    }

    fn open_or_make(path: &Path, take: impl FnMut(usize, u64, &[u8]) -> bool) -> Result<Self> {
        let how = &mut OpenOptions::new();
        let file = open(path, how.read(true).write(true).create(true), &own_user())?;
        lock(&file)?;
        if is_hardly_begun(&file)? {
            file.set_len(0)?;
            file.write_all_at(BEGINS, 0)?;
        }
        let read = read_records(&file, take)?;
        if !read.is_history && Reader::open(path).is_ok() {
            bail!("it is a region, expected a file of the agent's own");
        }
        let is_whole = read.is_history && read.lost == 0;
        let aside = if is_whole {
            file.set_len(read.end)?;
            Ok(None)
        } else {
            move_aside(path).map(Some)
        };
        let then = match aside {
            Ok(None) => "the rest is cut off".to_owned(),
            Ok(Some(aside)) => format!("it is now {}", aside.display()),
            // What is whole is not given up for the sake of what is damaged.
            Err(error) if read.is_history => format!("it is written anew: {error}"),
            Err(error) => return Err(error),
        };
        if let Some(loss) = read.loss() {
            note(format_args!("talea serve: the history {}: {loss}; {then}", path.display()));
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            len: read.end,
            broken: [false; STEPS.len()],
            is_displaced: false,
            is_damaged: !is_whole,
            lost: read.lost + read.tail(),
            syncing: None,
            #[cfg(test)]
            fail_next: false,
        })
    }

    /// Hands the records of a file of one of these users to `take`, as far as they are written and whole.
    pub(super) fn read(
        path: &Path,
        owners: &[u32],
        take: impl FnMut(usize, u64, &[u8]) -> bool,
    ) -> Result<()> {
        let doing = || format!("the history {}", path.display());
        let file = open(path, OpenOptions::new().read(true), owners).with_context(doing)?;
        let read = read_records(&file, take).with_context(doing)?;
        let loss = read.loss().filter(|_| !read.is_history || read.lost > 0);
        match loss {
            Some(loss) if read.is_history => note(format_args!("{}: {loss}", doing())),
            Some(loss) => bail!("{}: {loss}", doing()),
            // A record may be written just now.
            None => {}
        }
        Ok(())
    }

    /// The bytes that could not be read when it was opened.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// Whether all records are written.
    pub(super) fn is_written(&self) -> bool {
        self.takes_records() && !self.broken.contains(&true)
    }

    fn takes_records(&self) -> bool {
        !self.is_displaced && !self.is_damaged
    }

    /// Appends a record, by the number of its first tick. Behind one that could not be written, those of its store are
    /// left out until a block begins.
    pub(super) fn append(&mut self, store: usize, number: u64, record: &[u8]) -> Result<()> {
        let is_later = record.first() == Some(&LATER);
        if !self.takes_records() || self.broken[store] && is_later {
            self.broken[store] = record.first() != Some(&PACKED);
            return Ok(());
        }
        let framed = framed(store, number, record);
        let written = if is_too_long(record) {
            // A reader would take it for damage.
            Err(io::Error::other("a record is too long for the file"))
        } else {
            self.write(&framed)
        };
        self.broken[store] = written.is_err() && record.first() != Some(&PACKED);
        match written {
            Ok(()) => self.len += framed.len() as u64,
            // The next record is written over what there is of this one, also if it cannot be cut off.
            Err(_) => drop(self.file.set_len(self.len)),
        }
        let synced = if is_later { Ok(()) } else { self.sync() };
        written.and(synced).with_context(|| format!("the history {}", self.path.display()))
    }

    fn write(&mut self, framed: &[u8]) -> io::Result<()> {
        #[cfg(test)]
        if self.fail_next {
            self.file.write_all_at(&framed[..framed.len() / 2], self.len)?;
            return Err(ErrorKind::StorageFull.into());
        }
        self.file.write_all_at(framed, self.len)
    }

    /// Has the disk take what was written, beside the caller. An error is of the time before.
    fn sync(&mut self) -> io::Result<()> {
        if self.syncing.as_ref().is_some_and(|syncing| !syncing.is_finished()) {
            return Ok(());
        }
        let before = self.syncing.take().map(JoinHandle::join);
        let file = self.file.try_clone()?;
        let thread = std::thread::Builder::new().name("talea-history".to_owned());
        self.syncing = Some(thread.spawn(move || file.sync_data())?);
        before.and_then(Result::ok).unwrap_or(Ok(()))
    }

    /// Writes the file anew where it has much that is not kept any more, was removed or moved away, or is damaged. A
    /// file that somebody else put at its path is left alone.
    pub(super) fn shrink<'a, I: Iterator<Item = (usize, u64, &'a [u8])>>(
        &mut self,
        records: impl Fn() -> I,
    ) -> Result<()> {
        let is_there = self.is_there();
        let is_there = is_there.with_context(|| format!("the history {}", self.path.display()))?;
        let kept = records().map(|it| (it.2.len() + HEAD + LEAST) as u64).sum::<u64>();
        if is_there && !self.is_damaged && self.len <= 2 * kept + ROOM {
            return Ok(());
        }
        // Nothing is written to a file without its name.
        self.is_displaced = !is_there;
        self.replace(records()).with_context(|| format!("the history {}", self.path.display()))
    }

    /// Whether its path names it. Fails if that names another file.
    fn is_there(&mut self) -> Result<bool> {
        let there = match std::fs::symlink_metadata(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            there => Some(there?),
        };
        let own = self.file.metadata()?;
        self.is_displaced =
            there.as_ref().is_some_and(|it| (it.dev(), it.ino()) != (own.dev(), own.ino()));
        if self.is_displaced {
            bail!("another file has taken its place; nothing is written any more");
        }
        Ok(there.is_some())
    }

    fn replace<'a>(&mut self, records: impl Iterator<Item = (usize, u64, &'a [u8])>) -> Result<()> {
        let beside = beside(&self.path);
        let how = &mut OpenOptions::new();
        let file = open(&beside, how.write(true).create(true).truncate(false), &own_user())
            .with_context(|| beside.display().to_string())?;
        // Another agent's is neither emptied nor removed.
        lock(&file).with_context(|| beside.display().to_string())?;
        let written = write_anew(file, records).and_then(|written| {
            // On the disk before it has the name: a crash leaves the one file or the other.
            written.0.sync_data()?;
            std::fs::rename(&beside, &self.path)?;
            Ok(written)
        });
        match written {
            Ok(written) => {
                (self.file, self.len, self.broken) = written;
                (self.is_displaced, self.is_damaged) = (false, false);
            }
            Err(error) => {
                let _ = std::fs::remove_file(&beside);
                return Err(error.into());
            }
        }
        Ok(())
    }
}

impl Drop for HistoryFile {
    /// The lock is let go with the last descriptor.
    fn drop(&mut self) {
        self.syncing.take().map(JoinHandle::join);
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
    records: impl Iterator<Item = (usize, u64, &'a [u8])>,
) -> io::Result<(File, u64, [bool; STEPS.len()])> {
    file.set_len(0)?;
    let mut out = BufWriter::new(file);
    out.write_all(BEGINS)?;
    let mut broken = [false; STEPS.len()];
    for (store, number, record) in records {
        if is_too_long(record) {
            broken[store] = record.first() != Some(&PACKED);
        } else if !broken[store] || record.first() != Some(&LATER) {
            broken[store] = false;
            out.write_all(&framed(store, number, record))?;
        }
    }
    let mut file = out.into_inner()?;
    let len = file.stream_position()?;
    Ok((file, len, broken))
}

/// Whether a record is too long for a file.
fn is_too_long(record: &[u8]) -> bool {
    record.len() + LEAST > LONGEST
}

fn framed(store: usize, number: u64, record: &[u8]) -> Vec<u8> {
    let body = [&[store as u8][..], &number.to_le_bytes(), record].concat();
    let (len, sum) = ((body.len() as u32).to_le_bytes(), crc32fast::hash(&body).to_le_bytes());
    [&MARK[..], &len, &sum, &body].concat()
}

/// The users whose files the agent uses.
fn own_user() -> [u32; 1] {
    [rustix::process::geteuid().as_raw()]
}

/// Opens a regular file of one of these users, to which no other user may write; no symbolic link is followed, and
/// nothing else is opened.
fn open(path: &Path, how: &mut OpenOptions, owners: &[u32]) -> Result<File> {
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        named => is_trusted(&named?, owners)?,
    }
    // Opening does not wait, even if the path is no regular file by now.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = how.mode(0o600).custom_flags(flags.bits() as i32).open(path)?;
    is_trusted(&file.metadata()?, owners)?;
    Ok(file)
}

fn is_trusted(file: &Metadata, owners: &[u32]) -> Result<()> {
    if file.is_symlink() {
        bail!("it is a symbolic link, expected a regular file");
    }
    if !file.is_file() {
        bail!("it is no regular file");
    }
    if !owners.contains(&file.uid()) {
        let owners: Vec<String> = owners.iter().map(u32::to_string).collect();
        bail!("it belongs to the user {}, expected {}", file.uid(), owners.join(" or "));
    }
    if file.mode() & 0o022 != 0 {
        let mode = file.mode() & 0o7777;
        bail!("its group or others may write to it (mode {mode:04o}); run chmod go-w");
    }
    Ok(())
}

/// Gives a file another name, beside its own, that no other has.
fn move_aside(path: &Path) -> Result<PathBuf> {
    for number in 1..=MOST_ASIDE {
        let mut aside = path.as_os_str().to_owned();
        aside.push(format!(".stale-{number}"));
        let aside = PathBuf::from(aside);
        if std::fs::symlink_metadata(&aside).is_err_and(|it| it.kind() == ErrorKind::NotFound) {
            std::fs::rename(path, &aside)
                .with_context(|| format!("cannot be moved to {}", aside.display()))?;
            return Ok(aside);
        }
    }
    bail!(
        "it cannot be read whole, and {MOST_ASIDE} such files are beside it already; remove \
         {path}.stale-1 to {path}.stale-{MOST_ASIDE}",
        path = path.display()
    );
}

fn lock(file: &File) -> Result<()> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => {
            bail!("another agent writes to it; name another file")
        }
        locked => Ok(locked?),
    }
}

/// What was found in a file.
#[derive(Debug)]
struct Reading {
    /// Whether it is a history of this version, or has records of one.
    is_history: bool,
    len: u64,
    /// Where the last whole record ends.
    end: u64,
    /// The bytes before that which could not be used.
    lost: u64,
}

impl Reading {
    /// The bytes behind the last whole record.
    fn tail(&self) -> u64 {
        self.len.saturating_sub(self.end)
    }

    /// What is wrong with the file; `None` if all of it could be used.
    fn loss(&self) -> Option<String> {
        let Self { is_history, len, lost, .. } = self;
        match (is_history, lost + self.tail()) {
            (false, _) => {
                Some("it is no history of this version, or nothing of it is whole".into())
            }
            (true, 0) => None,
            (true, lost) => {
                Some(format!("{lost} of its {len} bytes are damaged; what is whole is kept"))
            }
        }
    }
}

/// Whether a file is empty, or its writer was stopped within its first line.
fn is_hardly_begun(file: &File) -> io::Result<bool> {
    let mut begins = [0; BEGINS.len()];
    let len = file.read_at(&mut begins, 0)?;
    Ok(len < BEGINS.len() && BEGINS.starts_with(&begins[..len]))
}

/// Hands all whole records to `take`, which says whether it could use them.
fn read_records(
    file: &File,
    mut take: impl FnMut(usize, u64, &[u8]) -> bool,
) -> io::Result<Reading> {
    let len = file.metadata()?.len();
    let mut first = [0; BEGINS.len()];
    let is_history = file.read_at(&mut first, 0)? == first.len() && first == *BEGINS;
    // A damaged first line is searched for records as any other bytes are.
    let begin = if is_history { BEGINS.len() as u64 } else { 0 };
    let mut reading = Reading { is_history, len, end: begin, lost: 0 };
    if !is_history && first.starts_with(VERSIONS) {
        (reading.lost, reading.end) = (len, len);
        return Ok(reading);
    }
    let mut search = Search { file, len, left: MOST_SEARCHED, body: Vec::new() };
    while let Some(at) = search.next_record(reading.end)? {
        let framed = (HEAD + search.body.len()) as u64;
        reading.lost += at - reading.end;
        reading.end = at + framed;
        reading.is_history = true;
        let is_taken = split_body(&search.body)
            .is_some_and(|(store, number, record)| take(store, number, record));
        reading.lost += if is_taken { 0 } else { framed };
    }
    Ok(reading)
}

/// Finds whole records in a file.
struct Search<'a> {
    file: &'a File,
    len: u64,
    /// How many more bytes may be read that turn out to be no record.
    left: u64,
    /// Of the record that was found last.
    body: Vec<u8>,
}

impl Search<'_> {
    /// Where the next whole record begins, from `at` on.
    fn next_record(&mut self, mut at: u64) -> io::Result<Option<u64>> {
        while !self.read_record(at)? {
            match self.next_mark(at + 1)? {
                Some(next) => at = next,
                None => return Ok(None),
            }
        }
        Ok(Some(at))
    }

    /// Reads the record at a place; whether it is whole.
    fn read_record(&mut self, at: u64) -> io::Result<bool> {
        let mut head = [0; HEAD];
        if read_at_most(self.file, &mut head, at)? < HEAD || !head.starts_with(&MARK) {
            return Ok(false);
        }
        let [_, _, _, _, a, b, c, d, sum @ ..] = head;
        let declared = u32::from_le_bytes([a, b, c, d]) as usize;
        let rest = self.len.saturating_sub(at + HEAD as u64);
        if !(LEAST..=LONGEST).contains(&declared) || declared as u64 > rest {
            return Ok(false);
        }
        self.body.resize(declared, 0);
        let read = read_at_most(self.file, &mut self.body, at + HEAD as u64)?;
        let is_whole = read == declared && crc32fast::hash(&self.body) == u32::from_le_bytes(sum);
        if !is_whole {
            self.left = self.left.saturating_sub(declared as u64);
        }
        Ok(is_whole)
    }

    /// Where the next mark of a record is, from `at` on.
    fn next_mark(&mut self, mut at: u64) -> io::Result<Option<u64>> {
        let mut chunk = vec![0; CHUNK + MARK.len() - 1];
        while at < self.len && self.left > 0 {
            let read = read_at_most(self.file, &mut chunk, at)?;
            // Most of what a crash leaves are zeros, which need no closer look.
            let may_have_one = chunk[..read].contains(&MARK[0]);
            let mut windows = chunk[..read].windows(MARK.len());
            let found = may_have_one.then(|| windows.position(|it| it == MARK)).flatten();
            self.left = self.left.saturating_sub(found.unwrap_or(CHUNK) as u64);
            match found {
                Some(place) => return Ok(Some(at + place as u64)),
                None => at += CHUNK as u64,
            }
        }
        Ok(None)
    }
}

/// The number of a store, the number of a record's first tick, and the record.
fn split_body(body: &[u8]) -> Option<(usize, u64, &[u8])> {
    let (store, rest) = body.split_first()?;
    let (number, record) = rest.split_first_chunk()?;
    Some((usize::from(*store), u64::from_le_bytes(*number), record))
}

/// Fills a buffer, as far as the file goes.
fn read_at_most(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut read = 0;
    while read < buffer.len() {
        match file.read_at(&mut buffer[read..], at + read as u64) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}
