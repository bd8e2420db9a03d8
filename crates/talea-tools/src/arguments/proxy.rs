//! The metering proxy.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use axum::http::uri::{Authority, Uri};
use clap::Args;

use super::quantity::{address, duration};

pub(super) const PROXY: &str = "Forward requests to an HTTP service, and meter them by the operations of its OpenAPI \
        document.\n\n\
        For a service in any language that cannot meter itself: clients are sent to --listen, and their requests go on \
        to UPSTREAM with the same path, Host and body. The document is of OpenAPI 3.0 or 3.1, in JSON or YAML. Each of its \
        operations has its series from the start; a request that matches none is recorded as _unmatched.\n\n\
        Bodies pass as they come, in both directions. If the client goes away, the upstream's connection is closed. \
        The response is 502 if the upstream is gone, and 504 if nothing moves for --timeout before its response \
        begins. The proxy speaks HTTP/1.1 without TLS. It forwards no upgrade, so a WebSocket cannot be opened \
        through it.\n\n\
        Its metrics are in its own memory, or in the region that TALEA_REGION names, where talea serve finds them.";

#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 stopped by a signal, 2 the document cannot be used, or an address is in use."
)]
pub(crate) struct ProxyArguments {
    /// The service, such as http://127.0.0.1:4000
    #[arg(value_parser = upstream)]
    pub upstream: Authority,
    /// The service's OpenAPI document
    #[arg(long, value_name = "FILE")]
    pub openapi: PathBuf,
    /// A prefix of all paths of the document, such as /api/v1, as its `servers` may have it; they are not read
    #[arg(long, value_name = "PREFIX")]
    pub under: Option<String>,
    /// Address at which clients connect, such as 127.0.0.1:8080 or :8080
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub listen: SocketAddr,
    /// Address of the metrics
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9464", value_parser = address)]
    pub metrics: SocketAddr,
    /// Time to wait for the head of a response, without progress
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    pub timeout: Duration,
}

fn upstream(text: &str) -> Result<Authority, String> {
    const EXPECTED: &str = "expected scheme, host and port alone, such as http://127.0.0.1:4000";
    let uri: Uri = text.parse().map_err(|error| format!("{error}; {EXPECTED}"))?;
    match (uri.scheme_str(), uri.authority(), uri.path(), uri.query()) {
        (Some("http"), Some(authority), "/", None) if !authority.as_str().contains('@') => {
            Ok(authority.clone())
        }
        _ => Err(format!("found {text}; {EXPECTED}")),
    }
}
