//! The design of a study: its target, its cases, its load.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use talea_load::scenario::{Names, Scenario};
use talea_load::{Protocol, Target};

use super::case::Case;

#[derive(Clone, Debug)]
pub struct Design {
    pub service: Service,
    pub cases: Vec<Case>,
    pub scenario: Arc<Scenario>,
    pub names: Names,
    pub protocol: Protocol,
    /// How long a client waits for a connection or an answer.
    pub timeout: Duration,
    pub seed: u64,
    /// How long the load of each case is made before it, uncounted.
    pub warm_up: Option<Duration>,
    /// A command line for the shell that is run before each case.
    pub before_case: Option<String>,
    pub prometheus: Option<PrometheusSource>,
    /// Whether the service must count its requests. One variant among others may go without.
    pub must_count: bool,
    /// Whether no progress is shown.
    pub quiet: bool,
    /// The command line that does it again.
    pub command: String,
}

#[derive(Clone, Debug)]
pub enum Service {
    /// A program that the study starts and ends.
    Program(Program),
    /// One that runs already.
    Running(Box<Addresses>),
}

/// A program that the study starts and ends.
#[derive(Clone, Debug)]
pub struct Program {
    pub path: PathBuf,
    pub arguments: Vec<String>,
    /// Environment variables beyond those of this process.
    pub environment: Vec<(String, String)>,
    pub addresses: AddressSource,
}

#[derive(Clone, Debug)]
pub enum AddressSource {
    /// It prints `items on URL` and `metrics on URL`, empties its database at `POST /study/reset`
    /// beside its metrics, and ends when its standard input does: the items API with `--study`.
    ByItself,
    /// It serves there once it accepts connections, and ends at SIGTERM.
    Beforehand(Box<Addresses>),
}

#[derive(Clone, Debug)]
pub struct Addresses {
    /// The URL that the scenario's paths stand behind.
    pub items: Target,
    pub metrics: Option<Target>,
}

/// A Prometheus that scrapes the service too.
#[derive(Clone, Debug)]
pub enum PrometheusSource {
    /// One that runs already, and the labels of the service's series there, such as
    /// `job="server"`; empty where only that service has such metrics.
    Running(Box<Target>, String),
    /// One that the study starts, by the program's name, with this `tls_config`.
    Started(PathBuf, String),
}

/// As it would be typed, without the arguments that the study adds.
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.environment {
            write!(f, "{name}={value} ")?;
        }
        let path = self.path.file_name().unwrap_or(self.path.as_os_str());
        f.write_str(&path.to_string_lossy())?;
        let by_itself = matches!(self.addresses, AddressSource::ByItself);
        for argument in &self.arguments {
            if by_itself && STUDY_ARGUMENTS.contains(&argument.as_str()) {
                continue;
            }
            write!(f, " {argument}")?;
        }
        Ok(())
    }
}

/// The arguments of a program that prints its addresses itself: free ports of the loopback.
pub const STUDY_ARGUMENTS: [&str; 5] =
    ["--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0", "--study"];

impl Addresses {
    pub(super) fn all(&self) -> impl Iterator<Item = &Target> {
        std::iter::once(&self.items).chain(&self.metrics)
    }
}

impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.metrics {
            Some(metrics) => write!(f, "{}, metrics at {metrics}", self.items),
            None => write!(f, "{}, without metrics", self.items),
        }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program(program) => program.fmt(f),
            Self::Running(addresses) => addresses.fmt(f),
        }
    }
}

impl Service {
    /// Whether the study may ask it to empty its database.
    pub(super) fn resets(&self) -> bool {
        matches!(self, Self::Program(Program { addresses: AddressSource::ByItself, .. }))
    }

    /// Whether the study reads its metrics.
    pub fn has_metrics(&self) -> bool {
        match self {
            Self::Program(Program { addresses: AddressSource::Beforehand(addresses), .. })
            | Self::Running(addresses) => addresses.metrics.is_some(),
            Self::Program(_) => true,
        }
    }
}
