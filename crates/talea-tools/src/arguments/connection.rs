//! How a command connects to a service.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use talea_load::connect::{self, Trust};
use talea_load::{Protocol, Target};

use super::quantity::duration;

/// How clients connect to a service.
#[derive(Debug, Args)]
pub(crate) struct Connection {
    /// Use HTTP/2; without TLS, by prior knowledge
    #[arg(long)]
    pub http2: bool,
    /// Open a connection for each request
    #[arg(long, conflicts_with = "http2")]
    pub no_keep_alive: bool,
    #[command(flatten)]
    pub tls: Tls,
    /// Time to wait for a connection or a response before the request counts as failed; it then counts as at
    /// least this long in response times
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    pub timeout: Duration,
}

impl Connection {
    pub(crate) fn protocol(&self) -> Protocol {
        match (self.http2, self.no_keep_alive) {
            (true, _) => Protocol::Http2,
            (false, closes) => Protocol::Http1 { keep_alive: !closes },
        }
    }
}

/// The trusted certificates, for a URL with `https`.
#[derive(Debug, Args)]
pub(crate) struct Tls {
    /// Trust the certificates in this PEM file instead of the system's
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Trust any certificate
    #[arg(long, conflicts_with = "ca")]
    pub insecure: bool,
}

impl Tls {
    /// This target, ready for TLS if its URL asks for it.
    ///
    /// # Errors
    /// When the certificates cannot be read.
    pub(crate) fn to(&self, target: &Target, alpn: &str) -> anyhow::Result<Target> {
        if !target.is_https() {
            return Ok(target.clone());
        }
        let trust = match &self.ca {
            _ if self.insecure => Trust::Any,
            Some(path) => Trust::File(path),
            None => Trust::System,
        };
        Ok(target.clone().over(connect::config(trust, alpn)?))
    }
}
