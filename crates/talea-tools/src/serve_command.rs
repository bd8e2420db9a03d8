//! `talea serve`: finds regions, listens, serves until it is stopped.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use talea::Snapshot;
use talea_http::server::{Address, Limits, Server};
use talea_load::stop::Stop;
use talea_statistics::figures::counted;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::arguments::ServeArguments;
use crate::ending::Ending;
use crate::serve_push::Pushing;
use talea_agent::descriptors::{self, CONNECTIONS, RAISE_LIMIT, Shares};
use talea_agent::history::{Extent, History};
use talea_agent::page::{About, Feed};
use talea_agent::serve::{Agent, Recorder, Sources, register, routes};
use talea_agent::web::{Hosts, Web};
use talea_view::screen::note;

/// How often regions are looked for without a scrape.
const EVERY: Duration = Duration::from_secs(1);
/// How long scrapes may take to their end once it is to stop. A scraper asks again; a user
/// who restarts the agent wants the next one.
const FAREWELL: Duration = Duration::from_secs(1);

/// A history's file is no reason not to serve.
const MEMORY_HAS_IT: &str = "memory has the history, and the file is tried again once a minute";

/// Serves regions until it is stopped.
/// Fails when nothing was named, a process has no region, the address cannot be listened on, or the
/// web or the push configuration cannot be used.
pub(crate) async fn run(arguments: ServeArguments, stop: Stop) -> Result<Ending> {
    let ServeArguments { regions, dir, pid, web_config, .. } = arguments;
    let listen = listen_on(arguments.listen, arguments.socket_mode, arguments.socket_group)?;
    let sources = Sources { files: regions, directories: dir, processes: pid };
    if sources.files.is_empty() && sources.directories.is_empty() && sources.processes.is_empty() {
        bail!("found no region; name files, or a directory with --dir, or a process with --pid");
    }
    let label = match arguments.region_label {
        Some(label) => Some(label),
        None if sources.is_one() => None,
        None => Some("region".to_owned()),
    };
    let mut owners = arguments.owner;
    if owners.is_empty() {
        owners.push(rustix::process::geteuid().as_raw());
    }
    talea::outside::return_large_buffers();
    descriptors::raise_limit();
    let extent = Extent {
        seconds: arguments.keep_seconds,
        minutes: arguments.keep_minutes,
        bytes: usize::try_from(arguments.history_mib.saturating_mul(1 << 20)).unwrap_or(usize::MAX),
    };
    ignore_hangups(signal(SignalKind::hangup())?);
    let mut history = History::new(extent);
    if let Some(path) = &arguments.history
        && let Err(error) = history.keep_in(path)
    {
        note(format_args!("talea serve: {error:#}; {MEMORY_HAS_IT}"));
    }
    let about = About {
        title: sources.title(),
        trace_url: arguments.trace_url,
        region_label: label.clone(),
    };
    let feed = Feed::new(about, history);
    let agent = Agent::new(sources, owners, label)?;
    let shares = Shares::now(CONNECTIONS);
    if let (Some(limit), true) = (shares.limit, shares.clients < CONNECTIONS) {
        let clients = counted(shares.clients, "client");
        let regions = counted(shares.regions, "region");
        note(format_args!(
            "talea serve: {limit} files may be open, so at most {clients} and {regions} at a time; {RAISE_LIMIT}"
        ));
    }
    let limits = Limits { connections: shares.clients as usize, ..Limits::default() };
    let web = Arc::new(web_config.as_deref().map_or_else(|| Ok(Web::nothing()), Web::open)?);
    let server = Server::bind(listen, limits, web.clone())?;
    register(agent.registry(), &server.counts(), &web, &feed)?;
    let pushing = match &arguments.push {
        Some(path) => Some(Pushing::start(&agent, path)?),
        None => None,
    };
    let scheme = if web.is_tls() { "https" } else { "http" };
    match server.address() {
        Address::Unix(_) => {
            note(format_args!("talea serve: listening on {}, {scheme}", server.address()))
        }
        address => {
            note(format_args!("talea serve: listening on {scheme}://{address}/metrics"));
            let here = reachable(server.local_addr());
            note(format_args!("talea serve: the live page is at {scheme}://{here}/"));
        }
    }
    let recorder = Recorder::new(&agent, Arc::clone(&feed));
    tokio::spawn(keep_up(agent.clone(), recorder, arguments.keep_dead));
    let pushing = pushing.map(|pushing| tokio::spawn(pushing.run(stop.clone())));
    let hosts = Hosts::new(server.local_addr(), arguments.host, Some(web));
    let at_once = usize::try_from(arguments.at_once).unwrap_or(usize::MAX);
    tokio::select! {
        () = server.serve(routes(&agent, at_once, &feed, hosts), ended(stop.clone(), feed.clone())) => {}
        // Responses that are not sent by then are broken off.
        () = farewell(stop) => {}
    }
    if let Some(pushing) = pushing {
        pushing.await?;
    }
    Ok(Ending::Clean)
}

/// The address at which a browser on this machine finds a server that listens at this one.
fn reachable(listens: SocketAddr) -> String {
    let ip = match listens.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listens.port()).to_string()
}

/// The address, with the mode and the group of a Unix socket.
fn listen_on(listen: Address, mode: Option<u32>, group: Option<u32>) -> Result<Address> {
    match listen {
        Address::Unix(mut unix) => {
            if let Some(group) = group {
                unix = unix.group(group);
            }
            unix.mode = mode.unwrap_or(unix.mode);
            Ok(unix.into())
        }
        _ if mode.is_some() || group.is_some() => bail!(
            "found --socket-mode or --socket-group for {listen}; expected them with a Unix socket, such as \
             --listen unix:/run/talea/metrics.sock"
        ),
        address => Ok(address),
    }
}

/// Notes each SIGHUP, which would end the process otherwise: many servers read their configuration
/// again at that signal, and the agent does so by itself.
fn ignore_hangups(mut hangups: Signal) {
    tokio::spawn(async move {
        while hangups.recv().await.is_some() {
            note("talea serve: SIGHUP has no effect: files that changed are read again without it");
        }
    });
}

async fn ended(mut stop: Stop, feed: Arc<Feed>) {
    stop.requested().await;
    feed.close();
}

async fn farewell(mut stop: Stop) {
    stop.requested().await;
    tokio::time::sleep(FAREWELL).await;
}

/// Looks for regions, keeps the quantiles of the last minutes and records.
async fn keep_up(agent: Agent, mut recorder: Recorder, keep_dead: Option<Duration>) {
    let mut memory = Snapshot::default();
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let agent = agent.clone();
        let kept = tokio::task::spawn_blocking(move || {
            // To record all is to keep up with it.
            match recorder.is_due() {
                true => recorder.record(),
                false => agent.keep_up(&mut memory),
            }
            if let Some(keep) = keep_dead {
                agent.remove_dead(keep);
            }
            (memory, recorder)
        });
        let Ok(kept) = kept.await else { return };
        (memory, recorder) = kept;
    }
}
