//! How many files the agent may have open, and for what.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The number of the agent's connections that may be open at once.
pub const CONNECTIONS: u64 = 1024;
/// The remedy if descriptors are few.
pub const RAISE_LIMIT: &str = "raise the limit (`ulimit -n`, or LimitNOFILE= of the service)";

/// The descriptors of the agent itself: standard streams, event queues, the listener, its own metrics, its history, and
/// files and directories that it has open for a moment.
const OWN: u64 = 24;

/// From so many descriptors on, some are for processes.
const MANY: u64 = 512;
const MOST_PROCESSES: u64 = 256;

/// How the descriptors that a server of regions may have open are divided, so that neither its clients nor its regions
/// take those of the other, or of the server itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// The most that may be open now; `None` if there is no limit.
    pub limit: Option<u64>,
    pub clients: u64,
    pub regions: u64,
    /// Living processes of which it is to be known how they end.
    pub processes: u64,
}

impl Shares {
    /// As the limit of this process is now, for at most so many clients.
    pub fn now(clients: u64) -> Self {
        Self::of(getrlimit(Resource::Nofile).current, clients)
    }

    /// Processes have a part if there are many. Half of what they and the server leave is for each of the others. What
    /// clients do not need is for regions.
    fn of(limit: Option<u64>, clients: u64) -> Self {
        let spare = limit.unwrap_or(u64::MAX).saturating_sub(OWN);
        let processes = if spare < MANY { 0 } else { MOST_PROCESSES.min(spare / 8) };
        let spare = spare - processes;
        let clients = clients.min(spare / 2).max(1);
        Self { limit, clients, regions: spare.saturating_sub(clients).max(1), processes }
    }
}

/// Raises the soft limit of descriptors to the hard one.
pub fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    if limit.maximum.is_some() {
        // If it is refused, the soft limit stays.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_and_regions_have_a_half_each_and_regions_what_clients_do_not_need() {
        for (limit, clients, regions, processes) in [
            (Some(64), 20, 20, 0),
            (Some(1024), 437, 438, 125),
            (Some(4096), 1024, 2792, 256),
            (Some(40), 8, 8, 0),
            (Some(25), 1, 1, 0),
            (Some(0), 1, 1, 0),
            (None, 1024, u64::MAX - 24 - 1024 - 256, 256),
        ] {
            let shares = Shares { limit, clients, regions, processes };
            assert_eq!(Shares::of(limit, 1024), shares, "{limit:?}");
        }
    }
}
