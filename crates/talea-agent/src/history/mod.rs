//! The values of a page in the last hour, second by second, and in the last day, minute by minute.
//!
//! A `Store` holds ticks in blocks of bytes: the first tick of a block has all series, each later one what
//! changed since (`record`, `codec`); a block that is full is compressed (`block`). `History` has a store for each of the two steps, and a file where
//! they outlive the agent (`file`).

mod block;
mod codec;
mod file;
mod record;
mod series;
mod store;
mod stretch;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;

use self::block::STEPS;
use self::file::HistoryFile;
pub use self::record::Time;
use self::store::Store;
pub use self::stretch::Stretch;
use talea_page::Family;

/// How much is kept, and in how much memory.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// At one second.
    pub seconds: Duration,
    /// At one minute.
    pub minutes: Duration,
    /// The most bytes of each of the two; the oldest go first.
    pub bytes: usize,
}

/// How long a file that cannot be used is left alone.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct History {
    extent: Extent,
    stores: [Store; STEPS.len()],
    kept_in: Option<KeptIn>,
}

/// Where a history is kept beside memory.
#[derive(Debug)]
struct KeptIn {
    path: PathBuf,
    /// `None` while it cannot be used.
    file: Option<HistoryFile>,
    /// When it was tried the last time, by the clock that is never set.
    tried: Option<Duration>,
    lost: u64,
    /// Why not all is in the file.
    trouble: Option<String>,
}

impl History {
    pub fn new(extent: Extent) -> Self {
        let [second, minute] = STEPS;
        let stores = [
            Store::new(second, extent.seconds, extent.bytes),
            Store::new(minute, extent.minutes, extent.bytes),
        ];
        Self { extent, stores, kept_in: None }
    }

    /// Goes on with what a file has, and writes there from now on. Where the file cannot be used, memory has all, and
    /// `add` tries it again once a minute.
    ///
    /// # Errors
    /// The reason why the file cannot be used now.
    pub fn keep_in(&mut self, path: &Path) -> Result<()> {
        let path = path.to_owned();
        self.kept_in = Some(KeptIn { path, file: None, tried: None, lost: 0, trouble: None });
        let used = self.use_file();
        self.note_trouble(&used);
        used
    }

    fn note_trouble(&mut self, written: &Result<()>) {
        let is_in_file = self.is_in_file() == Some(true);
        let Some(kept_in) = &mut self.kept_in else { return };
        match written {
            Err(error) => kept_in.trouble = Some(format!("{error:#}")),
            Ok(()) if is_in_file => kept_in.trouble = None,
            Ok(()) => {}
        }
    }

    /// What is not in the file, and what was lost of it, in words.
    pub(crate) fn faults(&self) -> Vec<String> {
        let Some(KeptIn { lost, trouble, .. }) = &self.kept_in else { return Vec::new() };
        let trouble =
            trouble.iter().map(|why| format!("memory alone has the latest history: {why}"));
        let lost = (*lost > 0).then(|| {
            format!(
                "{lost} bytes of the history's file were damaged when it was opened, and are lost"
            )
        });
        trouble.chain(lost).collect()
    }

    /// Puts what the file has before what memory has, and this into the file.
    fn use_file(&mut self) -> Result<()> {
        let Some(kept_in) = &mut self.kept_in else { return Ok(()) };
        let mut joined = Self::new(self.extent);
        let mut file = HistoryFile::open(&kept_in.path, |store, number, record| {
            joined.take(store, number, record)
        })?;
        kept_in.lost += file.lost();
        let mut written = Ok(());
        for (number, (store, joined)) in self.stores.iter().zip(&mut joined.stores).enumerate() {
            for (first, record) in store.records() {
                joined.take(first, record);
                written = written.and(file.append(number, first, record));
            }
            joined.goes_on_after(store);
        }
        self.stores = joined.stores;
        kept_in.file = Some(file);
        written.and(self.shrink_file())
    }

    /// Reads a file of one of these users, which may be written to meanwhile.
    pub fn read(extent: Extent, path: &Path, owners: &[u32]) -> Result<Self> {
        let mut history = Self::new(extent);
        HistoryFile::read(path, owners, |store, number, record| {
            history.take(store, number, record)
        })?;
        Ok(history)
    }

    /// Takes a record that was written; whether it could be read.
    fn take(&mut self, store: usize, number: u64, record: &[u8]) -> bool {
        self.stores.get_mut(store).is_some_and(|store| store.take(number, record))
    }

    /// Adds what a page shows now. An error says that the file could not be written; memory has it.
    pub(crate) fn add(&mut self, time: Time, families: &[Family]) -> Result<()> {
        let written = self.add_to_both(time, families);
        self.note_trouble(&written);
        written
    }

    fn add_to_both(&mut self, time: Time, families: &[Family]) -> Result<()> {
        let mut written = self.try_again(time);
        for (number, store) in self.stores.iter_mut().enumerate() {
            for (first, record) in store.add(time, families) {
                if let Some(file) = self.kept_in.as_mut().and_then(|it| it.file.as_mut()) {
                    written = written.and(file.append(number, first, &record));
                }
            }
        }
        written.and(self.shrink_file())
    }

    /// Uses a file that could not be used a minute ago.
    fn try_again(&mut self, time: Time) -> Result<()> {
        let Some(kept_in) = self.kept_in.as_mut().filter(|it| it.file.is_none()) else {
            return Ok(());
        };
        let tried = *kept_in.tried.get_or_insert(time.steady);
        if time.steady.saturating_sub(tried) < TRY_AGAIN_AFTER {
            return Ok(());
        }
        kept_in.tried = Some(time.steady);
        self.use_file()
    }

    fn shrink_file(&mut self) -> Result<()> {
        let Some(file) = self.kept_in.as_mut().and_then(|it| it.file.as_mut()) else {
            return Ok(());
        };
        file.shrink(|| {
            let numbered = self.stores.iter().enumerate();
            numbered.flat_map(|(number, store)| {
                store.records().map(move |(first, record)| (number, first, record))
            })
        })
    }

    /// Whether all that is added is written to a file; `None` if that is not wanted.
    pub(crate) fn is_in_file(&self) -> Option<bool> {
        let kept_in = self.kept_in.as_ref()?;
        Some(kept_in.file.as_ref().is_some_and(HistoryFile::is_written))
    }

    /// The bytes of the file that could not be read.
    pub(crate) fn lost_bytes(&self) -> u64 {
        self.kept_in.as_ref().map_or(0, |kept_in| kept_in.lost)
    }

    pub fn last_seconds(&self, last: Duration) -> Stretch {
        self.stores[0].last(last)
    }

    /// The ticks between two times of the wall clock, in milliseconds since 1970, and the tick
    /// before: by seconds as far back as those are kept, else by minutes, and by seconds after the last
    /// of these.
    pub(crate) fn between(&self, from: i64, to: i64) -> Stretch {
        let [seconds, minutes] = &self.stores;
        let oldest_second = seconds.times().next().map_or(i64::MAX, |time| time.unix_millis);
        let is_long = minutes.times().next().is_some_and(|time| time.unix_millis < oldest_second);
        let store = if is_long && from < oldest_second { minutes } else { seconds };
        let before = store.times().map(|time| time.unix_millis).filter(|it| *it < from).max();
        let from = before.unwrap_or(from);
        let is_within = |time: Time| (from..=to).contains(&time.unix_millis);
        let mut parts = store.parts(is_within);
        if std::ptr::eq(store, minutes) {
            let last_minute = minutes.times().next_back().map(|time| time.unix_millis);
            parts.extend(seconds.parts(|time| {
                is_within(time) && last_minute.is_none_or(|last| time.unix_millis > last)
            }));
        }
        Stretch::new(parts)
    }

    /// How much time is kept by seconds, and by minutes.
    pub(crate) fn kept(&self) -> [Duration; 2] {
        [self.extent.seconds, self.extent.minutes]
    }

    /// When the first tick was that is kept, in milliseconds since 1970.
    pub(crate) fn oldest(&self) -> Option<i64> {
        let firsts = self.stores.iter().filter_map(|store| store.times().next());
        firsts.map(|time| time.unix_millis).min()
    }

    #[cfg(test)]
    pub(crate) fn last_minutes(&self, last: Duration) -> Stretch {
        self.stores[1].last(last)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.stores.iter().map(Store::bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use proptest::prelude::*;
    use talea::{Bucketing, Counter, Opts, Registry, Seconds};

    use super::*;
    use talea_page::{Series, Value};

    const ALL: Duration = Duration::from_secs(1 << 20);

    fn extent(seconds: u64, bytes: usize) -> Extent {
        let seconds = Duration::from_secs(seconds);
        Extent { seconds, minutes: seconds * 60, bytes }
    }

    /// As long as any test records.
    fn hours() -> Extent {
        extent(3600, 1 << 20)
    }

    fn at(second: u64) -> Time {
        let steady = Duration::from_secs(second);
        Time { unix_millis: 1_700_000_000_000 + second as i64 * 1000, steady }
    }

    /// A folder, the path of a history in it, and a service.
    fn recording() -> (tempfile::TempDir, PathBuf, Service) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shop.history");
        (folder, path, Service::new())
    }

    fn open(extent: Extent, path: &Path) -> Result<History> {
        let mut history = History::new(extent);
        history.keep_in(path).map(|()| history)
    }

    fn own() -> [u32; 1] {
        [rustix::process::geteuid().as_raw()]
    }

    fn in_file(path: &Path) -> Vec<(Time, Vec<Family>)> {
        seconds(&History::read(hours(), path, &own()).unwrap())
    }

    /// As they are kept: without help texts, empty buckets, and classic buckets beside native ones; by name.
    fn kept(mut families: Vec<Family>) -> Vec<Family> {
        families.sort_by(|one, other| one.name.cmp(&other.name));
        for family in &mut families {
            family.help.clear();
            family.series.sort_by_key(|metric| metric.labels[0].value.clone());
            family.unit.clear();
            family.series.iter_mut().for_each(as_kept);
        }
        families
    }

    /// Has what a history keeps: native buckets without the classic ones beside them, and no exemplars.
    fn as_kept(series: &mut Series) {
        series.created = None;
        let Value::Histogram(histogram) = &mut series.value else { return };
        if histogram.native.is_some() {
            let everything = histogram.classic.pop();
            histogram.classic.clear();
            histogram.classic.extend(everything);
        }
    }

    fn seconds(history: &History) -> Vec<(Time, Vec<Family>)> {
        ticks(&history.last_seconds(ALL))
    }

    fn minutes(history: &History) -> Vec<(Time, Vec<Family>)> {
        ticks(&history.last_minutes(ALL))
    }

    fn ticks(stretch: &Stretch) -> Vec<(Time, Vec<Family>)> {
        let mut all = Vec::new();
        stretch.replay(|_, time, state| all.push((time, kept(state.families()))));
        all
    }

    /// A service whose pages are recorded.
    struct Service {
        registry: Registry,
        orders: talea::Family<talea::DynamicLabels, Counter>,
        waits: talea::Family<talea::DynamicLabels, talea::Histogram<Seconds>>,
    }

    impl Service {
        fn new() -> Self {
            let registry = Registry::for_test().unwrap();
            let orders = registry.family(Opts::new("orders", "O."), &["of"]).unwrap();
            let opts = Opts::new("wait_seconds", "W.").bucketing(Bucketing::Dual).max_buckets(8);
            let waits = registry.family(opts, &["of"]).unwrap();
            Self { registry, orders, waits }
        }

        fn families(&self) -> Vec<Family> {
            kept(self.registry.snapshot().to_families())
        }
    }

    #[derive(Clone, Debug)]
    enum Event {
        Order(u8, u32),
        /// Of so many nanoseconds; a wide spread makes the buckets coarser.
        Wait(u8, u64),
        Remove(u8),
        Wipe,
        Tick(u64),
        /// The agent is killed in the middle of writing so many bytes, and starts again.
        Kill(usize),
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            6 => (0u8..4, 0u32..1000).prop_map(|(of, n)| Event::Order(of, n)),
            6 => (0u8..4, 0u32..62).prop_map(|(of, bits)| Event::Wait(of, 1 << bits)),
            1 => (0u8..4).prop_map(Event::Remove),
            1 => Just(Event::Wipe),
            8 => (1u64..4).prop_map(Event::Tick),
            1 => (0usize..40).prop_map(Event::Kill),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_read_back_is_what_was_shown(events in prop::collection::vec(event(), 1..150)) {
            let (_folder, path, service) = recording();
            let mut history = open(hours(), &path).unwrap();
            let (mut expected, mut second): (Vec<(Time, Vec<Family>)>, _) = (Vec::new(), 0);
            for event in events {
                match event {
                    Event::Order(of, n) => service.orders.with_values(&[of.to_string()]).add(n.into()),
                    Event::Wait(of, nanos) => {
                        service.waits.with_values(&[of.to_string()]).observe(Duration::from_nanos(nanos));
                    }
                    Event::Remove(of) => {
                        service.orders.remove_values(&[of.to_string()]);
                        service.waits.remove_values(&[of.to_string()]);
                    }
                    Event::Wipe => {
                        service.registry.wipe(|_| true);
                    }
                    Event::Tick(later) => {
                        second += later;
                        let families = service.families();
                        history.add(at(second), &families).unwrap();
                        expected.push((at(second), families));
                    }
                    Event::Kill(cut) => {
                        drop(history);
                        let before = fs::metadata(&path).unwrap().len();
                        let len = before.saturating_sub(cut as u64).max(16);
                        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(len).unwrap();
                        history = open(hours(), &path).unwrap();
                        let found = seconds(&history).len();
                        prop_assert!(cut > 0 || found == expected.len());
                        expected.truncate(found);
                    }
                }
            }
            prop_assert_eq!(&seconds(&history), &expected);
            prop_assert_eq!(in_file(&path), expected);
        }

        #[test]
        fn every_record_whose_bytes_are_whole_is_read_back_and_what_is_lost_is_counted(
            damage in prop::collection::vec(damage(), 1..4),
        ) {
            let (bytes, service) = (recorded_file(), Service::new());
            let (_folder, path, _) = recording();
            let mut damaged = bytes.clone();
            damage.iter().for_each(|it| it.strike(&mut damaged));
            fs::write(&path, &damaged).unwrap();
            let whole = whole_records(&bytes, &damaged);
            let mut expected = History::new(hours());
            for (store, number, record) in &whole {
                expected.take(*store, *number, record);
            }
            let mut history = open(hours(), &path).unwrap();
            prop_assert_eq!(seconds(&history), seconds(&expected));
            prop_assert_eq!(minutes(&history), minutes(&expected));
            let is_unread = history.lost_bytes() > 0;
            prop_assert!(is_unread || damaged == bytes || bytes.starts_with(&damaged));
            prop_assert!(history.lost_bytes() <= damaged.len() as u64);
            if let Ok(aside) = fs::read(path.with_extension("history.stale-1")) {
                prop_assert_eq!(aside, damaged);
            }
            // It goes on.
            history.add(at(20_000), &service.families()).unwrap();
            prop_assert_eq!(history.is_in_file(), Some(true));
            prop_assert_eq!(in_file(&path), seconds(&history));
        }
    }

    /// What happens to the bytes of a file.
    #[derive(Clone, Debug)]
    enum Damage {
        Flip(prop::sample::Index, u8),
        Cut(prop::sample::Index),
        Zero(prop::sample::Index, prop::sample::Index),
        Append(Vec<u8>),
    }

    fn damage() -> impl Strategy<Value = Damage> {
        let place = any::<prop::sample::Index>;
        prop_oneof![
            4 => (place(), 0u8..8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
            1 => place().prop_map(Damage::Cut),
            2 => (place(), place()).prop_map(|(at, len)| Damage::Zero(at, len)),
            1 => prop::collection::vec(any::<u8>(), 1..200).prop_map(Damage::Append),
        ]
    }

    impl Damage {
        fn strike(&self, bytes: &mut Vec<u8>) {
            match self {
                Self::Flip(at, bit) if !bytes.is_empty() => {
                    let at = at.index(bytes.len());
                    bytes[at] ^= 1 << bit;
                }
                Self::Cut(at) => bytes.truncate(at.index(bytes.len() + 1)),
                Self::Zero(at, len) if !bytes.is_empty() => {
                    let at = at.index(bytes.len());
                    let len = len.index(bytes.len() - at + 1);
                    bytes[at..at + len].fill(0);
                }
                Self::Append(more) => bytes.extend(more),
                Self::Flip(..) | Self::Zero(..) => {}
            }
        }
    }

    /// A file of two and a half minutes by seconds, and of two hours and a half by minutes.
    fn recorded_file() -> Vec<u8> {
        static BYTES: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
        let recorded = BYTES.get_or_init(|| {
            let (_folder, path, service) = recording();
            let mut history = open(hours(), &path).unwrap();
            for second in (0..9_000).step_by(60).chain(9_001..9_150) {
                service.orders.with_values(&["a"]).add(second);
                service.waits.with_values(&["a"]).observe(Duration::from_millis(second));
                history.add(at(second), &service.families()).unwrap();
            }
            drop(history);
            fs::read(&path).unwrap()
        });
        recorded.clone()
    }

    /// The records of a file of which no byte is another in the damaged one.
    fn whole_records(bytes: &[u8], damaged: &[u8]) -> Vec<(usize, u64, Vec<u8>)> {
        let (mut at, mut whole) = (16, Vec::new());
        while at < bytes.len() {
            let len = <[u8; 4]>::try_from(&bytes[at + 4..at + 8]).unwrap();
            let end = at + 12 + u32::from_le_bytes(len) as usize;
            if damaged.get(at..end) == Some(&bytes[at..end]) {
                let number = <[u8; 8]>::try_from(&bytes[at + 13..at + 21]).unwrap();
                let store = usize::from(bytes[at + 12]);
                whole.push((store, u64::from_le_bytes(number), bytes[at + 21..end].to_vec()));
            }
            at = end;
        }
        whole
    }

    #[test]
    fn memory_and_file_stay_within_their_bounds() {
        let (_folder, path, service) = recording();
        (0..50).for_each(|n| service.orders.with_values(&[format!("{n:0>100}")]).inc());
        // By time, and by bytes.
        for (extent, most_ticks, most_bytes) in
            [(extent(120, 1 << 30), 180, 1 << 30), (extent(1 << 20, 200_000), 1 << 20, 250_000)]
        {
            let mut history = open(extent, &path).unwrap();
            for second in 0..20_000 {
                service.orders.with_values(&[format!("{:0>100}", second % 50)]).inc();
                let families = if second % 100 == 0 { service.families() } else { Vec::new() };
                history.add(at(second), &families).unwrap();
            }
            let found = seconds(&history);
            assert!(found.len() <= most_ticks && found.len() >= 120, "{}", found.len());
            assert_eq!(found.last().unwrap().0, at(19_999));
            assert!(history.bytes() <= most_bytes * 2, "{}", history.bytes());
            let len = fs::metadata(&path).unwrap().len();
            assert!(len <= 3 * history.bytes() as u64 + (2 << 20), "{len} of {}", history.bytes());
            let mut minutes = 0;
            history.last_minutes(ALL).replay(|_, _, _| minutes += 1);
            assert!(minutes >= 30, "{minutes}");
        }
    }

    #[test]
    fn a_record_that_could_not_be_written_comes_with_its_block() {
        let (_folder, path, service) = recording();
        let mut history = open(hours(), &path).unwrap();
        for second in 0..130 {
            service.orders.with_values(&["a"]).add(second);
            history.kept_in.as_mut().unwrap().file.as_mut().unwrap().fail_next =
                (20..25).contains(&second);
            let written = history.add(at(second), &service.families());
            assert_eq!(written.is_err(), second == 20, "{second}: {written:?}");
            let is_missing = (20..60).contains(&second);
            assert_eq!(history.is_in_file(), Some(!is_missing), "{second}");
            assert_eq!(history.faults().len(), usize::from(is_missing), "{second}");
            if second == 59 {
                assert!(
                    in_file(&path) == seconds(&history)[..20],
                    "what follows cannot be read yet"
                );
            }
        }
        assert_eq!(seconds(&history).len(), 130, "memory has all");
        assert!(in_file(&path) == seconds(&history));
    }

    #[test]
    fn a_record_that_is_too_long_for_the_file_hides_none_behind_it() {
        let (_folder, path, service) = recording();
        service.orders.with_values(&["a"]).inc();
        let usual = service.families();
        let mut long = usual.clone();
        long[0].series[0].labels[0].value = (0..1 << 18).map(|n| format!("{n:x}")).collect();
        let mut history = open(extent(3600, 8 << 20), &path).unwrap();
        for second in 0..70 {
            let families = if (10..12).contains(&second) { &long } else { &usual };
            let written = history.add(at(second), families);
            assert_eq!(written.is_err(), second == 10, "{second}: {written:?}");
        }
        assert!(in_file(&path) == seconds(&history));
    }

    #[test]
    fn a_file_that_is_removed_is_written_anew_and_one_in_its_place_is_left_alone() {
        let (folder, path, service) = recording();
        let mut history = open(hours(), &path).unwrap();
        let mut add = |second| history.add(at(second), &service.families());
        let in_file = || in_file(&path).len();
        (0..5).for_each(|second| add(second).unwrap());
        fs::remove_file(&path).unwrap();
        add(5).unwrap();
        assert_eq!(in_file(), 6);
        add(6).unwrap();
        assert_eq!(in_file(), 7);
        fs::rename(&path, folder.path().join("moved")).unwrap();
        fs::write(&path, "precious").unwrap();
        let reason = format!("{:#}", add(7).unwrap_err());
        assert!(reason.contains("another file has taken its place"), "{reason}");
        assert_eq!(fs::read(&path).unwrap(), b"precious");
        add(8).unwrap_err();
        fs::rename(folder.path().join("moved"), &path).unwrap();
        (9..61).for_each(|second| add(second).unwrap());
        assert_eq!(in_file(), 61, "with its block");
        fs::remove_file(&path).unwrap();
        add(61).unwrap();
        assert_eq!(in_file(), 62);
    }

    #[test]
    fn a_flipped_bit_costs_one_block_of_one_store_at_most() {
        let bytes = recorded_file();
        let (_folder, path, _) = recording();
        fs::write(&path, &bytes).unwrap();
        let history = open(hours(), &path).unwrap();
        let whole = [seconds(&history), minutes(&history)];
        drop(history);
        for place in (0..bytes.len()).step_by(101) {
            let (_folder, path, _) = recording();
            let mut damaged = bytes.clone();
            damaged[place] ^= 4;
            fs::write(&path, &damaged).unwrap();
            let history = open(hours(), &path).unwrap();
            let found = [seconds(&history), minutes(&history)];
            let lost = [0, 1].map(|store| whole[store].len() - found[store].len());
            assert!(lost.contains(&0) && lost.iter().all(|it| *it <= 60), "{place}: {lost:?}");
            assert!(found[0].iter().all(|tick| whole[0].contains(tick)), "{place}");
            assert!(history.lost_bytes() > 0, "{place}");
            assert!(in_file(&path) == found[0], "the file goes on with the byte {place}");
        }
    }

    #[test]
    fn a_file_of_zeros_of_any_length_is_set_aside_unread_but_for_its_begin() {
        let (_folder, path, service) = recording();
        for (number, len) in (1..).zip([17, 1 << 16, 1 << 40]) {
            let zeros = fs::File::create(&path).unwrap();
            zeros.set_len(len).unwrap();
            fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
            let mut history = open(hours(), &path).unwrap();
            history.add(at(0), &service.families()).unwrap();
            assert_eq!((in_file(&path).len(), history.lost_bytes()), (1, len));
            let aside = path.with_extension(format!("history.stale-{number}"));
            assert_eq!(fs::metadata(aside).unwrap().len(), len);
        }
    }

    #[test]
    fn a_history_with_damage_goes_on_also_if_no_more_files_can_be_moved_aside() {
        let (_folder, path, service) = recording();
        for number in 1..=9 {
            fs::write(path.with_extension(format!("history.stale-{number}")), "precious").unwrap();
        }
        let mut damaged = recorded_file();
        damaged[100] ^= 1;
        fs::write(&path, &damaged).unwrap();
        let mut history = open(hours(), &path).unwrap();
        assert!(history.faults()[0].contains("bytes of the history's file were damaged"));
        history.add(at(20_000), &service.families()).unwrap();
        assert!(history.lost_bytes() > 0 && seconds(&history).len() > 60);
        assert_eq!(history.is_in_file(), Some(true));
        assert!(in_file(&path) == seconds(&history));
    }

    #[test]
    fn a_file_that_is_no_history_of_this_version_is_moved_aside_and_another_begun() {
        let newer = [&b"talea history 3\n"[..], &[7; 100]].concat();
        let older = [&b"talea history 1\n"[..], &[7; 100]].concat();
        let zeros = vec![0; 1 << 16];
        let mut number = 0;
        let (_folder, path, service) = recording();
        for content in [&zeros[..], b"precious", b"talea history 2 ", &newer, &older, &[0]] {
            number += 1;
            fs::write(&path, content).unwrap();
            let mut history = open(hours(), &path).unwrap();
            history.add(at(0), &service.families()).unwrap();
            assert_eq!(in_file(&path).len(), 1);
            let aside = path.with_extension(format!("history.stale-{number}"));
            assert_eq!(fs::read(aside).unwrap(), content);
            assert_eq!(history.lost_bytes(), content.len() as u64);
        }
        // The first line of a writer that was killed has nothing.
        for content in [&b""[..], b"talea hist", b"talea history 2"] {
            fs::write(&path, content).unwrap();
            let mut history = open(hours(), &path).unwrap();
            history.add(at(0), &service.families()).unwrap();
            assert_eq!((in_file(&path).len(), history.lost_bytes()), (1, 0));
        }
    }

    #[test]
    fn no_file_that_was_moved_aside_is_ever_removed() {
        let (_folder, path, service) = recording();
        for number in 1..=9 {
            let aside = path.with_extension(format!("history.stale-{number}"));
            fs::write(&aside, format!("precious {number}")).unwrap();
        }
        fs::write(&path, "torn").unwrap();
        let mut history = History::new(hours());
        let reason = format!("{:#}", history.keep_in(&path).unwrap_err());
        assert!(reason.contains("remove ") && reason.contains(".stale-9"), "{reason}");
        history.add(at(0), &service.families()).unwrap();
        assert_eq!(history.is_in_file(), Some(false));
        for number in 1..=9 {
            let aside = path.with_extension(format!("history.stale-{number}"));
            assert_eq!(fs::read_to_string(&aside).unwrap(), format!("precious {number}"));
        }
        assert_eq!(fs::read(&path).unwrap(), b"torn");
    }

    #[test]
    fn a_file_that_can_be_used_later_gets_what_memory_has() {
        let (folder, path, service) = recording();
        let mut other = open(hours(), &path).unwrap();
        other.add(at(0), &service.families()).unwrap();
        let mut history = History::new(hours());
        history.keep_in(&path).unwrap_err();
        let missing = folder.path().join("missing").join("shop.history");
        let mut in_folder = History::new(hours());
        in_folder.keep_in(&missing).unwrap_err();
        let mut failed = 0;
        for second in 1..200 {
            if second == 100 {
                drop(std::mem::replace(&mut other, History::new(hours())));
                fs::create_dir(missing.parent().unwrap()).unwrap();
            }
            failed += usize::from(history.add(at(second), &service.families()).is_err());
            let _ = in_folder.add(at(second), &service.families());
        }
        assert_eq!(failed, 1, "it is tried once a minute");
        assert_eq!(history.is_in_file(), Some(true));
        assert_eq!(seconds(&history).len(), 200, "with that of the other agent");
        assert!(in_file(&path) == seconds(&history));
        assert_eq!(seconds(&in_folder).len(), 199);
        assert!(in_file(&missing) == seconds(&in_folder));
        history.add(at(200), &service.families()).unwrap();
        assert!(in_file(&path) == seconds(&history));
        let mut minutes = Vec::new();
        history.last_minutes(ALL).replay(|_, time, _| minutes.push(time.steady.as_secs()));
        assert_eq!(minutes, [0, 1, 61, 121, 181]);
    }

    #[test]
    fn a_region_and_the_file_of_another_writer_are_left_alone() {
        let (folder, path, _) = recording();
        let reason = |path: &Path| format!("{:#}", open(hours(), path).unwrap_err());
        let shm = tempfile::tempdir_in("/dev/shm").unwrap();
        let region = shm.path().join("shop.talea");
        let _registry = Registry::open(&region).unwrap();
        assert!(reason(&region).contains("it is a region"), "{}", reason(&region));
        assert!(Registry::attach(&region).is_ok());
        fs::write(&path, "").unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(reason(&link).contains("link"), "{}", reason(&link));
        assert!(reason(Path::new("/dev/null")).contains("no regular file"));
        fs::remove_file(&path).unwrap();
        let _first = open(hours(), &path).unwrap();
        assert!(reason(&path).contains("another agent writes to it"));
    }

    #[test]
    fn a_file_that_another_user_may_write_is_no_history_whoever_reads_it() {
        let (_folder, path, service) = recording();
        let mut history = open(hours(), &path).unwrap();
        history.add(at(0), &service.families()).unwrap();
        drop(history);
        let reasons = |path: &Path| {
            let read = History::read(hours(), path, &own()).unwrap_err();
            [open(hours(), path).unwrap_err(), read].map(|error| format!("{error:#}"))
        };
        for mode in [0o620, 0o602, 0o666] {
            fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            for reason in reasons(&path) {
                assert!(reason.contains("chmod go-w"), "{reason}");
            }
        }
        fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(1), None).unwrap();
            for reason in reasons(&path) {
                assert!(reason.contains("it belongs to the user 1, expected 0"), "{reason}");
            }
            assert!(History::read(hours(), &path, &[7, 1]).is_ok(), "a user that was named");
        }
    }

    #[test]
    fn writing_a_file_anew_leaves_the_file_beside_it_alone() {
        let (folder, path, service) = recording();
        let beside = folder.path().join("shop.history.new");
        fs::write(&beside, "precious").unwrap();
        // Left by an agent that was killed while it wrote.
        fs::write(folder.path().join(".shop.history.new"), vec![0; 1 << 16]).unwrap();
        let mut history = open(hours(), &path).unwrap();
        history.add(at(0), &service.families()).unwrap();
        fs::remove_file(&path).unwrap();
        history.add(at(1), &service.families()).unwrap();
        assert_eq!(in_file(&path).len(), 2);
        assert_eq!(fs::read(&beside).ok().as_deref(), Some(&b"precious"[..]));
        assert!(!folder.path().join(".shop.history.new").exists());
    }

    #[test]
    fn a_file_beside_that_another_agent_writes_is_left_alone() {
        let (folder, path, service) = recording();
        for beside in ["shop.history.new", ".shop.history.new"].map(|name| folder.path().join(name))
        {
            let mut other = open(hours(), &beside).unwrap();
            let mut history = open(hours(), &path).unwrap();
            (0..2).for_each(|second| other.add(at(second), &service.families()).unwrap());
            fs::remove_file(&path).unwrap();
            let _ = history.add(at(1), &service.families());
            assert_eq!(in_file(&beside).len(), 2, "{}", beside.display());
        }
    }

    #[test]
    fn a_file_beside_that_another_user_made_does_not_become_the_history() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let (folder, path, service) = recording();
        let beside = folder.path().join(".shop.history.new");
        fs::write(&beside, "").unwrap();
        std::os::unix::fs::chown(&beside, Some(1), None).unwrap();
        let mut history = open(hours(), &path).unwrap();
        history.add(at(0), &service.families()).unwrap();
        fs::remove_file(&path).unwrap();
        let refused = history.add(at(1), &service.families()).unwrap_err();
        assert!(
            format!("{refused:#}").contains("belongs to the user 1, expected 0"),
            "{refused:#}"
        );
        assert!(beside.exists() && !path.exists());
    }

    #[test]
    fn a_clock_that_is_set_back_loses_no_tick() {
        let service = Service::new();
        let mut history = History::new(hours());
        for second in 0..100u64 {
            let wall = if second < 50 { second } else { second.saturating_sub(3_000) };
            let steady = Duration::from_secs(second);
            let time = Time { unix_millis: wall as i64 * 1000, steady };
            history.add(time, &service.families()).unwrap();
        }
        assert_eq!(seconds(&history).len(), 100);
        let mut last = Vec::new();
        let stretch = history.last_seconds(Duration::from_secs(10));
        stretch.replay(|_, time, _| last.push(time.steady.as_secs()));
        assert_eq!(last, (90..100).collect::<Vec<u64>>());
    }

    /// A service with so many endpoints, and the metrics of the default page.
    struct Endpoints {
        registry: Registry,
        times: Vec<talea::Histogram<Seconds>>,
        statuses: Vec<[Counter; 3]>,
        outcomes: Vec<[Counter; 3]>,
        in_flight: Vec<talea::Gauge>,
    }

    impl Endpoints {
        fn new(number: usize) -> Self {
            let registry = Registry::with_config(talea::Config::with_len(64 << 20)).unwrap();
            let endpoint = ["method", "route"];
            let opts = Opts::new("http_request_duration_seconds", "D.").bucketing(Bucketing::Dual);
            let times = registry.family::<talea::Histogram<Seconds>>(opts, &endpoint).unwrap();
            let opts = Opts::new("http_requests_in_flight", "I.");
            let in_flight = registry.family::<talea::Gauge>(opts, &endpoint).unwrap();
            let names = |number| ["GET".to_owned(), format!("/api/resource/{number}/{{id}}")];
            let names: Vec<[String; 2]> = (0..number).map(names).collect();
            let counters = |name, label, values: [&str; 3]| {
                let labels = ["method", "route", label];
                let family = registry.family::<Counter>(Opts::new(name, "C."), &labels).unwrap();
                names
                    .iter()
                    .map(|[method, route]| {
                        values.map(|value| family.with_values(&[method, route, value]).keep())
                    })
                    .collect()
            };
            Self {
                times: names.iter().map(|names| times.with_values(names).keep()).collect(),
                statuses: counters("http_requests", "status", ["2xx", "4xx", "5xx"]),
                outcomes: counters(
                    "http_request_outcomes",
                    "outcome",
                    ["complete", "aborted", "panicked"],
                ),
                in_flight: names.iter().map(|names| in_flight.with_values(names).keep()).collect(),
                registry,
            }
        }

        /// So many requests to each endpoint, whose times are log-normal.
        fn requests(&self, random: &mut fastrand::Rng, number: usize) {
            for (endpoint, times) in self.times.iter().enumerate() {
                for _ in 0..random.usize(..=2 * number) {
                    let normal: f64 = (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
                    let seconds = 0.02 * (0.5 * normal + 0.3 * (endpoint % 7) as f64).exp();
                    times.observe(Duration::from_secs_f64(seconds));
                    let ending = if random.u8(..) == 0 { random.usize(..3) } else { 0 };
                    self.statuses[endpoint][ending].inc();
                    self.outcomes[endpoint][ending].inc();
                }
                self.in_flight[endpoint].set(random.i64(0..4));
            }
        }

        fn families(&self) -> Vec<Family> {
            self.registry.snapshot().to_families()
        }
    }

    #[test]
    fn an_hour_of_200_endpoints_takes_less_than_30_mb() {
        let (service, mut random) = (Endpoints::new(200), fastrand::Rng::with_seed(1));
        let mut history = History::new(extent(3600, 1 << 30));
        // Two full blocks, which are compressed, and the first tick of another.
        const SECONDS: u64 = 121;
        for second in 0..SECONDS {
            service.requests(&mut random, 20);
            history.add(at(second), &service.families()).unwrap();
        }
        let [seconds, _] = &history.stores;
        let hour = seconds.bytes() as u64 * 3600 / SECONDS;
        println!("an hour takes {hour} bytes");
        assert!(hour < 30_000_000, "{hour}");
    }
}
