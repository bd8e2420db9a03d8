//! The commands on regions.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use axum::http::uri::Authority;
use clap::Args;

use super::connection::Tls;
use super::quantity::{address, at_least_one, duration};
use crate::page_source::Source;

pub(super) const INSPECT: &str = "Look into the shared memory that a service counts in, from outside: its properties, \
        how full it is, the processes that have it open, and its families; with --family the values of one.\n\n\
        The region is read and never mapped or written to, so the processes that count in it \
        notice nothing, and may be busy, stopped or dead. An observable value, such as the \
        process's memory, is as of the last scrape, or some seconds old where the service keeps it \
        fresh.";

#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 done, 2 the region cannot be read, 130 stopped by a signal."
)]
pub(crate) struct InspectArguments {
    #[command(flatten)]
    pub(crate) which: RegionSource,
    /// A family whose series and values are shown, by its name in a scrape
    #[arg(long, value_name = "NAME")]
    pub family: Option<String>,
    /// Print all of it as JSON
    #[arg(long)]
    pub json: bool,
}

/// A region and some of its families.
#[derive(Debug, Args)]
pub(crate) struct RegionFamilies {
    #[command(flatten)]
    pub which: RegionSource,
    /// Only this family, by its name in a scrape; may be given more than once
    #[arg(long = "family", value_name = "NAME")]
    pub families: Vec<String>,
    /// Open a file of this user, by name or number; that user can end this command by cutting the file
    /// [default: the user that it runs as, and root]
    #[arg(long, value_name = "USER", value_parser = user, conflicts_with = "pid")]
    pub owner: Vec<u32>,
}

/// A region, in a file or in memory.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct RegionSource {
    /// A file with a region, such as TALEA_REGION names; no symbolic link is followed
    pub region: Option<PathBuf>,
    /// The region in the memory of a running process, which has none in a file
    #[arg(long)]
    pub pid: Option<u32>,
}

pub(super) const WIPE: &str = "Reset the counters, histograms and summaries of a service in shared memory to 0, whether it \
        runs, is stopped or is dead.\n\n\
        Processes may go on recording; each increment counts either before the reset or after it. \
        Series with dynamic labels are removed, and come back with their next increment; one that a \
        process keeps is 0. Gauges, infos and state sets hold present values and are not changed.";

#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 done, 2 it could not be done (nothing is created, and a file that is \
        no region is left alone), 130 stopped by a signal."
)]
pub(crate) struct WipeArguments {
    #[command(flatten)]
    pub affected: RegionFamilies,
}

pub(super) const EXPIRE: &str = "Remove idle series from shared memory, whether the service runs, is stopped or is dead: \
        those without a look-up for their family's time, or for --idle.\n\n\
        A series knows the sweep in which it was last looked up. Sweeps begin at most once a \
        minute, and only when the service is scraped, keeps its values fresh or makes series, or \
        when you run this. So a series that is removed was idle for that long, but one that stays \
        may have been too: if there were no sweeps, run it again after that time. Series of fixed \
        labels, series that a living process keeps, and those that count requests in flight stay.";

#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 done, 2 it could not be done (nothing is created, and a file that is \
        no region is left alone), 130 stopped by a signal."
)]
pub(crate) struct ExpireArguments {
    #[command(flatten)]
    pub affected: RegionFamilies,
    /// Idle for at least so long, rather than for their family's time; families whose series never
    /// go by themselves are left alone unless --family names them
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub idle: Option<Duration>,
}

pub(super) const SERVE: &str = "Serve the metrics of regions from outside, also while their services are stopped \
        or dead.\n\n\
        Regions are read, never written to. Those of a directory are served as they come and go: \
        files named NAME.talea, or NAME.talea.N. A region that cannot be served is reported on \
        standard error and in the metrics, and the others are served.\n\n\
        GET /metrics answers in the Prometheus text format, OpenMetrics or protobuf, compressed \
        where that is asked for; /healthz while the agent runs; /readyz where all that was named \
        is served.\n\n\
        The agent remembers what it showed: each second of the last hour and each minute of the last \
        day, in at most --history-mib for each of the two. GET / shows all of it as a live page, \
        GET /postmortem the last minute before the latest death of a process, as `talea postmortem` \
        does (?region=NAME, ?format=json). Families with more than \
        10,000 series are left out, and where reading a page takes long, it is read less often, so \
        that this takes at most 2 % of a core.";

#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 stopped by a signal, 2 usage, no such process, the web \
        or the push configuration cannot be used, or the address is taken.")]
pub(crate) struct ServeArguments {
    /// Files with regions, such as TALEA_REGION names; they may come later
    #[arg(value_name = "REGION")]
    pub regions: Vec<PathBuf>,
    /// A directory where regions come and go
    #[arg(long, value_name = "DIR")]
    pub dir: Vec<PathBuf>,
    /// A process whose region is in memory; it is served also after the process has died
    #[arg(long, value_name = "PID")]
    pub pid: Vec<u32>,
    /// The address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9465", value_parser = address)]
    pub listen: SocketAddr,
    /// TLS and passwords, in the format of Prometheus' web configuration
    #[arg(long, value_name = "FILE")]
    pub web_config: Option<PathBuf>,
    /// Push the page to the receivers of this file too: by Prometheus remote-write or OTLP, in TOML as
    /// docs/push.md describes
    #[arg(long, value_name = "FILE")]
    pub push: Option<PathBuf>,
    /// Answer requests for this host, such as the name of a proxy, beside loopback names and addresses. On a
    /// loopback address, requests for other hosts are refused, unless the web configuration has TLS or
    /// passwords; on another address, any host is answered for if none is given
    #[arg(long, value_name = "NAME", value_parser = host)]
    pub host: Vec<String>,
    /// Open files of this user, by name or number [default: the user that the agent runs as]
    #[arg(long, value_name = "USER", value_parser = user)]
    pub owner: Vec<u32>,
    /// The label that distinguishes regions [default: region, or none for a single region]
    #[arg(long, value_name = "NAME", value_parser = region_label)]
    pub region_label: Option<String>,
    /// Keep what is remembered in this file too, so that it outlives the agent. It takes at most three
    /// times what memory does. A file that cannot be used keeps nothing from being served
    #[arg(long, value_name = "FILE")]
    pub history: Option<PathBuf>,
    /// How long each second is remembered
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration)]
    pub keep_seconds: Duration,
    /// How long each minute is remembered
    #[arg(long, value_name = "TIME", default_value = "1d", value_parser = duration)]
    pub keep_minutes: Duration,
    /// The most memory for the seconds, and for the minutes, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 32, value_parser = at_least_one)]
    pub history_mib: u64,
    /// How many scrapes are answered at the same time; each takes memory for all values
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = at_least_one)]
    pub at_once: u64,
}

/// The number of a user.
fn user(text: &str) -> Result<u32, String> {
    let known = text.parse().ok().or_else(|| Some(uzers::get_user_by_name(text)?.uid()));
    known.ok_or_else(|| "found no such user, expected a name or a number".to_owned())
}

fn host(text: &str) -> Result<String, String> {
    let host = text.parse::<Authority>().ok().filter(|it| it.as_str() == it.host());
    let host = host.ok_or("expected a name or an address, without a port")?;
    Ok(host.host().trim_end_matches('.').to_owned())
}

fn region_label(text: &str) -> Result<String, String> {
    if talea::is_usable_as_part_label(text) {
        return Ok(text.to_owned());
    }
    Err("expected letters, digits and underscores, and no name that has a meaning, such as le, \
         quantile, family or pid"
        .to_owned())
}

pub(super) const TOP: &str = "Watch the endpoints of a service as it runs: requests a second, errors, response times, \
        requests in flight, the busiest first.\n\n\
        The source is a file with a region, the number of a process that has one in memory, or a URL \
        with metrics, such as that of `talea serve`. Requests are found under the names of any \
        convention: a histogram of durations by method or route, a counter by status and a gauge of \
        those in flight that are named alike.\n\n\
        Keys: arrows or j and k move, Enter shows an endpoint, s sorts by the next column and r \
        reverses, / filters, the space bar pauses, ? helps, q quits. Where standard output is no \
        terminal, the table is printed once.";

#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 quit by a key or printed, 2 the source cannot be read, 130 stopped by \
        a signal."
)]
pub(crate) struct TopArguments {
    /// A file with a region, the number of a process, or a URL
    #[arg(value_name = "REGION|PID|URL")]
    pub source: Source,
    /// How often the source is read
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    pub every: Duration,
    /// The time that rates and quantiles cover; longer ones are steadier, shorter ones sooner
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub window: Duration,
    /// Print the table once, after two readings, and end
    #[arg(long)]
    pub once: bool,
    #[command(flatten)]
    pub tls: Tls,
}

pub(super) const POSTMORTEM: &str = "Show what happened before a process died.\n\n\
        From the history that `talea serve --history FILE` keeps: the last seconds before a process of \
        the region was found dead, one by one, with requests, errors, response times, requests in \
        flight, processor time, memory and tasks; and each endpoint. If none died, the last seconds \
        that were recorded.\n\n\
        From the region itself: all requests that were ever counted, to the last one, its processes, and \
        the latest exemplars. Without a history that is all.";

#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 done, 2 neither the region nor a history can be read, or not the history that \
        is named, 130 stopped by a signal."
)]
pub(crate) struct PostmortemArguments {
    /// A file with a region; it may be gone, if there is a history
    pub region: PathBuf,
    /// The history that an agent keeps [default: REGION.history, if there is one]
    #[arg(long, value_name = "FILE")]
    pub history: Option<PathBuf>,
    /// Read a history of this user, by name or number [default: the user that this command runs as]
    #[arg(long, value_name = "USER", value_parser = user)]
    pub owner: Vec<u32>,
    /// How much before the death
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = duration)]
    pub last: Duration,
    /// The label that distinguishes regions in the history
    #[arg(long, value_name = "NAME", default_value = "region")]
    pub region_label: String,
    /// Print all of it as JSON
    #[arg(long)]
    pub json: bool,
    /// Write all of it as a page too, one file that needs no network and no script
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}
