//! What waits to be sent: collections, oldest first, within a bound, in memory or in a folder.

mod folder;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use self::folder::Folder;
use crate::error::Error;
use crate::record::{Collection, Counts};

/// The most bytes that wait in memory, if the folder takes no more.
const MOST_BESIDE_FOLDER: usize = 64 << 20;

/// Collections that wait.
pub(crate) struct Queue {
    most_bytes: usize,
    state: Mutex<State>,
    /// A collection came.
    came: Notify,
    /// The last one left.
    emptied: Notify,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Entry>,
    /// Of all that wait.
    bytes: usize,
    /// Of those among them that wait in memory, though there is a folder.
    beside_folder: usize,
    /// The entry that is being sent, which no other displaces.
    in_flight: Option<u64>,
    next: u64,
    folder: Option<Folder>,
}

struct Entry {
    id: u64,
    time: i64,
    bytes: usize,
    /// What is not sent of it yet.
    rest: Counts,
    /// The collection, unless it is in the folder.
    memory: Option<Arc<Collection>>,
}

/// The reason why something is dropped that was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// There was no room for it.
    Full,
    /// It waited for too long.
    Age,
    /// The folder did not take it, and there was no room in memory.
    Disk,
    /// It was in the folder, and can no longer be read.
    Damaged,
}

/// What a queue drops to stay within its bound, or what it could not take.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Pushed {
    pub(crate) dropped: Vec<(Reason, Counts)>,
    /// The error of the folder, if it did not take the collection.
    pub(crate) error: Option<String>,
}

/// The oldest collection, as far as it is known without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) id: u64,
    pub(crate) time: i64,
}

/// How much waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) counts: Counts,
    pub(crate) bytes: usize,
    /// The time of the oldest.
    pub(crate) oldest: Option<i64>,
}

impl Queue {
    /// An empty queue in memory, or the one that a folder has. Also returns how many files of the folder were
    /// damaged, and are removed.
    pub(crate) fn open(folder: Option<&Path>, most_bytes: usize) -> Result<(Self, u64), Error> {
        let mut state = State::default();
        let mut damaged = 0;
        if let Some(path) = folder {
            let (folder, found) = Folder::open(path)?;
            damaged = found.damaged;
            for file in found.files {
                state.bytes += file.bytes;
                state.next = file.id + 1;
                state.waiting.push_back(Entry {
                    id: file.id,
                    time: file.time,
                    bytes: file.bytes,
                    rest: file.counts,
                    memory: None,
                });
            }
            state.folder = Some(folder);
        }
        let (came, emptied) = (Notify::new(), Notify::new());
        Ok((Self { most_bytes, state: Mutex::new(state), came, emptied }, damaged))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a collection. With a folder, it is on disk when this returns, unless the result says
    /// otherwise.
    pub(crate) fn push(&self, collection: Collection) -> Pushed {
        let mut pushed = Pushed::default();
        let (bytes, counts) = (collection.bytes(), collection.counts());
        let mut state = self.state();
        if bytes > self.most_bytes {
            pushed.dropped.push((Reason::Full, counts));
            return pushed;
        }
        while state.bytes + bytes > self.most_bytes {
            let Some(dropped) = state.drop_oldest() else { break };
            pushed.dropped.push((Reason::Full, dropped));
        }
        let id = state.next;
        state.next += 1;
        let time = collection.time;
        let written = state.folder.as_mut().map(|folder| folder.write(id, &collection));
        let memory = match written {
            Some(Ok(())) => None,
            Some(Err(error)) => {
                pushed.error = Some(error.to_string());
                if state.beside_folder + bytes > MOST_BESIDE_FOLDER {
                    pushed.dropped.push((Reason::Disk, counts));
                    return pushed;
                }
                state.beside_folder += bytes;
                Some(Arc::new(collection))
            }
            None => Some(Arc::new(collection)),
        };
        state.bytes += bytes;
        state.waiting.push_back(Entry { id, time, bytes, rest: counts, memory });
        drop(state);
        self.came.notify_one();
        pushed
    }

    /// The oldest collection, once there is one. It is in flight until it is [ended](Self::end).
    pub(crate) async fn head(&self) -> Head {
        loop {
            if let Some(head) = self.try_head() {
                return head;
            }
            self.came.notified().await;
        }
    }

    fn try_head(&self) -> Option<Head> {
        let mut state = self.state();
        let head = state.waiting.front().map(|entry| Head { id: entry.id, time: entry.time })?;
        state.in_flight = Some(head.id);
        Some(head)
    }

    /// The collection in flight. If it cannot be read as a whole, what is left of it comes with the
    /// error.
    pub(crate) fn load(&self, head: Head) -> (Option<Arc<Collection>>, Option<String>) {
        let state = self.state();
        let entry = state.waiting.iter().find(|entry| entry.id == head.id);
        match (entry.and_then(|entry| entry.memory.clone()), &state.folder) {
            (Some(memory), _) => (Some(memory), None),
            (None, Some(folder)) => {
                let (found, error) = folder.read(head.id);
                (found.map(Arc::new), error.map(|error| error.to_string()))
            }
            (None, None) => (None, None),
        }
    }

    /// Notes that a part of the collection in flight does not wait any more.
    pub(crate) fn settle(&self, head: Head, counts: Counts) {
        let mut state = self.state();
        if let Some(entry) = state.waiting.iter_mut().find(|entry| entry.id == head.id) {
            entry.rest = entry.rest - counts;
        }
    }

    /// Removes the collection in flight, and returns what was not settled of it.
    pub(crate) fn end(&self, head: Head) -> Counts {
        let mut state = self.state();
        state.in_flight = None;
        let place = state.waiting.iter().position(|entry| entry.id == head.id);
        let rest = place.map_or(Counts::default(), |place| state.remove(place));
        let is_empty = state.waiting.is_empty();
        drop(state);
        if is_empty {
            self.emptied.notify_waiters();
        }
        rest
    }

    /// Waits until nothing waits.
    pub(crate) async fn empty(&self) {
        loop {
            let emptied = self.emptied.notified();
            if self.state().waiting.is_empty() {
                return;
            }
            emptied.await;
        }
    }

    pub(crate) fn load_now(&self) -> Load {
        let state = self.state();
        let waiting = &state.waiting;
        Load {
            counts: waiting.iter().fold(Counts::default(), |all, entry| all + entry.rest),
            bytes: state.bytes,
            oldest: waiting.front().map(|entry| entry.time),
        }
    }
}

impl State {
    /// Removes the oldest entry that is not in flight, and returns what was not sent of it.
    fn drop_oldest(&mut self) -> Option<Counts> {
        let in_flight = self.in_flight;
        let place = self.waiting.iter().position(|entry| Some(entry.id) != in_flight)?;
        Some(self.remove(place))
    }

    fn remove(&mut self, place: usize) -> Counts {
        let Some(entry) = self.waiting.remove(place) else { return Counts::default() };
        self.bytes -= entry.bytes;
        match (&entry.memory, &mut self.folder) {
            (None, Some(folder)) => folder.remove(entry.id),
            (Some(_), Some(_)) => self.beside_folder -= entry.bytes,
            _ => {}
        }
        entry.rest
    }
}

impl Reason {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Age => "age",
            Self::Disk => "disk",
            Self::Damaged => "damaged",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;
    use crate::record::Record;

    fn counts(samples: u64) -> Counts {
        Counts { samples, histograms: 1, exemplars: 2 }
    }

    fn collection(n: u64) -> Collection {
        let record = |part: u64| Record {
            counts: counts(10 * n + part),
            body: format!("collection {n}, part {part}").into_bytes(),
        };
        Collection { time: n as i64 * 1_000, records: vec![record(0), record(1)] }
    }

    fn open(folder: &TempDir) -> (Queue, u64) {
        Queue::open(Some(folder.path()), 1 << 20).unwrap()
    }

    /// All that waits, in its order, which is taken out.
    fn take(queue: &Queue) -> Vec<Collection> {
        let mut all = Vec::new();
        while let Some(head) = queue.try_head() {
            let (found, _) = queue.load(head);
            all.extend(found.map(|it| (*it).clone()));
            queue.end(head);
        }
        all
    }

    fn files(folder: &TempDir) -> Vec<std::path::PathBuf> {
        let paths = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let mut all: Vec<_> = paths.filter(|path| path.extension().is_some()).collect();
        all.sort();
        all
    }

    #[test]
    fn what_waits_in_a_folder_is_there_after_a_restart() {
        let folder = TempDir::new().unwrap();
        let all: Vec<_> = (0..5).map(collection).collect();
        let (queue, _) = open(&folder);
        for one in &all {
            assert_eq!(queue.push(one.clone()), Pushed::default());
        }
        let load = queue.load_now();
        assert_eq!(load.oldest, Some(0));
        drop(queue);
        let (queue, damaged) = open(&folder);
        assert_eq!((queue.load_now(), damaged), (load, 0));
        // The first is sent, and the second in part.
        queue.end(queue.try_head().unwrap());
        let head = queue.try_head().unwrap();
        queue.settle(head, counts(10));
        drop(queue);
        let (queue, _) = open(&folder);
        queue.push(collection(5));
        let expected: Vec<_> = all[1..].iter().cloned().chain([collection(5)]).collect();
        assert_eq!(take(&queue), expected);
        assert_eq!(queue.load_now(), Load::default());
        assert_eq!(files(&folder), Vec::<std::path::PathBuf>::new());
    }

    #[test]
    fn a_folder_belongs_to_one_pusher() {
        let folder = TempDir::new().unwrap();
        let (_queue, _) = open(&folder);
        let Err(error) = Queue::open(Some(folder.path()), 1) else { panic!("it is opened twice") };
        assert!(error.to_string().ends_with("another pusher uses this folder"), "{error}");
    }

    #[test]
    fn a_file_that_is_damaged_is_read_as_far_as_it_is_whole() {
        let folder = TempDir::new().unwrap();
        let whole = collection(7);
        let first = Collection { records: whole.records[..1].to_vec(), ..whole.clone() };
        let (queue, _) = open(&folder);
        queue.push(whole.clone());
        queue.push(collection(8));
        drop(queue);
        let path = &files(&folder)[0];
        let bytes = fs::read(path).unwrap();
        let second = bytes.len() - folder::RECORD_HEAD - whole.records[1].body.len();
        let mut cases: Vec<(String, Vec<u8>)> = Vec::new();
        for end in [0, 5, folder::HEAD - 1, folder::HEAD, second - 1, second, bytes.len() - 1] {
            cases.push((format!("cut at {end}"), bytes[..end].to_vec()));
        }
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x10;
            cases.push((format!("byte {at} changed"), changed));
        }
        let nothing = Collection { records: Vec::new(), ..whole.clone() };
        for (what, changed) in cases {
            let is_same_to = |end: usize| changed.get(..end) == Some(&bytes[..end]);
            let expected = match () {
                () if is_same_to(second) => Some(first.clone()),
                () if is_same_to(folder::HEAD) => Some(nothing.clone()),
                () => None,
            };
            fs::write(path, &changed).unwrap();
            let (queue, damaged) = open(&folder);
            assert_eq!(damaged, u64::from(expected.is_none()), "{what}");
            if let Some(expected) = expected {
                let head = queue.try_head().unwrap();
                let (found, error) = queue.load(head);
                assert_eq!(*found.unwrap(), expected, "{what}");
                assert!(error.is_some(), "{what}");
                assert_eq!(queue.end(head), whole.counts(), "all that was not settled is lost");
                // The next is not concerned.
                assert_eq!(queue.try_head().unwrap().time, 8_000, "{what}");
            }
        }
    }

    #[test]
    fn what_a_killed_process_left_unfinished_is_removed() {
        let folder = TempDir::new().unwrap();
        let unfinished = folder.path().join("00000000000000000003.new");
        fs::write(&unfinished, b"talpu").unwrap();
        let others = folder.path().join("notes.txt");
        fs::write(&others, b"mine").unwrap();
        let (queue, damaged) = open(&folder);
        assert_eq!((queue.load_now(), damaged), (Load::default(), 0));
        assert_eq!(files(&folder), [others]);
    }

    #[test]
    fn what_a_disk_does_not_take_waits_in_memory_and_is_counted() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("queue");
        let (queue, _) = Queue::open(Some(&path), usize::MAX).unwrap();
        queue.push(collection(1));
        fs::remove_dir_all(&path).unwrap();
        let pushed = queue.push(collection(2));
        assert!(pushed.error.is_some() && pushed.dropped.is_empty());
        let large = |n| {
            let body = vec![0; MOST_BESIDE_FOLDER];
            Collection { time: n, records: vec![Record { counts: counts(5), body }] }
        };
        let pushed = queue.push(large(3));
        assert_eq!(pushed.dropped, [(Reason::Disk, counts(5))]);
        // The disk is there again.
        fs::create_dir(&path).unwrap();
        assert_eq!(queue.push(collection(4)), Pushed::default());
        let times: Vec<_> = take(&queue).iter().map(|it| it.time).collect();
        assert_eq!(times, [2_000, 4_000], "the first went with the folder");
        assert!(queue.push(large(5)).error.is_none());
    }

    #[test]
    fn the_oldest_goes_first_but_for_the_one_in_flight() {
        let size = collection(1).bytes();
        for folder in [None, Some(TempDir::new().unwrap())] {
            let path = folder.as_ref().map(TempDir::path);
            let (queue, _) = Queue::open(path, 3 * size).unwrap();
            (1..=3).for_each(|n| assert_eq!(queue.push(collection(n)), Pushed::default()));
            let head = queue.try_head().unwrap();
            for n in 4..=6 {
                let dropped = vec![(Reason::Full, collection(n - 2).counts())];
                assert_eq!(queue.push(collection(n)), Pushed { dropped, error: None });
                assert_eq!(queue.load_now().bytes, 3 * size);
            }
            queue.settle(head, collection(1).counts());
            assert_eq!(queue.end(head), Counts::default());
            let times: Vec<_> = take(&queue).iter().map(|it| it.time).collect();
            assert_eq!(times, [5_000, 6_000]);
            assert_eq!(files_of(path), 0);
            let (queue, _) = Queue::open(None, size - 1).unwrap();
            let dropped = vec![(Reason::Full, collection(1).counts())];
            assert_eq!(queue.push(collection(1)), Pushed { dropped, error: None }, "it never fits");
        }
    }

    fn files_of(folder: Option<&Path>) -> usize {
        let paths = folder.into_iter().flat_map(|path| fs::read_dir(path).unwrap());
        paths.filter(|entry| entry.as_ref().unwrap().path().extension().is_some()).count()
    }
}
