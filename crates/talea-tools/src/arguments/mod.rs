//! The command line of `talea`.

pub(crate) mod connection;
#[cfg(target_os = "linux")]
mod proxy;
pub(crate) mod quantity;
#[cfg(target_os = "linux")]
mod regions;
mod request;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use clap::{Args, Parser, Subcommand, ValueEnum};
use talea_load::scenario::Shard;
use talea_load::{Rate, Target};
use talea_parse::Syntax;

use crate::check::Source;
use crate::results::{ResultFile, Results};
use talea_study::compare::{Condition, Goal};
use talea_study::study::{Case, KNOWN, LONG};

use self::connection::{Connection, Tls};
#[cfg(target_os = "linux")]
pub(crate) use self::proxy::ProxyArguments;
use self::quantity::{address, at_least_one, duration, instant};
#[cfg(target_os = "linux")]
pub(crate) use self::regions::{
    ExpireArguments, InspectArguments, PostmortemArguments, RegionFamilies, RegionSource,
    RunArguments, ServeArguments, TopArguments, WipeArguments,
};
use self::request::Requests;

/// Read the metrics of HTTP services, and measure the services under load.
#[derive(Debug, Parser)]
#[command(name = "talea", version, propagate_version = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make load on a service, and count every request and response
    #[command(long_about = LOAD)]
    Load(Box<LoadArguments>),
    /// Run load cases against a service, sample its metrics, and write a report
    #[command(long_about = STUDY)]
    Study(Box<StudyArguments>),
    /// Check a text of metrics against its format, with a correction for each finding
    #[command(long_about = CHECK)]
    Check(CheckArguments),
    /// Look into the shared memory that a service counts in, from outside
    #[cfg(target_os = "linux")]
    #[command(long_about = regions::INSPECT)]
    Inspect(InspectArguments),
    /// Reset the counts of a service in shared memory to 0
    #[cfg(target_os = "linux")]
    #[command(long_about = regions::WIPE)]
    Wipe(WipeArguments),
    /// Remove idle series from shared memory
    #[cfg(target_os = "linux")]
    #[command(long_about = regions::EXPIRE)]
    Expire(ExpireArguments),
    /// Serve the metrics of regions from outside, also while their services are stopped or dead
    #[cfg(target_os = "linux")]
    #[command(long_about = regions::SERVE)]
    Serve(Box<ServeArguments>),
    /// Run a command as a job with a region of its own, and record how it ended
    #[cfg(target_os = "linux")]
    #[command(long_about = regions::RUN)]
    Run(RunArguments),
    /// Forward requests to an HTTP service, and meter them by its OpenAPI document
    #[cfg(target_os = "linux")]
    #[command(long_about = proxy::PROXY)]
    Proxy(ProxyArguments),
    /// Watch the endpoints of a service as it runs, in a terminal
    #[cfg(all(target_os = "linux", feature = "top"))]
    #[command(long_about = regions::TOP)]
    Top(TopArguments),
    /// Show the last minute before a process died, from the agent's history and the region
    #[cfg(target_os = "linux")]
    #[command(long_about = regions::POSTMORTEM)]
    Postmortem(PostmortemArguments),
    /// Print the completion script for a shell
    #[cfg(feature = "completions")]
    #[command(long_about = COMPLETIONS)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages into a folder
    #[cfg(feature = "completions")]
    #[command(long_about = MAN)]
    Man {
        /// The folder, which is created if it is missing
        folder: PathBuf,
    },
}

#[cfg(feature = "completions")]
const MAN: &str = "Write the manual pages into a folder.\n\n\
        They are talea.1 and one for each command. `man` looks in ~/.local/share/man/man1.";

#[cfg(feature = "completions")]
const COMPLETIONS: &str = "Print the completion script for a shell.\n\n\
        bash: talea completions bash > ~/.local/share/bash-completion/completions/talea\n\
        zsh:  talea completions zsh > \"${fpath[1]}/_talea\"\n\
        fish: talea completions fish > ~/.config/fish/completions/talea.fish";

const LOAD: &str = "Make load on a service, and count every request and response.\n\n\
        The URL is requested by GET, or as --method, --header and --data say. --scenario runs several \
        steps; --scenario crud creates, changes and deletes records.\n\n\
        Closed model: --clients make requests, each --iterations times, --requests in total, or for the \
        time --for. A client keeps one connection, waits for each response and reads its whole body.\n\n\
        Open model: scenarios begin at a --rate, independent of earlier responses. Response times count \
        from when a request was due, so that a server that stalls cannot hide it \
        (coordinated omission).\n\n\
        A request that fails, or whose response has another status than the scenario expects, is \
        counted and shown; it is never repeated.";

#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 nothing failed, 1 a request failed or --fail-if holds, 2 wrong usage or the \
        target cannot be reached, 3 nothing failed but --fail-if is not decided, 130 stopped by a signal.",
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub(crate) struct LoadArguments {
    /// The URL to request, or to which the scenario's paths are appended, such as
    /// http://127.0.0.1:4000/api/items
    #[arg(required = true)]
    pub url: Option<Target>,
    #[command(flatten)]
    pub requests: Requests,
    /// Number of clients that run at the same time [default: 50, at most --requests]; with --rate the maximum [default: 1000]
    #[arg(long, short = 'c', value_name = "N", value_parser = at_least_one)]
    pub clients: Option<u64>,
    /// Number of times that each client makes the request or runs the scenario
    #[arg(long, short = 'm', value_name = "M", value_parser = at_least_one, conflicts_with_all = ["during", "rate", "poisson"])]
    pub iterations: Option<u64>,
    /// Number of times that all clients together make the request or run the scenario
    #[arg(long = "requests", short = 'n', value_name = "N", value_parser = at_least_one, conflicts_with_all = ["iterations", "during", "rate", "poisson"])]
    pub total: Option<u64>,
    /// How long to make load [default: 10s, without --requests, --iterations and stages of --rate]
    #[arg(long = "for", short = 'z', value_name = "TIME", value_parser = duration)]
    pub during: Option<Duration>,
    /// Scenarios that begin each second, such as 200; or stages, such as 100:10s,100-400:30s,400:10s, of which the
    /// second one's rate changes evenly
    #[arg(long, value_name = "RATE")]
    pub rate: Option<Rate>,
    /// Find between which rates the highest lies at which this holds, such as 'p99 < 50ms and failed < 1%': loads of
    /// the time --for (10 s), from --rate (10) on, some 40
    #[arg(long, value_name = "CONDITIONS", conflicts_with_all = ["iterations", "total", "rounds", "samples", "live", "dry_run", "fail_if", "result"])]
    pub find_limit: Option<Goal>,
    /// Begin scenarios at random times (a Poisson process) rather than evenly
    #[arg(long, requires = "rate")]
    pub poisson: bool,
    #[command(flatten)]
    pub connection: Connection,
    /// Make load for this time first, without counting it
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub warm_up: Option<Duration>,
    /// Fail if this holds, such as 'p99 > 50ms', 'failed > 1%', or of a step 'order: p95 > 80ms'; with several
    /// rounds, if the whole interval lies beyond the limit, and not decided if the limit lies in it. Figures: rate,
    /// time, mean, any quantile such as p99.9, failed, checks ('checks < 99%' passed)
    #[arg(long, value_name = "CONDITION")]
    pub fail_if: Vec<Condition>,
    /// Number of rounds of the whole load; from two on, results have intervals over the rounds
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = at_least_one)]
    pub rounds: u64,
    /// Seed for random values and arrivals: the same seed repeats them
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
    /// Write a line of CSV for each request; response_us, which the quantiles use, counts from when the
    /// arrival was due, took_us from when the request was sent
    #[arg(long, value_name = "FILE")]
    pub samples: Option<PathBuf>,
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    pub live: Live,
    /// Watch the resident memory of this process on this machine, the server's: its peak and growth, also for --fail-if
    /// 'memory > +10%'; several are added up
    #[arg(long, value_name = "PID", value_delimiter = ',', conflicts_with_all = ["record", "find_limit", "dry_run"])]
    pub server_pid: Vec<u32>,
    /// Also count in the region of this file on tmpfs, such as /dev/shm/load.talea, which `talea serve` shows while
    /// the load runs; the warm-up is in it too
    #[arg(long, value_name = "FILE")]
    pub region: Option<PathBuf>,
    /// Send the requests once, by one client, and print each with its response; no load
    #[arg(long, conflicts_with_all = ["json", "live", "region", "samples", "fail_if", "warm_up"])]
    pub dry_run: bool,
    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,
    /// Make one part of the load, such as 3/8, the third of eight: its share of clients, requests, arrivals and rows of
    /// feeds; index/8 takes the number from $JOB_COMPLETION_INDEX
    #[arg(long, value_name = "I/N", requires = "record", conflicts_with_all = ["rounds", "find_limit", "dry_run"])]
    pub shard: Option<Shard>,
    /// Begin at this time, such as 2026-01-31T12:00:00Z or seconds since 1970, together with other shards
    #[arg(long, value_name = "TIME", value_parser = instant, conflicts_with_all = ["find_limit", "dry_run"])]
    pub start_at: Option<SystemTime>,
    /// Append the result to a file, as a line of JSON for `talea load merge`; - is standard output, without a summary
    #[arg(long, value_name = "FILE", conflicts_with_all = ["rounds", "find_limit", "dry_run", "json"])]
    pub record: Option<PathBuf>,
    /// Number of threads that clients run on [default: one for each 100 clients, up to the number of cores]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub threads: Option<u64>,
    /// Commands for loads that were made before.
    #[command(subcommand)]
    pub then: Option<LoadCommand>,
}

/// Commands for loads that were made before.
#[derive(Debug, Subcommand)]
pub(crate) enum LoadCommand {
    /// Put the results of shards together
    Merge(MergeArguments),
}

#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 nothing failed and no shard is missing, 1 a request failed, a shard is missing or was \
                  stopped, or --fail-if holds, 2 a file cannot be read or the shards are of different loads, 3 nothing \
                  failed but --fail-if is not decided."
)]
pub(crate) struct MergeArguments {
    /// Files of --record, or logs that have such lines
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Fail if this holds, as for `talea load`
    #[arg(long, value_name = "CONDITION")]
    pub fail_if: Vec<Condition>,
    #[command(flatten)]
    pub output: Output,
    /// Print the whole result as JSON: counts, faults, distributions and each second
    #[arg(long)]
    pub json: bool,
}

/// Results for other programs, and how much is shown.
#[derive(Debug, Args)]
pub(crate) struct Output {
    /// Write the figures and conditions for another program too: csv=FILE, junit=FILE, or markdown=FILE, which is
    /// appended to, such as markdown="$GITHUB_STEP_SUMMARY"; may be given more than once
    #[arg(long, value_name = "FORMAT=FILE")]
    pub result: Vec<ResultFile>,
    /// Show no progress, and no condition that passed
    #[arg(long, short = 'q')]
    pub quiet: bool,
}

impl Output {
    /// Fails if a file cannot be written, so that a load whose results would be lost does not begin.
    pub(crate) fn prepare(&self) -> anyhow::Result<()> {
        self.result.iter().try_for_each(ResultFile::prepare)
    }

    pub(crate) fn write(&self, results: &Results) -> anyhow::Result<()> {
        self.result.iter().try_for_each(|file| file.write(results))
    }
}

/// A live page of a load or a study.
#[derive(Debug, Args)]
pub(crate) struct Live {
    /// Serve a live page of clients and server during the run; on a free loopback port, or at this
    /// address
    #[arg(
        long,
        value_name = "ADDRESS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "127.0.0.1:0",
        value_parser = address
    )]
    pub live: Option<SocketAddr>,
}

const STUDY: &str = "Run load cases against a service, sample its metrics, and write a report.\n\n\
        Without --url the service is the items API, in a child process on free ports, with an empty \
        database for each case. While a case runs, the service's metrics are sampled every 100 ms. \
        Server figures come from these metrics, client figures from the clients.";

#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 nothing failed and both sides agree, 1 a request failed, they \
        disagree or --fail-if holds, 2 the study could not run, 3 nothing failed but --fail-if is not decided, 130 \
        stopped by a signal (no report is written).",
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub(crate) struct StudyArguments {
    /// Cases to run, in this order: A (10x20), B (100x20), C (1000x20), D (20x100), E (20x1000);
    /// clients x iterations, such as 500x5; clients for a time, such as 500x10s; or arrivals, such
    /// as 200/s:10s
    #[arg(long, value_name = "CASES", value_delimiter = ',', default_value = "A,B,C,D,E")]
    pub cases: Vec<Case>,
    /// Run cases of 10 s instead, long enough for a Prometheus that scrapes once a second: 10x10s,
    /// 20x10s, 100x10s, 1000x10s
    #[arg(long, conflicts_with = "cases")]
    pub long: bool,
    /// Folder for report.html and report.json
    #[arg(long, value_name = "DIR", default_value = "target/study")]
    pub out: PathBuf,
    /// The URL of a running service, to which the scenario's paths are appended
    #[arg(long, value_name = "URL", conflicts_with = "api")]
    pub url: Option<Target>,
    /// The URL of that service's metrics, in the Prometheus text format; also for each command line of --ab
    #[arg(long, value_name = "URL", requires = "url", value_parser = Target::page)]
    pub metrics_url: Option<Target>,
    /// The names of its metrics: talea, phoenix (on Cowboy) or opentelemetry [default: as the scenario
    /// says, or talea]
    #[arg(long, value_name = "NAMES")]
    pub names: Option<String>,
    /// A Prometheus that scrapes the service, to query too
    #[arg(long, value_name = "URL")]
    pub prometheus: Option<Target>,
    /// Labels of the service's series there, such as job="server", if it scrapes others too
    #[arg(long, value_name = "LABELS", requires = "prometheus", default_value = "")]
    pub prometheus_labels: String,
    /// Start a Prometheus that scrapes the service once a second, and query it too
    #[arg(
        long,
        value_name = "PROGRAM",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "prometheus",
        conflicts_with_all = ["prometheus", "prometheus_labels"]
    )]
    pub with_prometheus: Option<PathBuf>,
    /// A shell command to run before each case, such as one that empties the database; it has no
    /// standard input
    #[arg(long, value_name = "COMMAND")]
    pub before_case: Option<String>,
    /// The items-api program [default: the one beside this program]
    #[arg(long, value_name = "PATH", conflicts_with = "metrics_url")]
    pub api: Option<PathBuf>,
    #[command(flatten)]
    pub requests: Requests,
    #[command(flatten)]
    pub connection: Connection,
    /// Make the load of each case for this time first, without counting it
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub warm_up: Option<Duration>,
    /// Number of rounds of all cases; from two on, results have intervals over the rounds [default: 1,
    /// with --ab 5]
    #[arg(long, value_name = "K", value_parser = at_least_one)]
    pub rounds: Option<u64>,
    /// Variants to run in turns, each compared with the first: environment and arguments of the items API
    /// ('ITEMS_METRICS=off', '--pool 5'), command lines, or the URLs of a service and its metrics
    /// ('http://… http://…')
    #[arg(long, value_name = "VARIANT", num_args = 2..)]
    pub ab: Vec<String>,
    /// Fail if this holds for a case: 'p99 > 1.1x' (times the first variant's), 'p99 > 50ms', 'failed > 1%', of
    /// one case 'C: failed > 0', of a step 'order: p95 > 80ms', of an endpoint by the service's metrics
    /// 'endpoint GET /orders: p95 > 80ms'; with an interval, if all of it lies beyond the
    /// limit, and not decided if the limit lies in it. Figures: rate, time, mean, any quantile such as p99.9, cpu
    /// (for a request), memory (also 'memory > +10%', its growth in a case), failed, checks
    #[arg(long, value_name = "CONDITION")]
    pub fail_if: Vec<Condition>,
    /// Seed for random values: the same seed repeats them
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    pub live: Live,
    /// Commands for earlier studies.
    #[command(subcommand)]
    pub then: Option<StudyCommand>,
}

impl StudyArguments {
    /// The cases to run, and a sentence that says which these are if they are a set of Talea's.
    pub(crate) fn chosen_cases(&self) -> (Vec<Case>, Option<&'static str>) {
        let parsed = |cases: &[&str]| cases.iter().filter_map(|case| case.parse().ok()).collect();
        let default: Vec<Case> = parsed(&KNOWN.map(|(id, ..)| id));
        match self.long {
            true => (parsed(&LONG), Some("These are the long cases, of 10 s each.")),
            false if self.cases == default => {
                let words = "These are the short cases, of a fixed number of requests. With --long \
                             they take 10 s each, so that a scrape a second sees them.";
                (default, Some(words))
            }
            false => (self.cases.clone(), None),
        }
    }
}

/// Commands for earlier studies.
#[derive(Debug, Subcommand)]
pub(crate) enum StudyCommand {
    /// Compare reports with the first of them
    Compare(CompareArguments),
}

#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 done, 1 --fail-if holds, 2 a report cannot be read, or has no case in common \
                  with the first, 3 --fail-if is not decided."
)]
pub(crate) struct CompareArguments {
    /// report.json of each study
    #[arg(value_name = "REPORT", num_args = 2.., required = true)]
    pub reports: Vec<PathBuf>,
    /// Fail if this holds for a case, such as 'p99 > 1.1x' (times the first report's)
    #[arg(long, value_name = "CONDITION")]
    pub fail_if: Vec<Condition>,
    /// Print the comparison as JSON
    #[arg(long)]
    pub json: bool,
}

const CHECK: &str = "Check a text of metrics against its format, with a correction for each finding.\n\n\
        The Prometheus text format 0.0.4 or OpenMetrics 1.0 forbids a violation. Advice is what they or \
        `promtool check metrics` recommend: help, units, names. Each finding is a line, \
        PATH:LINE:COLUMN: violation|advice: what was found; what to write instead.";

#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 no violations, 1 violations (with --strict also advice; an empty text \
        is a violation), 2 the text cannot be read, 130 stopped by a signal."
)]
pub(crate) struct CheckArguments {
    /// A file, or a URL such as http://127.0.0.1:9100/metrics; - is standard input
    #[arg(value_name = "FILE|URL", default_value = "-")]
    pub source: Source,
    /// The text's format [default: the Content-Type of a URL; otherwise OpenMetrics if the text has a line
    /// # EOF, a unit, or a type that text 0.0.4 lacks]
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<CheckedFormat>,
    #[command(flatten)]
    pub tls: Tls,
    /// Fail on advice too
    #[arg(long)]
    pub strict: bool,
    /// Print each finding as a line of JSON
    #[arg(long)]
    pub json: bool,
}

/// A format that can be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CheckedFormat {
    /// The Prometheus text format 0.0.4
    Text,
    /// OpenMetrics text 1.0
    #[value(name = "openmetrics")]
    OpenMetrics,
}

impl From<CheckedFormat> for Syntax {
    fn from(format: CheckedFormat) -> Self {
        match format {
            CheckedFormat::Text => Self::Text,
            CheckedFormat::OpenMetrics => Self::OpenMetrics,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use talea_load::{Model, Until};

    use super::*;

    #[test]
    fn the_command_line_is_consistent_and_help_says_more_of_a_command_than_its_line() {
        use clap::CommandFactory;
        Arguments::command().debug_assert();
        for command in Arguments::command().get_subcommands() {
            let line = command.get_about().map(ToString::to_string).unwrap_or_default();
            let long = command.get_long_about().map(ToString::to_string).unwrap_or_default();
            assert!(long.len() > line.len(), "{}: {long:?}", command.get_name());
        }
    }

    /// The text of the files below a folder, or of their tests.
    fn texts(folder: &Path, tests: bool) -> String {
        let mut all = String::new();
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                all += &texts(&path, tests);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                all += if tests {
                    text.split_once("#[cfg(test)]").map_or("", |it| it.1)
                } else {
                    &text
                };
            }
        }
        all
    }

    /// The options of a command and its subcommands that no test names.
    fn unused(command: &clap::Command, tests: &str) -> Vec<String> {
        let options = command.get_arguments().filter_map(clap::Arg::get_long);
        let unused = options.filter(|option| {
            let option = format!("--{option}");
            let mut uses = tests.match_indices(&*option).map(|(at, it)| at + it.len());
            uses.all(|end| {
                tests[end..].starts_with(|next: char| next == '-' || next.is_alphanumeric())
            })
        });
        let name = command.get_name();
        let mut unused: Vec<String> = unused.map(|option| format!("{name} --{option}")).collect();
        unused.extend(command.get_subcommands().flat_map(|inner| self::unused(inner, tests)));
        unused
    }

    #[test]
    fn every_option_of_loads_and_studies_has_a_test() {
        use clap::CommandFactory;
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let tests = texts(&folder.join("tests"), false) + &texts(&folder.join("src"), true);
        for name in ["load", "study"] {
            let command = Arguments::command();
            let unused = unused(command.find_subcommand(name).unwrap(), &tests);
            assert_eq!(unused, [] as [&str; 0]);
        }
    }

    #[test]
    fn an_option_that_would_have_no_effect_is_refused() {
        for words in [
            "load http://a/ -c 1 -m 1 --poisson",
            "study --api a --metrics-url http://a/",
            "study --with-prometheus --prometheus-labels a",
        ] {
            let parsed = Arguments::try_parse_from(["talea"].into_iter().chain(words.split(' ')));
            assert!(parsed.unwrap_err().to_string().contains("cannot be used with"), "{words}");
        }
    }

    #[test]
    fn a_study_names_the_set_of_cases_that_it_runs() {
        let chosen = |options: &[&str]| {
            let words = ["talea", "study"].iter().chain(options);
            let arguments = Arguments::try_parse_from(words).unwrap();
            let Command::Study(study) = arguments.command else { panic!("a study") };
            study.chosen_cases()
        };
        let (cases, words) = chosen(&[]);
        assert_eq!(cases.iter().map(|case| &*case.id).collect::<String>(), "ABCDE");
        assert!(words.unwrap().starts_with("These are the short cases"), "{words:?}");
        let (cases, words) = chosen(&["--long"]);
        assert!(cases.iter().map(|case| &*case.id).eq(talea_study::study::LONG));
        let clients = cases.iter().map(|case| match case.model {
            // Long enough for several scrapes, of one a second.
            Model::Closed { clients, until: Until::Time(time) } if time.as_secs() == 10 => clients,
            _ => panic!("{case:?}"),
        });
        assert_eq!(clients.collect::<Vec<_>>(), [10, 20, 100, 1000]);
        assert!(words.unwrap().starts_with("These are the long cases"), "{words:?}");
        assert_eq!(chosen(&["--cases", "A,5x1s"]).1, None);
    }
}
