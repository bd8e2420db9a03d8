//! Metrics of the server's connections, of its web configuration, of the history, and of endpoints that changed.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use talea::{Counter, Error, Family, FloatGauge, Labels, Opts, Registry};
use talea_http::server::{Counts, Reason};

use crate::change::{CHANGED, Quantity};
use crate::page::Feed;
use crate::web::Web;

#[derive(Labels)]
struct ReasonLabel<'a> {
    reason: &'a str,
}

#[derive(Labels)]
struct ChangeLabels<'a> {
    endpoint: &'a str,
    change: &'a str,
}

#[derive(Labels)]
struct KindLabel<'a> {
    change: &'a str,
}

/// Registers the metrics, whose values are read when they are scraped.
pub fn register(
    registry: &Registry,
    counts: &Arc<Counts>,
    web: &Arc<Web>,
    feed: &Arc<Feed>,
) -> Result<(), Error> {
    let opts = Opts::new("talea_agent_history_bytes", "Memory that the history takes.");
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
        "Changes of the web configuration that were rejected because they are not valid.",
    );
    registry.observable_counter(bad_reloads, of_web(Web::bad_reloads))?;
    closed(registry, counts.clone())?;
    changes(registry, feed.clone())
}

/// The endpoints that are otherwise than usual. One that is usual again has no series.
fn changes(registry: &Registry, feed: Arc<Feed>) -> Result<(), Error> {
    let help = "When an endpoint became slower, failed more often, or got more or fewer requests than usual.";
    let opts = Opts::new(CHANGED, help);
    let since: Family<ChangeLabels<'static>, FloatGauge> = registry.register(opts)?;
    let help = "Times that an endpoint became otherwise than usual, by what changed.";
    let opts = Opts::new("talea_agent_endpoint_changes", help);
    let begun: Family<KindLabel<'static>, Counter> = registry.register(opts)?;
    let shown = Mutex::new((BTreeSet::new(), [0; Quantity::ALL.len()]));
    let refresh = move || {
        let (current, counts) = feed.changes();
        let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
        let (before, counted) = &mut *shown;
        let now: BTreeSet<(String, Quantity)> =
            current.iter().map(|it| (it.endpoint.clone(), it.quantity)).collect();
        for (endpoint, quantity) in before.difference(&now) {
            since.remove(ChangeLabels { endpoint, change: quantity.name() });
        }
        for change in current {
            let labels =
                ChangeLabels { endpoint: &change.endpoint, change: change.quantity.name() };
            since.with(labels).set(change.since_unix_millis as f64 / 1e3);
        }
        for (quantity, (now, counted)) in
            Quantity::ALL.into_iter().zip(counts.into_iter().zip(counted.iter_mut()))
        {
            begun.with(KindLabel { change: quantity.name() }).add(now - *counted);
            *counted = now;
        }
        *before = now;
    };
    refresh();
    registry.on_snapshot(refresh);
    Ok(())
}

fn history_file(registry: &Registry, feed: &Arc<Feed>) -> Result<(), Error> {
    let up =
        Opts::new("talea_agent_history_file_up", "Whether the history is written to its file.");
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::change::tests::pages;
    use crate::history::{Extent, History};
    use crate::page::{About, add_second};

    #[test]
    fn an_endpoint_has_a_series_while_it_is_otherwise_than_usual() {
        let registry = Registry::for_test().unwrap();
        let minute = Duration::from_secs(60);
        let history = History::new(Extent { seconds: minute, minutes: minute, bytes: 1 << 20 });
        let feed = Feed::new(About::default(), history);
        feed.find_changes();
        changes(&registry, feed.clone()).unwrap();
        let since = "talea_agent_endpoint_changed_timestamp_seconds{endpoint=\"GET /search\",change=\"slower\"} 1120";
        let begun =
            |number| format!("talea_agent_endpoint_changes_total{{change=\"slower\"}} {number}");
        let is_shown = || {
            let page = registry.snapshot().to_text();
            let is_shown = page.contains(since);
            assert!(is_shown || !page.contains("GET /search"), "{page}");
            assert!(
                page.contains(&begun(u8::from(is_shown))) || page.contains(&begun(1)),
                "{page}"
            );
            is_shown
        };
        let mut shown = Vec::new();
        // What was slow is as before after these pages, since it began anew.
        for (second, families) in (0..140).zip(pages(120)).chain((140..200).zip(pages(usize::MAX)))
        {
            add_second(&feed, second, families);
            if is_shown() {
                shown.push(second);
            }
        }
        let (first, last) = (shown[0], shown[shown.len() - 1]);
        assert!((121..130).contains(&first) && (140..160).contains(&last), "{shown:?}");
        assert_eq!(shown.len() as u64, last - first + 1);
    }
}
