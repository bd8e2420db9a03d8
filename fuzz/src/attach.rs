//! A file that anybody may have written to is attached to and read: whatever it
//! holds, nobody panics, hangs or dies.
//!
//! Arbitrary bytes never get past the header. So an input is a short program that
//! changes a real region: it says where in fractions of the file, or which of the
//! words that are in use, and so stays useful when the layout changes.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use talea_region::{
    Combine, Config, Family, FamilySpec, MIN_LEN, Number, OpenError, Overflow, Reader, Region,
    SeriesGuard, Snapshot, Storage,
};

const PAGE: u64 = 4096;

/// Attaching leaves the region mapped and a descriptor open, by design, until
/// the process ends. So a process attaches only as often as it has descriptors,
/// within the number of mappings that it may have, and reads from then on.
fn attaches() -> usize {
    static ATTACHES: OnceLock<usize> = OnceLock::new();
    *ATTACHES.get_or_init(|| {
        let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
        let open = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
        let open = open.and_then(|line| line.split_whitespace().next()?.parse().ok());
        // An attach to what was moved aside opens the new file too.
        open.unwrap_or(1024_usize).saturating_sub(300).min(40_000) / 2
    })
}

/// The bits of an input's first byte.
const RAW: u8 = 1;
const ATTACH: u8 = 2;
const LIVE: u8 = 4;

pub(crate) fn run(input: &[u8]) {
    let Some((&flags, program)) = input.split_first() else { return };
    let place = Place::new();
    let path = place.0.join("fuzz.talea");
    let file = if flags & RAW != 0 {
        let file = private(&path);
        file.write_all_at(program, 0).unwrap();
        file
    } else {
        let file = Base::get().copy(&path);
        Change { file: &file, rest: program, is_live: false }.all();
        file
    };

    if let Ok(snapshot) = Reader::open(&path).map(|reader| reader.snapshot()) {
        snapshot.iter().for_each(look_at);
    }

    static ATTACHED: AtomicUsize = AtomicUsize::new(0);
    if flags & ATTACH != 0 && ATTACHED.fetch_add(1, Relaxed) < attaches() {
        let opened = match Region::open(&path, config()) {
            // Its beginning was changed; it stays.
            Err(OpenError::Foreign(_)) => return,
            opened => opened.unwrap(),
        };
        look_at(&opened.region.snapshot());
        work(opened.region);
        look_at(&opened.region.snapshot());
        // The mapping stays; its pages need not.
        give_back(&file);
        give_back(&open(&opened.path));
    }
    if flags & (RAW | LIVE) == LIVE && ATTACHED.fetch_add(1, Relaxed) < attaches() {
        change_under_a_writer(&place.0.join("live.talea"), program);
    }
}

/// These changes while somebody works with the region: whatever was checked before, is another
/// by now.
fn change_under_a_writer(path: &Path, program: &[u8]) {
    let file = Base::get().copy(path);
    let region = Region::open(path, config()).unwrap().region;
    std::thread::scope(|scope| {
        scope.spawn(|| work(region));
        Change { file: &file, rest: program, is_live: true }.all();
    });
    work(region);
    look_at(&region.snapshot());
    give_back(&file);
}

/// A directory on tmpfs that goes with the input.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let within = std::env::var_os("TALEA_FUZZ_SHM").unwrap_or_else(|| "/dev/shm".into());
        let name = format!("talea-fuzz-{}-{}", std::process::id(), COUNT.fetch_add(1, Relaxed));
        let path = Path::new(&within).join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A new file that its owner alone may write to: another is not attached to.
fn private(path: &Path) -> std::fs::File {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    options.read(true).write(true).create(true).truncate(true).mode(0o600).open(path).unwrap()
}

fn open(path: &Path) -> std::fs::File {
    std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap()
}

/// The smallest there is: it is copied for each input.
fn config() -> Config {
    Config { planes: 4, series: 512, ..Config::with_len(MIN_LEN) }
}

fn spec(name: &'static str, storage: Storage, number: Number, cells: u16) -> FamilySpec<'static> {
    let (name, definition) = (name.as_bytes(), b"what it is".as_slice());
    let spec =
        FamilySpec { limit: 20, idle_minutes: 1, accumulates: true, ..FamilySpec::default() };
    FamilySpec { name, definition, kind: 1, storage, number, cells, ..spec }
}

/// A family of each kind that there is.
fn families() -> [FamilySpec<'static>; 11] {
    [
        spec("single", Storage::Single, Number::Integer, 1),
        spec("striped", Storage::Striped, Number::Integer, 5),
        spec("owned", Storage::Owned, Number::Integer, 1),
        spec("floats", Storage::Striped, Number::Float, 1),
        spec("owned floats", Storage::Owned, Number::Float, 2),
        FamilySpec { combine: Combine::Latest, ..spec("set", Storage::Single, Number::Float, 1) },
        FamilySpec { combine: Combine::Max, ..spec("largest", Storage::Owned, Number::Float, 1) },
        FamilySpec { combine: Combine::Each, ..spec("each", Storage::Owned, Number::Integer, 1) },
        FamilySpec { segments: 6, ..spec("segments", Storage::Striped, Number::FloatLast, 3) },
        FamilySpec { segments: 6, ..spec("single segments", Storage::Single, Number::Integer, 3) },
        FamilySpec { segments: 70, ..spec("many segments", Storage::Single, Number::Integer, 2) },
    ]
}

/// Finds or makes some series and adds to their cells.
fn fill(family: Family, number: Number, from: u64) -> Result<(), Overflow> {
    for n in from..from + 4 {
        let cells = family.series(format!("n=\"{n}\"").as_bytes())?;
        for cell in (0..cells.len()).map(|i| cells.at(i)) {
            match number {
                Number::Integer => cell.add(n),
                Number::Float => cell.add_float(n as f64 / 2.0),
                Number::FloatLast => _ = cell.count_float(cells.last(), n as f64 / 2.0),
            }
            cell.get();
            cell.get_float();
        }
        let Some(segments) = cells.segments() else { continue };
        segments.set_level(segments.level(), n);
        for place in 0..segments.len() {
            let made =
                segments.get(place).or_else(|| segments.make(place, 3 + place % 8, n as u16));
            if let Some(cell) = made.and_then(|segment| segments.cell(segment, n as usize)) {
                cell.count(cells.at(1), n);
            }
        }
    }
    Ok(())
}

/// The operations of a service on a region: any of them may be refused, and that is all.
fn work(region: &'static Region) {
    let new = spec("new", Storage::Striped, Number::Integer, 3);
    // Another definition of a name that is there.
    let other = FamilySpec { definition: b"something else", ..families()[0] };
    for spec in families().into_iter().chain([new, other]) {
        if let Ok(registered) = region.family(spec) {
            let _ = fill(registered.family, spec.number, 0);
            let _ = fill(registered.family, spec.number, 6);
            if let Ok(cells) = registered.family.series_beyond_limit(b"beyond") {
                cells.at(0).set(7);
                cells.at(0).update(|n| n.checked_add(1));
                cells.at(usize::MAX).add_and_get(1);
                let _ = cells.at(0).set_exemplar(0, 0.5, b"trace_id=\"a\"");
            }
            // Keeping, removing and sweeping go through words that may lie too.
            let _ = registered.family.series(b"n=\"1\"").map(SeriesGuard::keep);
            registered.family.remove(b"n=\"2\"");
            registered.family.wipe();
            registered.family.remove_where(|text| text.ends_with(b"3\""));
            registered.family.dropped();
        }
    }
    region.wipe(|name| name.len() > 5);
    region.end_families(b"floats");
    (0..3).for_each(|_| region.sweep());
    region.usage();
}

/// A snapshot is whole, and no larger than what it was taken from.
fn look_at(snapshot: &Snapshot) {
    let mut size = 0;
    for family in snapshot.families() {
        size += family.name.len() + family.definition.len();
        for series in snapshot.series(family) {
            size += series.text.len() + 8 * series.values.len();
            size += series.segments().map(|segment| 8 * segment.values.len()).sum::<usize>();
            size += series.exemplars.iter().map(|exemplar| exemplar.text.len()).sum::<usize>();
        }
    }
    assert!(size as u64 <= 4 * MIN_LEN, "a snapshot of {size} bytes");
}

#[allow(unsafe_code)]
fn give_back(file: &std::fs::File) {
    use std::os::fd::AsRawFd;
    let hole = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: a call on an open descriptor with integers only. A process that has
    // the file mapped reads zeros from now on.
    unsafe { libc::fallocate(file.as_raw_fd(), hole, 0, MIN_LEN as libc::off_t) };
}

#[allow(unsafe_code)]
fn stay_on_this_cpu() {
    // SAFETY: a set of CPUs is plain bits, for which zero is a valid value, and
    // lives through the calls.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if let Ok(cpu) = libc::sched_getcpu().try_into() {
            libc::CPU_SET(cpu, &mut set);
            libc::sched_setaffinity(0, size_of_val(&set), &set);
        }
    }
}

/// The region that all inputs begin with.
struct Base {
    bytes: Vec<u8>,
    /// The offsets of the words that are not zero.
    used: Vec<u64>,
}

impl Base {
    fn get() -> &'static Self {
        static BASE: OnceLock<Base> = OnceLock::new();
        BASE.get_or_init(|| {
            let place = Place::new();
            let path = place.0.join("base.talea");
            let region = Region::open(&path, config()).unwrap().region;
            // On one CPU, so that as many words are in use each time.
            let filled = std::thread::spawn(|| {
                stay_on_this_cpu();
                for spec in families() {
                    fill(region.family(spec).unwrap().family, spec.number, 0).unwrap();
                }
            });
            filled.join().unwrap();
            let bytes = std::fs::read(&path).unwrap();
            let words = bytes.chunks_exact(8).zip((0..).step_by(8));
            let used = words.filter(|(word, _)| *word != [0; 8]).map(|(_, at)| at).collect();
            Self { bytes, used }
        })
    }

    /// A copy, with holes where nothing was written.
    fn copy(&self, path: &Path) -> std::fs::File {
        let file = private(path);
        file.set_len(self.bytes.len() as u64).unwrap();
        for (page, at) in self.bytes.chunks(PAGE as usize).zip((0..).step_by(PAGE as usize)) {
            if page.iter().any(|&byte| byte != 0) {
                file.write_all_at(page, at).unwrap();
            }
        }
        file
    }
}

/// The rest of a fuzz program that changes a file.
struct Change<'a> {
    file: &'a std::fs::File,
    rest: &'a [u8],
    /// Whether somebody has the file mapped, who would not survive that it is cut.
    is_live: bool,
}

impl Change<'_> {
    fn all(mut self) {
        // More than so many changes leave nothing of the region.
        for _ in 0..64 {
            if self.one().is_none() {
                return;
            }
        }
    }

    fn one(&mut self) -> Option<()> {
        let [kind] = self.take()?;
        match kind % 10 {
            // A word that is in use, or any.
            0 => self.put(Self::used, |_, new| new)?,
            1 => self.put(Self::used, |old, new| old.wrapping_add(new as i8 as u64))?,
            2 => self.put(Self::used, |old, new| old ^ 1 << (new % 64))?,
            3 => self.put(Self::used, |_, new| u64::MAX >> (new % 64))?,
            4 => self.put(Self::any, |_, new| new)?,
            5 => self.put(Self::any, |old, new| old ^ 1 << (new % 64))?,
            // A word from elsewhere: one that fits there is more likely to fit here.
            6 => {
                let (from, to) = (self.used()?, self.used()?);
                self.write(to, self.read(from));
            }
            // The change, on some records in a row.
            7 => {
                let (from, [apart, times], new) = (self.used()?, self.take()?, self.word()?);
                for n in 0..u64::from(times) {
                    self.write(from + n * u64::from(apart) * 8, new);
                }
            }
            // Cut or grow, in whole pages or not.
            8 => {
                let [sixteenths, odd] = self.take()?;
                if self.is_live {
                    return Some(());
                }
                let len = MIN_LEN / 16 * u64::from(sixteenths % 32);
                self.file.set_len(len + u64::from(odd)).unwrap();
            }
            // Pages that are not there.
            _ => {
                let at = self.any()? / PAGE * PAGE;
                self.write(at, 0);
                (0..512).for_each(|word| self.write(at + word * 8, 0));
            }
        }
        Some(())
    }

    fn put(
        &mut self,
        place: impl Fn(&mut Self) -> Option<u64>,
        change: impl Fn(u64, u64) -> u64,
    ) -> Option<()> {
        let (at, new) = (place(self)?, self.word()?);
        self.write(at, change(self.read(at), new));
        Some(())
    }

    /// The offset of a word that is in use, chosen by a fraction of their number.
    fn used(&mut self) -> Option<u64> {
        let used = &Base::get().used;
        let chosen = u64::from(u16::from_le_bytes(self.take()?));
        Some(used[((chosen * used.len() as u64) >> 16) as usize])
    }

    /// The offset of any word: a fraction of the pages, a word of the page.
    fn any(&mut self) -> Option<u64> {
        let [page, word] = [u16::from_le_bytes(self.take()?), u16::from_le_bytes(self.take()?)];
        let pages = MIN_LEN / PAGE;
        Some(((u64::from(page) * pages) >> 16) * PAGE + u64::from(word) % 512 * 8)
    }

    /// A number, the small ones in fewer bytes.
    fn word(&mut self) -> Option<u64> {
        let [len] = self.take()?;
        let mut bytes = [0; 8];
        let (now, rest) = self.rest.split_at_checked(usize::from(len % 9))?;
        bytes[..now.len()].copy_from_slice(now);
        self.rest = rest;
        Some(u64::from_le_bytes(bytes))
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*first)
    }

    fn read(&self, at: u64) -> u64 {
        let mut bytes = [0; 8];
        let _ = self.file.read_exact_at(&mut bytes, at);
        u64::from_le_bytes(bytes)
    }

    /// Nothing is written beyond the end: only growing grows the file.
    fn write(&self, at: u64, word: u64) {
        if at + 8 <= self.file.metadata().unwrap().len() {
            self.file.write_all_at(&word.to_le_bytes(), at).unwrap();
        }
    }
}
