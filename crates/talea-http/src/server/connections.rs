//! The table of open connections: admits new ones and closes others for them.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::counts::{Counts, Reason};
use super::limits::Limits;
use super::phase::Phase;
use crate::turns::source_of;

#[derive(Debug)]
pub(super) struct Connections {
    limits: Limits,
    counts: Arc<Counts>,
    table: Mutex<Table>,
    empty: Notify,
}

#[derive(Debug, Default)]
struct Table {
    open: HashMap<u64, OpenConnection>,
    next: u64,
}

#[derive(Debug)]
struct OpenConnection {
    /// The client's address, see [`source_of`].
    source: IpAddr,
    phase: Arc<Phase>,
    /// `None` until its task runs.
    task: Option<AbortHandle>,
}

/// An entry of the table, removed when it is dropped.
#[derive(Debug)]
pub(super) struct Entry {
    connections: Arc<Connections>,
    pub(super) id: u64,
}

impl Connections {
    pub(super) fn new(limits: Limits, counts: Arc<Counts>) -> Arc<Self> {
        Arc::new(Self { limits, counts, table: Mutex::default(), empty: Notify::new() })
    }

    /// Makes an entry for a new connection. If the table is full, one that is idle is closed for
    /// it; `None` if all are busy with responses.
    pub(super) fn admit(self: &Arc<Self>, client: IpAddr, phase: &Arc<Phase>) -> Option<Entry> {
        let mut table = self.table();
        self.counts.accepted.fetch_add(1, Relaxed);
        if table.open.len() >= self.limits.connections.max(1) && !self.make_room(&mut table) {
            self.counts.close(Reason::Refused);
            return None;
        }
        let id = table.next;
        table.next += 1;
        let source = source_of(client);
        table.open.insert(id, OpenConnection { source, phase: phase.clone(), task: None });
        self.counts.set_open(table.open.len());
        Some(Entry { connections: self.clone(), id })
    }

    /// Stores the task of an entry, so that it can be aborted.
    pub(super) fn set_task(&self, id: u64, task: AbortHandle) {
        match self.table().open.get_mut(&id) {
            Some(open) => open.task = Some(task),
            // It was closed for another connection before it began.
            None => task.abort(),
        }
    }

    /// Closes an idle connection, if there is one, because the system has no room for more.
    pub(super) fn close_one(&self) {
        self.make_room(&mut self.table());
    }

    /// Closes connections that exceed a limit, for as long as it is polled.
    pub(super) async fn watch(self: Arc<Self>) {
        let mut ticks = interval(self.limits.tick());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let now = Instant::now();
            let mut table = self.table();
            let exceeded = |(id, open): (&u64, &OpenConnection)| {
                Some((*id, open.phase.exceeded(&self.limits, now)?))
            };
            let exceeded: Vec<_> = table.open.iter().filter_map(exceeded).collect();
            for (id, reason) in exceeded {
                self.close(&mut table, id, reason);
            }
        }
    }

    pub(super) async fn none_open(&self) {
        loop {
            let emptied = self.empty.notified();
            if self.table().open.is_empty() {
                return;
            }
            emptied.await;
        }
    }

    pub(super) fn close_all(&self) {
        for (_, open) in self.table().open.drain() {
            open.phase.reset();
            if let Some(task) = open.task {
                task.abort();
            }
        }
        self.counts.set_open(0);
    }

    /// Closes one connection: among those that may be closed, one of the source that has the
    /// most, so that no source can take the places of others; of these, the one that has been
    /// idle the longest.
    fn make_room(&self, table: &mut Table) -> bool {
        let now = Instant::now();
        let mut held: HashMap<IpAddr, usize> = HashMap::new();
        for open in table.open.values() {
            *held.entry(open.source).or_default() += 1;
        }
        let candidates = table.open.iter().filter_map(|(id, open)| {
            Some((Reverse(held[&open.source]), open.phase.eviction_order(now)?, *id))
        });
        let Some((.., id)) = candidates.min() else { return false };
        self.close(table, id, Reason::Room);
        true
    }

    fn close(&self, table: &mut Table, id: u64, reason: Reason) {
        let Some(open) = table.open.remove(&id) else { return };
        if reason != Reason::Idle {
            open.phase.reset();
        }
        if let Some(task) = open.task {
            task.abort();
        }
        self.counts.close(reason);
        self.note_open(table);
    }

    fn note_open(&self, table: &Table) {
        self.counts.set_open(table.open.len());
        if table.open.is_empty() {
            self.empty.notify_waiters();
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut table = self.connections.table();
        if table.open.remove(&self.id).is_some() {
            self.connections.note_open(&table);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full_of(sources: &[&str]) -> (Arc<Connections>, Vec<Entry>) {
        let limits = Limits { connections: sources.len(), ..Limits::default() };
        let connections = Connections::new(limits, Arc::default());
        let entries = sources
            .iter()
            .map(|source: &&str| {
                let phase = Arc::new(Phase::new());
                phase.handshake_done();
                connections.admit(source.parse().unwrap(), &phase).unwrap()
            })
            .collect();
        (connections, entries)
    }

    fn open_of(connections: &Connections, source: &str) -> usize {
        let source: IpAddr = source.parse().unwrap();
        connections.table().open.values().filter(|open| open.source == source).count()
    }

    #[test]
    fn a_source_with_many_connections_cannot_take_the_place_of_one_with_few() {
        // The oldest connection is the one of 10.0.0.1.
        let (connections, mut entries) = full_of(&["10.0.0.1", "10.0.0.2", "10.0.0.2", "10.0.0.2"]);
        for _ in 0..10 {
            let phase = Arc::new(Phase::new());
            entries.push(connections.admit("10.0.0.2".parse().unwrap(), &phase).unwrap());
        }
        assert_eq!(open_of(&connections, "10.0.0.1"), 1);
        assert_eq!(open_of(&connections, "10.0.0.2"), 3);
        assert_eq!(connections.counts.closed(Reason::Room), 10);
    }

    #[test]
    fn among_equals_the_longest_idle_goes() {
        let (connections, _entries) = full_of(&["10.0.0.1", "10.0.0.2"]);
        let phase = Arc::new(Phase::new());
        let _entry = connections.admit("10.0.0.3".parse().unwrap(), &phase).unwrap();
        assert_eq!(open_of(&connections, "10.0.0.1"), 0);
        assert_eq!(open_of(&connections, "10.0.0.2"), 1);
    }
}
