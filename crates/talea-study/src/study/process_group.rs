//! The processes that the study starts, each with its descendants.

#[cfg(unix)]
use std::sync::{Mutex, PoisonError};
#[cfg(unix)]
use std::time::Duration;

#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::Child;

/// A child and its descendants. A program may be a script that starts the service, and passes no
/// signal on.
#[cfg(unix)]
pub(super) struct ProcessGroup(Option<Pid>);

/// The groups that run.
#[cfg(unix)]
static RUNNING: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// Kills all groups: where this process ends without waiting for them.
#[cfg(unix)]
pub fn kill_all() {
    for group in RUNNING.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        let _ = kill_process_group(*group, Signal::KILL);
    }
}

/// Their standard input closes, which ends the items API.
#[cfg(not(unix))]
pub fn kill_all() {}

#[cfg(unix)]
impl ProcessGroup {
    /// The group that a child leads.
    pub(super) fn of(child: &Child) -> Self {
        let group = child.id().and_then(|pid| Pid::from_raw(pid.try_into().ok()?));
        RUNNING.lock().unwrap_or_else(PoisonError::into_inner).extend(group);
        Self(group)
    }

    /// Asks programs that know nothing of studies to end.
    pub(super) fn terminate(&self) {
        // One that has ended already is as it should be.
        let _ = self.0.map(|group| kill_process_group(group, Signal::TERM));
    }

    /// Waits until all have ended, and kills those that stay: a second after their first.
    pub(super) async fn ended(&self) {
        const TRIES: u32 = 100;
        const EVERY: Duration = Duration::from_millis(20);
        let Some(group) = self.0 else { return };
        for n in 0..TRIES {
            if test_kill_process_group(group).is_err() {
                return;
            }
            if n == TRIES / 2 {
                let _ = kill_process_group(group, Signal::KILL);
            }
            tokio::time::sleep(EVERY).await;
        }
    }
}

#[cfg(unix)]
impl Drop for ProcessGroup {
    fn drop(&mut self) {
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|group| Some(*group) != self.0);
    }
}

#[cfg(not(unix))]
pub(super) struct ProcessGroup;

#[cfg(not(unix))]
impl ProcessGroup {
    pub(super) fn of(_: &Child) -> Self {
        Self
    }

    pub(super) fn terminate(&self) {}

    pub(super) async fn ended(&self) {}
}
