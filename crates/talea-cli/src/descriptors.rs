//! Room for one descriptor a client, made before anything is started.

use anyhow::Result;

/// Descriptors that a process needs beside its connections: standard streams, event queues,
/// regions, the database, scrapes.
#[cfg(unix)]
const OTHERS: u64 = 64;

/// The number of the agent's connections that may be open at once.
pub(crate) const CONNECTIONS: u64 = 1024;
/// The remedy if descriptors are few.
pub(crate) const RAISE_LIMIT: &str =
    "raise the limit (`ulimit -n`, or LimitNOFILE= of the service)";

/// Makes sure that this process, and a child that inherits its limit, can hold `clients`
/// connections. Raises the soft limit to the hard one where it is too low.
///
/// # Errors
/// When the hard limit is too low: the error names both limits and what to do.
#[cfg(unix)]
pub fn ensure(clients: u64) -> Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let needed = clients.saturating_add(OTHERS);
    let limit = getrlimit(Resource::Nofile);
    // None is no limit at all.
    let Some(soft) = limit.current else { return Ok(()) };
    if soft >= needed {
        return Ok(());
    }
    let raised = Rlimit { current: limit.maximum.or(Some(needed)), maximum: limit.maximum };
    let enough = limit.maximum.is_none_or(|hard| hard >= needed);
    if enough && setrlimit(Resource::Nofile, raised).is_ok() {
        return Ok(());
    }
    anyhow::bail!(too_low(clients, needed, soft, limit.maximum));
}

/// The descriptors of the agent itself: standard streams, event queues, the listener, its own metrics, its history, and
/// files and directories that it has open for a moment.
#[cfg(target_os = "linux")]
const OWN: u64 = 24;

/// How the descriptors that a server of regions may have open are divided, so that neither its clients nor its regions
/// take those of the other, or of the server itself.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shares {
    /// The most that may be open now; `None` if there is no limit.
    pub(crate) limit: Option<u64>,
    pub(crate) clients: u64,
    pub(crate) regions: u64,
}

#[cfg(target_os = "linux")]
impl Shares {
    /// As the limit of this process is now, for at most so many clients.
    pub(crate) fn now(clients: u64) -> Self {
        Self::of(rustix::process::getrlimit(rustix::process::Resource::Nofile).current, clients)
    }

    /// Half of what the server leaves is for each. What clients do not need is for regions.
    fn of(limit: Option<u64>, clients: u64) -> Self {
        let spare = limit.unwrap_or(u64::MAX).saturating_sub(OWN);
        let clients = clients.min(spare / 2).max(1);
        Self { limit, clients, regions: spare.saturating_sub(clients).max(1) }
    }
}

/// Raises the soft limit of descriptors to the hard one.
#[cfg(target_os = "linux")]
pub(crate) fn raise_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let limit = getrlimit(Resource::Nofile);
    if limit.maximum.is_some() {
        // If it is refused, the soft limit stays.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    }
}

/// Elsewhere a process has no such limit.
///
/// # Errors
/// None.
#[cfg(not(unix))]
pub fn ensure(_clients: u64) -> Result<()> {
    Ok(())
}

#[cfg(unix)]
fn too_low(clients: u64, needed: u64, soft: u64, hard: Option<u64>) -> String {
    use talea_load::figures::{counted, whole};

    let hard = hard.map_or_else(|| "unlimited".to_owned(), whole);
    format!(
        "{clients} need {needed} open file descriptors (one a client, {OTHERS} beside), but this \
         process may open {soft} and raise that to {hard} at most.\n\
         Raise the limit (`ulimit -n {plain}` in a shell that may, or LimitNOFILE= of the service \
         or nofile in /etc/security/limits.conf), or ask for fewer clients.",
        clients = counted(clients, "client"),
        plain = needed,
        needed = whole(needed),
        soft = whole(soft),
    )
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn clients_and_regions_have_a_half_each_and_regions_what_clients_do_not_need() {
        for (limit, clients, regions) in [
            (Some(64), 20, 20),
            (Some(1024), 500, 500),
            (Some(4096), 1024, 3048),
            (Some(40), 8, 8),
            (Some(25), 1, 1),
            (Some(0), 1, 1),
            (None, 1024, u64::MAX - 24 - 1024),
        ] {
            assert_eq!(Shares::of(limit, 1024), Shares { limit, clients, regions }, "{limit:?}");
        }
    }

    #[test]
    fn more_clients_than_any_machine_has_descriptors_are_refused() {
        if rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum.is_some() {
            assert!(ensure(u64::MAX).is_err());
        }
    }
}
