//! What the front tells of its clients, as metrics.

use std::sync::{Arc, Mutex, PoisonError};

use talea::{Counter, Error, Family, Labels, Opts, Registry};

use crate::front::{Counts, Reason};

#[derive(Labels)]
struct Why<'a> {
    reason: &'a str,
}

type Read = fn(&Counts) -> u64;

/// Has a registry show them.
pub(super) fn register(registry: &Registry, counts: &Arc<Counts>) -> Result<(), Error> {
    let read = |read: Read| {
        let counts = counts.clone();
        move || read(&counts) as f64
    };
    let open = Opts::new("talea_agent_connections", "Connections that are open.");
    registry.observable_gauge(open, read(Counts::open))?;
    let totals: [(&str, &str, Read); 4] = [
        (
            "talea_agent_connections_accepted",
            "Connections that were accepted, those that were refused at once among them.",
            Counts::accepted,
        ),
        (
            "talea_agent_accept_errors",
            "Times that the system gave no connection to somebody who came.",
            Counts::accept_errors,
        ),
        (
            "talea_agent_unauthorized_requests",
            "Requests without the right user and password.",
            Counts::unauthorized,
        ),
        (
            "talea_agent_web_config_errors",
            "Changes of the web configuration that could not be taken.",
            Counts::bad_web_configurations,
        ),
    ];
    for (name, help, total) in totals {
        registry.observable_counter(Opts::new(name, help), read(total))?;
    }
    ended(registry, counts.clone())
}

fn ended(registry: &Registry, counts: Arc<Counts>) -> Result<(), Error> {
    let help = "Connections that the agent ended before their client wanted it, and why.";
    let opts = Opts::new("talea_agent_connections_ended", help);
    let family: Family<Why<'static>, Counter> = registry.register(opts)?;
    let told = Mutex::new([0; Reason::ALL.len()]);
    let refresh = move || {
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        for (reason, told) in Reason::ALL.into_iter().zip(told.iter_mut()) {
            let now = counts.ended(reason);
            family.with(Why { reason: reason.name() }).add(now - *told);
            *told = now;
        }
    };
    refresh();
    registry.on_snapshot(refresh);
    Ok(())
}
