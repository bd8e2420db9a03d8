//! The commands on regions.

use std::path::PathBuf;
use std::time::Duration;

use axum::http::uri::Authority;
use clap::Args;
use talea_http::server::Address;

use super::connection::Tls;
use super::quantity::{at_least_one, duration, listen_address, mode};
use crate::page_source::Source;

pub(super) const INSPECT: &str = "Look into the shared memory that a service counts in, from outside: its properties, \
        how full it is, the processes that have it open, and its families; with --family the values of one.\n\n\
        The region is read, and never mapped or written, so processes that count in it are not \
        affected; they may be busy, stopped or dead. Observable values, such as a process's memory, \
        are from the last scrape, or some seconds old if the service keeps them fresh.";

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
    /// Print everything as JSON
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
    /// Open a file of this user, by name or number; that user can end this command by truncating the file
    /// [default: the user that it runs as, and root]
    #[arg(long, value_name = "USER", value_parser = user, conflicts_with = "pid")]
    pub owner: Vec<u32>,
}

/// A region, in a file or in memory.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct RegionSource {
    /// The file of a region, as in TALEA_REGION, of which no symbolic link is followed; or the number of a
    /// process, as with --pid
    #[arg(value_name = "REGION|PID")]
    pub region: Option<PathBuf>,
    /// A running process whose region is in its memory and not in a file
    #[arg(long)]
    pub pid: Option<u32>,
}

pub(super) const WIPE: &str = "Reset the counters, histograms and summaries of a service in shared memory to 0, whether it \
        runs, is stopped or is dead.\n\n\
        Processes may go on recording; each increment counts either before the reset or after it. \
        Series with dynamic labels are removed, and return with their next increment; one that a \
        process keeps becomes 0. Gauges, infos and state sets show the present, and do not change.";

#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 done, 2 failed (no file is created, and one that is not a region \
        is left alone), 130 stopped by a signal."
)]
pub(crate) struct WipeArguments {
    #[command(flatten)]
    pub affected: RegionFamilies,
}

pub(super) const EXPIRE: &str = "Remove idle series from shared memory, whether the service runs, is stopped or is dead: \
        those without a look-up for their family's time, or for --idle.\n\n\
        A series records the sweep in which it was last looked up. Sweeps begin at most once a \
        minute: when the service is scraped, keeps its values fresh or makes series, or when you run \
        this. So a removed series was idle for that time, but one that stays may have been idle too; \
        if there were no sweeps, run the command again after that time. Series with fixed labels, \
        series that a living process keeps, and series with requests in flight stay.";

#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 done, 2 failed (no file is created, and one that is not a region \
        is left alone), 130 stopped by a signal."
)]
pub(crate) struct ExpireArguments {
    #[command(flatten)]
    pub affected: RegionFamilies,
    /// Remove series that were idle for this time, rather than their family's; families whose series never
    /// expire are left alone unless --family names them
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub idle: Option<Duration>,
}

pub(super) const SERVE: &str = "Serve the metrics of regions from outside, also while their services are stopped \
        or dead.\n\n\
        Regions are read, never written. In a directory, files named NAME.talea or NAME.talea.N are \
        picked up as they appear and dropped as they disappear. A region that cannot be served is \
        reported on standard error and in the metrics, and the others are served.\n\n\
        GET /metrics returns the Prometheus text format, OpenMetrics or protobuf, compressed if the \
        scraper accepts that; /healthz returns 200 while the agent runs, /readyz if every named \
        region is served.\n\n\
        The agent remembers what it served: each second of the last hour and each minute of the last \
        day, in at most --history-mib for each of the two. GET / is a live page of that, \
        GET /postmortem the last minute before the latest death of a process, as in `talea postmortem` \
        (?region=NAME, ?format=json). A region's family with more than 10,000 series is left out. If reading \
        takes long, the agent reads less often, so that this takes at most 2 % of a core.";

#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 stopped by a signal, 2 wrong usage, no such process, the web \
        or the push configuration cannot be used, or the address is in use."
)]
pub(crate) struct ServeArguments {
    /// Files of regions, as in TALEA_REGION; they may appear later
    #[arg(value_name = "REGION")]
    pub regions: Vec<PathBuf>,
    /// A directory of regions, which may appear and disappear
    #[arg(long, value_name = "DIR")]
    pub dir: Vec<PathBuf>,
    /// A process whose region is in its memory; the region is served also after the process has died
    #[arg(long, value_name = "PID")]
    pub pid: Vec<u32>,
    /// The address to listen on, such as 127.0.0.1:9465 or :9465, or a Unix socket as unix:/run/talea/metrics.sock
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9465", value_parser = listen_address)]
    pub listen: Address,
    /// The mode of the Unix socket: who may write to it may connect [default: 600, or 660 with --socket-group]
    #[arg(long, value_name = "MODE", value_parser = mode)]
    pub socket_mode: Option<u32>,
    /// The group of the Unix socket, by name or number, which may connect too
    #[arg(long, value_name = "GROUP", value_parser = group)]
    pub socket_group: Option<u32>,
    /// TLS and passwords, in the format of Prometheus' web configuration
    #[arg(long, value_name = "FILE")]
    pub web_config: Option<PathBuf>,
    /// Remove a region's file from its directory (--dir) once no process used it for this time; otherwise
    /// files of dead regions stay
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub keep_dead: Option<Duration>,
    /// Also push the page to the receivers in this file, by Prometheus remote-write or OTLP; it is TOML as
    /// docs/how-to/push.md describes
    #[arg(long, value_name = "FILE")]
    pub push: Option<PathBuf>,
    /// Accept requests for this host, such as the name of a proxy, beside loopback names and addresses. On a
    /// loopback address, requests for other hosts are refused, unless the web configuration has TLS or
    /// passwords; on another address, any host is accepted if no --host is given
    #[arg(long, value_name = "NAME", value_parser = host)]
    pub host: Vec<String>,
    /// Open files of this user, by name or number [default: the user that the agent runs as]
    #[arg(long, value_name = "USER", value_parser = user)]
    pub owner: Vec<u32>,
    /// The label that distinguishes regions [default: region; no label for a single region]
    #[arg(long, value_name = "NAME", value_parser = region_label)]
    pub region_label: Option<String>,
    /// The address of a trace in the tool that shows traces, with {trace_id} in the place of its number, such as
    /// https://traces.example/trace/{trace_id}; the live page links exemplars to it
    #[arg(long, value_name = "URL", value_parser = trace_url)]
    pub trace_url: Option<String>,
    /// Keep the history in this file too, so that it outlives the agent. It takes at most three times the
    /// memory. Regions are served also if the file cannot be used
    #[arg(long, value_name = "FILE")]
    pub history: Option<PathBuf>,
    /// Time for which each second is remembered
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration)]
    pub keep_seconds: Duration,
    /// Time for which each minute is remembered
    #[arg(long, value_name = "TIME", default_value = "1d", value_parser = duration)]
    pub keep_minutes: Duration,
    /// Maximum memory for the seconds, and for the minutes, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 32, value_parser = at_least_one)]
    pub history_mib: u64,
    /// Number of scrapes served at the same time; each takes memory for all values
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = at_least_one)]
    pub at_once: u64,
}

pub(super) const RUN: &str = "Run a command as a job with a region of its own, and record how it ended.\n\n\
        The region is the file DIR/NAME.talea. The command gets its path as TALEA_REGION, so what it records with \
        Talea's libraries is there. talea_job_runs_total counts runs by outcome; talea_job_… has the last run's exit \
        code, start, end, duration, CPU time and peak memory, and the time of the last success. The file stays, \
        for `talea serve --dir DIR --keep-dead 1h` to serve, and the next run continues it.\n\n\
        Signals are forwarded to the command. If the region cannot be opened, the command runs without it.";

#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: that of the command; 128 plus the signal's number if a signal ended it; 126 if it \
        cannot be run, 127 if there is no such command; 2 usage."
)]
pub(crate) struct RunArguments {
    /// The directory of the region, on tmpfs
    #[arg(long, value_name = "DIR", default_value = "/dev/shm")]
    pub region: PathBuf,
    /// The job's name, which is its region's [default: the name of the command's file]
    #[arg(long, value_parser = job)]
    pub name: Option<String>,
    /// A group that may read a new region, by name or number
    #[arg(long, value_name = "GROUP", env = "TALEA_REGION_GROUP", value_parser = group)]
    pub group: Option<u32>,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<std::ffi::OsString>,
}

fn job(text: &str) -> Result<String, String> {
    match text.is_empty() || text.contains('/') {
        true => Err("expected a file name, without /".to_owned()),
        false => Ok(text.to_owned()),
    }
}

/// The number of a user.
fn user(text: &str) -> Result<u32, String> {
    let known = text.parse().ok().or_else(|| Some(uzers::get_user_by_name(text)?.uid()));
    known.ok_or_else(|| "found no such user, expected a name or a number".to_owned())
}

/// The number of a group.
fn group(text: &str) -> Result<u32, String> {
    let known = text.parse().ok().or_else(|| Some(uzers::get_group_by_name(text)?.gid()));
    known.ok_or_else(|| "found no such group, expected a name or a number".to_owned())
}

fn host(text: &str) -> Result<String, String> {
    let host = text.parse::<Authority>().ok().filter(|it| it.as_str() == it.host());
    let host = host.ok_or("expected a name or an address, without a port")?;
    Ok(host.host().trim_end_matches('.').to_owned())
}

/// A template, in which the number of a trace stands after the host: an exemplar may come from anyone.
fn trace_url(text: &str) -> Result<String, String> {
    const EXPECTED: &str = "expected http:// or https:// with a host, and {trace_id} after it, such as \
         https://traces.example/trace/{trace_id}";
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let (host, path) = rest.and_then(|rest| rest.split_once('/')).ok_or(EXPECTED)?;
    let is_plain = !text.chars().any(|it| it.is_whitespace() || it.is_control());
    match host.parse::<Authority>().is_ok() && path.contains("{trace_id}") && is_plain {
        true => Ok(text.to_owned()),
        false => Err(EXPECTED.to_owned()),
    }
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
        with metrics, such as that of `talea serve`. Requests are recognized under the names of any \
        convention: a histogram of durations by method or route, and a counter by status and a gauge \
        of requests in flight with similar names.\n\n\
        Keys: arrows or j and k move, Enter shows an endpoint, s sorts by the next column and r \
        reverses, / filters, the space bar pauses, ? helps, q quits. If standard output is not a \
        terminal, the table is printed once.";

#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 quit by a key or printed, 2 the source cannot be read, 130 stopped by \
        a signal."
)]
pub(crate) struct TopArguments {
    /// The file of a region, the number of a process, or a URL
    #[arg(value_name = "REGION|PID|URL")]
    pub source: Source,
    /// Interval between readings of the source
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    pub every: Duration,
    /// Time that rates and quantiles cover; a longer one is steadier, a shorter one reacts sooner
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub window: Duration,
    /// Print the table once, after two readings, and end
    #[arg(long)]
    pub once: bool,
    #[command(flatten)]
    pub tls: Tls,
}

pub(super) const POSTMORTEM: &str = "Show what happened before a process died.\n\n\
        From the history that `talea serve --history FILE` keeps: each second before a process of \
        the region was found dead, with requests, errors, response times, requests in \
        flight, processor time, memory and tasks; and each endpoint. If no process died, the last \
        seconds that were recorded.\n\n\
        From the region itself: the total of all requests ever counted, its processes, and the latest \
        exemplars. Without a history, only these.";

#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 done, 2 neither the region nor a history can be read, or --history cannot be \
        read, 130 stopped by a signal."
)]
pub(crate) struct PostmortemArguments {
    /// The file of a region; it may be gone, if there is a history
    pub region: PathBuf,
    /// The history that an agent keeps [default: REGION.history, if there is one]
    #[arg(long, value_name = "FILE")]
    pub history: Option<PathBuf>,
    /// Read a history of this user, by name or number [default: the user that this command runs as]
    #[arg(long, value_name = "USER", value_parser = user)]
    pub owner: Vec<u32>,
    /// Time before the death to show
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = duration)]
    pub last: Duration,
    /// The label that distinguishes regions in the history
    #[arg(long, value_name = "NAME", default_value = "region")]
    pub region_label: String,
    /// Print everything as JSON
    #[arg(long)]
    pub json: bool,
    /// Also write a page, one file that needs no network and no script
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::trace_url;

    #[test]
    fn a_template_of_traces_is_one_whose_host_no_exemplar_can_choose() {
        for (text, is_fit) in [
            ("https://traces.example/trace/{trace_id}", true),
            ("http://127.0.0.1:16686/trace/{trace_id}?uiFind=a", true),
            ("https://grafana.example/explore?id={trace_id}", true),
            ("javascript:alert({trace_id})", false),
            ("javascript://a/{trace_id}", false),
            ("data:text/html,{trace_id}", false),
            ("//traces.example/{trace_id}", false),
            ("https://{trace_id}/", false),
            ("https://{trace_id}.example/{trace_id}", false),
            ("https:///{trace_id}", false),
            ("https://traces.example/", false),
            ("https://traces.example/{trace_id} x", false),
            ("HTTPS:traces.example/{trace_id}", false),
        ] {
            assert_eq!(trace_url(text).is_ok(), is_fit, "{text}");
        }
    }
}
