//! What waits to be sent: collections, oldest first, within a bound, in memory or in a folder.

mod folder;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use self::folder::Folder;
use crate::config::Error;
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
