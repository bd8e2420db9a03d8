//! The file of a history: `talea history 1` and a line end, then records. Each has its length and a
//! checksum (CRC-32), 4 bytes each, the lowest first, then the number of its store, then the record itself.
//!
//! A file that was cut within its last record, as by a kill, is read up to there. Any other damage is skipped: the
//! next whole record is searched for. The agent then moves the file aside and writes a new one of all that it could read.

use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rustix::fs::{FlockOperation, OFlags, flock};
use talea::outside::Reader;

use super::block::{LATER, PACKED, STEPS};
use talea_view::screen::note;

const BEGINS: &[u8; 16] = b"talea history 1\n";
/// The first line of any version, up to its number.
const VERSIONS: &[u8] = b"talea history ";
/// A record is not longer; more is damage.
const LONGEST: usize = if cfg!(test) { 1 << 20 } else { 64 << 20 };
/// A file is written anew when it is so much longer than what is kept.
const ROOM: u64 = 1 << 20;
/// How many files are moved aside; none of them is removed.
const MOST_ASIDE: u32 = 9;
/// The bytes that are read in search of whole records behind damage. Any bytes can look like the begin of a long one.
const MOST_SEARCHED: u64 = 512 << 20;
/// The bytes that are searched at once.
const CHUNK: usize = 1 << 16;
/// A record's length and checksum.
const HEAD: usize = 8;

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
    /// The bytes that could not be read when it was opened.
    lost: u64,
    /// Has the next record fail as on a disk that is full.
    #[cfg(test)]
    pub(super) fail_next: bool,
}

impl HistoryFile {
    /// Opens a file or makes one, and hands its records to `take`, which says whether it could use them. Bytes behind
    /// the last whole record, where a writer was killed, are removed. A file that is damaged otherwise is moved aside.
    pub(super) fn open(path: &Path, take: impl FnMut(usize, &[u8]) -> bool) -> Result<Self> {
        let doing = || format!("the history {}", path.display());
        let mut history = Self::open_or_make(path, take).with_context(doing)?;
        if !history.is_displaced {
            history.file.seek(SeekFrom::Start(history.len)).with_context(doing)?;
        }
        Ok(history)
    }

    fn open_or_make(path: &Path, take: impl FnMut(usize, &[u8]) -> bool) -> Result<Self> {
        let how = &mut OpenOptions::new();
        let mut file = open(path, how.read(true).write(true).create(true), &own_user())?;
        lock(&file)?;
        if is_hardly_begun(&file)? {
            file.set_len(0)?;
            file.write_all(BEGINS)?;
        }
        let read = read_records(&file, take)?;
        if !read.is_history && Reader::open(path).is_ok() {
            bail!("it is a region, expected a file of the agent's own");
        }
        if read.lost == 0 {
            file.set_len(read.end)?;
        } else {
            let aside = move_aside(path)?;
            let (path, aside) = (path.display(), aside.display());
            let lost = read.loss();
            note(format_args!("talea serve: the history {path}: {lost}; it is now {aside}"));
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            len: read.end,
            broken: [false; STEPS.len()],
            is_displaced: read.lost > 0,
            lost: read.lost,
            #[cfg(test)]
            fail_next: false,
        })
    }

    /// Hands the records of a file of one of these users to `take`, as far as they are written and whole.
    pub(super) fn read(
        path: &Path,
        owners: &[u32],
        take: impl FnMut(usize, &[u8]) -> bool,
    ) -> Result<()> {
        let doing = || format!("the history {}", path.display());
        let file = open(path, OpenOptions::new().read(true), owners).with_context(doing)?;
        let read = read_records(&file, take).with_context(doing)?;
        if !read.is_history {
            bail!("the history {}: {}", path.display(), read.loss());
        }
        if read.lost > 0 {
            note(format_args!("the history {}: {}", path.display(), read.loss()));
        }
        Ok(())
    }

    /// The bytes that could not be read when it was opened.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// Whether records are written.
    pub(super) fn is_written(&self) -> bool {
        !self.is_displaced
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
        let is_other = |it: &Metadata| (it.dev(), it.ino()) != (own.dev(), own.ino());
        self.is_displaced = there.as_ref().is_some_and(is_other);
        if self.is_displaced {
            bail!("another file has taken its place; nothing is written any more");
        }
        Ok(there.is_some())
    }

    fn replace<'a>(&mut self, records: impl Iterator<Item = (usize, &'a [u8])>) -> Result<()> {
        let beside = beside(&self.path);
        let how = &mut OpenOptions::new();
        let file = open(&beside, how.write(true).create(true).truncate(false), &own_user())
            .with_context(|| beside.display().to_string())?;
        // Another agent's is neither emptied nor removed.
        lock(&file).with_context(|| beside.display().to_string())?;
        let written = write_anew(file, records).and_then(|written| {
            std::fs::rename(&beside, &self.path)?;
            Ok(written)
        });
        match written {
            Ok(written) => {
                (self.file, self.len, self.broken) = written;
                self.is_displaced = false;
            }
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
) -> io::Result<(File, u64, [bool; STEPS.len()])> {
    file.set_len(0)?;
    let mut out = BufWriter::new(file);
    out.write_all(BEGINS)?;
    let mut broken = [false; STEPS.len()];
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
    /// The bytes that could not be used, other than a last record that was cut off.
    lost: u64,
}

impl Reading {
    /// What is wrong with the file.
    fn loss(&self) -> String {
        let Self { is_history, len, lost, .. } = self;
        match is_history {
            true => format!("{lost} of its {len} bytes are damaged; what is whole is kept"),
            false => "it is no history of this version, or nothing of it is whole".to_owned(),
        }
    }
}

/// Whether a file is empty, or its writer was stopped within its first line.
fn is_hardly_begun(file: &File) -> io::Result<bool> {
    let mut begins = [0; BEGINS.len()];
    let len = file.read_at(&mut begins, 0)?;
    Ok(len < BEGINS.len() && BEGINS.starts_with(&begins[..len]))
}

/// Hands all whole records to `take`, which says whether it could use them. Behind damage, those of a store are left out
/// until a block begins.
fn read_records(file: &File, mut take: impl FnMut(usize, &[u8]) -> bool) -> io::Result<Reading> {
    let len = file.metadata()?.len();
    let begins = BEGINS.len() as u64;
    let mut reading = Reading { is_history: false, len, end: begins, lost: 0 };
    let mut first = [0; BEGINS.len()];
    reading.is_history = file.read_at(&mut first, 0)? == first.len() && first == *BEGINS;
    if !reading.is_history {
        // Another version says so itself. Else its first line may be damaged.
        reading.lost = if first.starts_with(VERSIONS) { len } else { begins.min(len) };
        if reading.lost == len {
            return Ok(reading);
        }
    }
    let mut input = BufReader::new(file);
    input.seek(SeekFrom::Start(begins))?;
    let (mut at, mut record, mut search) = (begins, Vec::new(), MOST_SEARCHED);
    let mut is_missing = [false; STEPS.len()];
    while at < len {
        if !read_record(&mut input, &mut record)? {
            let Some(next) = next_record(file, at, len, &mut search)? else {
                if !is_cut_off(file, at, len)? {
                    reading.lost += len - at;
                }
                break;
            };
            reading.lost += next - at;
            is_missing = [true; STEPS.len()];
            at = next;
            input.seek(SeekFrom::Start(at))?;
            continue;
        }
        reading.is_history = true;
        let (store, framed) = (usize::from(record[0]), (HEAD + record.len()) as u64);
        at += framed;
        reading.end = at;
        let is_later = record.get(1) == Some(&LATER);
        if let Some(is_missing) = is_missing.get_mut(store) {
            *is_missing &= is_later;
        }
        if is_missing.get(store) == Some(&true) || !take(store, &record[1..]) {
            reading.lost += framed;
        }
    }
    Ok(reading)
}

/// Reads a record with the number of its store; false at the end, and at what is damaged.
fn read_record(input: &mut impl Read, record: &mut Vec<u8>) -> io::Result<bool> {
    let mut head = [0; HEAD];
    match input.read_exact(&mut head) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(false),
        read => read?,
    }
    let (len, sum) = parts_of(head);
    if len == 0 || len > LONGEST {
        return Ok(false);
    }
    record.clear();
    // Memory for what is there, whatever the length says.
    input.take(len as u64).read_to_end(record)?;
    Ok(record.len() == len && crc32fast::hash(record) == sum)
}

/// The length and the checksum of a record.
fn parts_of(head: [u8; HEAD]) -> (usize, u32) {
    let [a, b, c, d, rest @ ..] = head;
    (u32::from_le_bytes([a, b, c, d]) as usize, u32::from_le_bytes(rest))
}

/// Whether a file ends within the record at `at`, as where a writer was killed.
fn is_cut_off(file: &File, at: u64, len: u64) -> io::Result<bool> {
    let mut head = [0; HEAD];
    if file.read_at(&mut head, at)? < HEAD {
        return Ok(true);
    }
    let declared = parts_of(head).0;
    Ok((1..=LONGEST).contains(&declared) && declared as u64 > len - at - HEAD as u64)
}

/// Where the next whole record begins behind a damaged one; `None` if there is none. `search` is how many bytes may
/// still be read for that.
fn next_record(file: &File, at: u64, len: u64, search: &mut u64) -> io::Result<Option<u64>> {
    // Its length may be right.
    let mut head = [0; HEAD];
    if file.read_at(&mut head, at)? == HEAD {
        let next = at + (HEAD + parts_of(head).0) as u64;
        if next < len && is_whole(file, next, len, search)? {
            return Ok(Some(next));
        }
    }
    let mut chunk = vec![0; CHUNK + HEAD + 2];
    let mut start = at + 1;
    while start < len && *search > 0 {
        let read = read_at_most(file, &mut chunk, start)?;
        *search = search.saturating_sub(read as u64);
        for (place, head) in (start..).zip(chunk[..read].windows(HEAD + 2)).take(CHUNK) {
            // A store that there is, and a kind of record that there is.
            let is_likely = usize::from(head[HEAD]) < STEPS.len() && head[HEAD + 1] <= PACKED;
            if is_likely && is_whole(file, place, len, search)? {
                return Ok(Some(place));
            }
        }
        start += CHUNK as u64;
    }
    Ok(None)
}

/// Whether a whole record is at a place.
fn is_whole(file: &File, at: u64, len: u64, search: &mut u64) -> io::Result<bool> {
    let mut head = [0; HEAD];
    if file.read_at(&mut head, at)? < HEAD {
        return Ok(false);
    }
    let (declared, sum) = parts_of(head);
    let rest = len.saturating_sub(at + HEAD as u64).min(*search);
    if !(2..=LONGEST).contains(&declared) || declared as u64 > rest {
        return Ok(false);
    }
    *search -= declared as u64;
    let mut record = vec![0; declared];
    let read = read_at_most(file, &mut record, at + HEAD as u64)?;
    Ok(read == declared && crc32fast::hash(&record) == sum)
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
