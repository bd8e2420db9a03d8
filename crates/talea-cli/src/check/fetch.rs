//! One GET, as a scraper does it.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST};
use hyper::http::uri::{Authority, Scheme};
use hyper::{Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use talea_parse::Syntax;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::arguments::Tls;
use crate::connect::{self, Stream, Trust};

/// How long connecting and answering may take together.
const WITHIN: Duration = Duration::from_secs(30);

/// The answer of a URL, and the format that it states.
pub(super) async fn fetch(
    url: &Uri,
    wanted: Option<Syntax>,
    tls: &Tls,
) -> Result<(Vec<u8>, Option<Syntax>)> {
    let answer = tokio::time::timeout(WITHIN, get(url, wanted, tls)).await;
    answer.context("no answer in 30 s")?
}

async fn get(url: &Uri, wanted: Option<Syntax>, tls: &Tls) -> Result<(Vec<u8>, Option<Syntax>)> {
    let authority = url.authority().context("no host")?;
    let stream = connect(url, authority, tls).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // It ends with the answer; an error is returned there too.
    tokio::spawn(connection);
    let request = Request::get(url.path_and_query().map_or("/", |path| path.as_str()))
        .header(HOST, authority.as_str())
        .header(ACCEPT, accept(wanted))
        .body(Empty::<Bytes>::new())?;
    let answer = sender.send_request(request).await.context("no answer")?;
    if answer.status() != StatusCode::OK {
        bail!("answered {}, expected {}", answer.status(), StatusCode::OK);
    }
    let header = answer.headers().get(CONTENT_TYPE).and_then(|header| header.to_str().ok());
    let syntax = header.and_then(Syntax::of_content_type);
    if syntax.or(wanted).is_none() {
        bail!(
            "its Content-Type is {}, which is no text format of metrics; --format says which it is",
            header.unwrap_or("missing")
        );
    }
    let body = answer.into_body().collect().await.context("the answer ends too early")?;
    Ok((body.to_bytes().into(), syntax))
}

async fn connect(url: &Uri, authority: &Authority, tls: &Tls) -> Result<Stream> {
    let is_https = url.scheme() == Some(&Scheme::HTTPS);
    let host = authority.host().trim_matches(['[', ']']);
    let port = authority.port_u16().unwrap_or(if is_https { 443 } else { 80 });
    let stream = TcpStream::connect((host, port)).await;
    let stream = stream.context("cannot be reached: is the service up, and the URL right?")?;
    if !is_https {
        return Ok(Stream::Plain(stream));
    }
    let config = connect::config(Trust::of(tls.ca.as_deref(), tls.insecure), "http/1.1")?;
    let name = ServerName::try_from(host.to_owned()).context("the host has no name for TLS")?;
    let stream = TlsConnector::from(config).connect(name, stream).await;
    let stream = stream.context(
        "no TLS: name its certificate's issuer with --ca FILE, or take any with --insecure",
    )?;
    Ok(Stream::Tls(Box::new(stream)))
}

/// As Prometheus has it: OpenMetrics first, where both will do.
fn accept(wanted: Option<Syntax>) -> &'static str {
    match wanted {
        Some(Syntax::Text) => "text/plain;version=0.0.4",
        Some(Syntax::OpenMetrics) => "application/openmetrics-text;version=1.0.0",
        None => "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5",
    }
}
