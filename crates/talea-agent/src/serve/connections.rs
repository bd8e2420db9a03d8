//! Metrics of the server's connections, of its web configuration and of the history.

use std::sync::{Arc, Mutex, PoisonError};

use talea::{Counter, Error, Family, Labels, Opts, Registry};
use talea_http::server::{Counts, Reason};

use crate::page::Feed;
use crate::web::Web;

#[derive(Labels)]
struct ReasonLabel<'a> {
    reason: &'a str,
}

/// Registers the metrics, whose values are read when they are scraped.
pub fn register(
    registry: &Registry,
    counts: &Arc<Counts>,
    web: &Arc<Web>,
    feed: &Arc<Feed>,
) -> Result<(), Error> {
    let opts = Opts::new("talea_agent_history_bytes", "Memory for what the agent remembers.");
    let history = feed.clone();
    registry.observable_gauge(opts, move || history.history_bytes() as f64)?;
    if feed.is_in_file().is_some() {
        history_file(registry, feed)?;
    }
    let of_counts = |read: fn(&Counts) -> u64| {
        let counts = counts.clone();
        move || read(&counts) as f64
    };
    let of_web = |read: fn(&Web) -> u64| {
        let web = web.clone();
        move || read(&web) as f64
    };
    let open = Opts::new("talea_agent_connections", "Connections that are open.");
    registry.observable_gauge(open, of_counts(Counts::open))?;
    let accepted = Opts::new(
        "talea_agent_connections_accepted",
        "Connections that were accepted, including those that were refused at once.",
    );
    registry.observable_counter(accepted, of_counts(Counts::accepted))?;
    let accept_errors = Opts::new(
        "talea_agent_accept_errors",
        "Times that the system could not give a connection to a client that was waiting.",
    );
    registry.observable_counter(accept_errors, of_counts(Counts::accept_errors))?;
    let unauthorized = Opts::new(
        "talea_agent_unauthorized_requests",
        "Requests without the right user and password.",
    );
    registry.observable_counter(unauthorized, of_web(Web::unauthorized))?;
    let bad_reloads = Opts::new(
        "talea_agent_web_config_errors",
        "Changes of the web configuration that were not taken because they were bad.",
    );
    registry.observable_counter(bad_reloads, of_web(Web::bad_reloads))?;
    closed(registry, counts.clone())
}

fn history_file(registry: &Registry, feed: &Arc<Feed>) -> Result<(), Error> {
    let up = Opts::new(
        "talea_agent_history_file_up",
        "Whether what the agent remembers is written to its file.",
    );
    let history = feed.clone();
    registry.observable_gauge(up, move || f64::from(history.is_in_file() == Some(true)))?;
    let lost = Opts::new(
        "talea_agent_history_lost_bytes",
        "Bytes of the history's file that were damaged when it was opened.",
    );
    let history = feed.clone();
    registry.observable_counter(lost, move || history.lost_history_bytes() as f64)?;
    Ok(())
}

fn closed(registry: &Registry, counts: Arc<Counts>) -> Result<(), Error> {
    let help = "Connections that the agent closed before their client did, by reason.";
    let opts = Opts::new("talea_agent_connections_ended", help);
    let family: Family<ReasonLabel<'static>, Counter> = registry.register(opts)?;
    let counted = Mutex::new([0; Reason::ALL.len()]);
    let refresh = move || {
        let mut counted = counted.lock().unwrap_or_else(PoisonError::into_inner);
        for (reason, counted) in Reason::ALL.into_iter().zip(counted.iter_mut()) {
            let now = counts.closed(reason);
            family.with(ReasonLabel { reason: reason.name() }).add(now - *counted);
            *counted = now;
        }
    };
    refresh();
    registry.on_snapshot(refresh);
    Ok(())
}
