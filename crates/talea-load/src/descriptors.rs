//! Room for one descriptor a client, made before anything is started.

use anyhow::Result;

/// Descriptors that a process needs beside its connections: standard streams, event queues,
/// regions, the database, scrapes.
#[cfg(unix)]
const OTHERS: u64 = 64;

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
    use talea_statistics::figures::{counted, whole};

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

    #[test]
    fn more_clients_than_any_machine_has_descriptors_are_refused() {
        if rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum.is_some() {
            assert!(ensure(u64::MAX).is_err());
        }
    }
}
