//! The connections that are open, each with what it is at: who may come, who has to go.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::counts::{Counts, Reason};
use super::limits::Limits;
use super::phase::Phase;

/// All that are open.
#[derive(Debug)]
pub(super) struct Connections {
    limits: Limits,
    counts: Arc<Counts>,
    table: Mutex<Table>,
    /// Told when the last one goes.
    empty: Notify,
}

#[derive(Debug, Default)]
struct Table {
    open: HashMap<u64, Open>,
    next: u64,
}

#[derive(Debug)]
struct Open {
    phase: Arc<Phase>,
    /// None until its task runs.
    task: Option<AbortHandle>,
}

/// A place among them, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    all: Arc<Connections>,
    id: u64,
}

impl Connections {
    pub(super) fn new(limits: Limits, counts: Arc<Counts>) -> Arc<Self> {
        Arc::new(Self { limits, counts, table: Mutex::default(), empty: Notify::new() })
    }

    /// Makes a place for one that comes, at the cost of whoever is quiet the longest. None when
    /// all are being answered.
    pub(super) fn admit(self: &Arc<Self>, phase: &Arc<Phase>) -> Option<Place> {
        let mut table = self.table();
        self.counts.came();
        if table.open.len() >= self.limits.connections && !self.make_room(&mut table) {
            self.counts.end(Reason::Refused);
            return None;
        }
        let id = table.next;
        table.next += 1;
        table.open.insert(id, Open { phase: phase.clone(), task: None });
        self.counts.now_open(table.open.len());
        Some(Place { all: self.clone(), id })
    }

    /// Which task has the place, so that it can be ended.
    pub(super) fn runs(&self, id: u64, task: AbortHandle) {
        match self.table().open.get_mut(&id) {
            Some(open) => open.task = Some(task),
            // Its place was taken before it began.
            None => task.abort(),
        }
    }

    /// Ends one that is quiet, if one is, as the system has no room for more.
    pub(super) fn end_one(&self) {
        self.make_room(&mut self.table());
    }

    /// Ends those that are over a limit, again and again.
    pub(super) async fn watch(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(self.limits.tick());
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let now = Instant::now();
            let mut table = self.table();
            let over = |(id, open): (&u64, &Open)| Some((*id, open.phase.over(&self.limits, now)?));
            let over: Vec<_> = table.open.iter().filter_map(over).collect();
            for (id, reason) in over {
                self.end(&mut table, id, reason);
            }
        }
    }

    /// Waits until none is open.
    pub(super) async fn gone(&self) {
        loop {
            let told = self.empty.notified();
            if self.table().open.is_empty() {
                return;
            }
            told.await;
        }
    }

    /// Ends all that are still there.
    pub(super) fn end_all(&self) {
        for (_, open) in self.table().open.drain() {
            open.phase.reset();
            if let Some(task) = open.task {
                task.abort();
            }
        }
        self.counts.now_open(0);
    }

    fn make_room(&self, table: &mut Table) -> bool {
        let now = Instant::now();
        let places = table.open.iter().filter_map(|(id, open)| Some((open.phase.place(now)?, *id)));
        let Some((_, id)) = places.min() else { return false };
        self.end(table, id, Reason::Room);
        true
    }

    fn end(&self, table: &mut Table, id: u64, reason: Reason) {
        let Some(open) = table.open.remove(&id) else { return };
        if reason != Reason::Idle {
            open.phase.reset();
        }
        if let Some(task) = open.task {
            task.abort();
        }
        self.counts.end(reason);
        self.counts.now_open(table.open.len());
        if table.open.is_empty() {
            self.empty.notify_waiters();
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    pub(super) fn id(&self) -> u64 {
        self.id
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut table = self.all.table();
        if table.open.remove(&self.id).is_some() {
            self.all.counts.now_open(table.open.len());
            if table.open.is_empty() {
                self.all.empty.notify_waiters();
            }
        }
    }
}
