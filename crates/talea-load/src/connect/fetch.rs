//! One GET, as a scraper does it.

use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use http_body_util::{BodyExt, Empty, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST};
use hyper::http::uri::{Authority, Scheme};
use hyper::{Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::{MOST_KEPT, Stream, Trust, port, tls};

/// How long connecting and answering may take together.
const WITHIN: Duration = Duration::from_secs(30);

/// The answer to a request for a URL.
pub struct Answer {
    pub body: Vec<u8>,
    pub content_type: Option<String>,
}

/// Asks a URL for a page in one of the formats of an `Accept` header.
pub async fn fetch(url: &Uri, accept: &str, trust: Trust<'_>) -> Result<Answer> {
    let answer = tokio::time::timeout(WITHIN, get(url, accept, trust)).await;
    answer.context("no answer in 30 s")?
}

async fn get(url: &Uri, accept: &str, trust: Trust<'_>) -> Result<Answer> {
    let authority = url.authority().context("no host")?;
    let stream = connect(url, authority, trust).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // It ends with the answer; an error is returned there too.
    tokio::spawn(connection);
    let request = Request::get(url.path_and_query().map_or("/", |path| path.as_str()))
        .header(HOST, authority.as_str())
        .header(ACCEPT, accept)
        .body(Empty::<Bytes>::new())?;
    let answer = sender.send_request(request).await.context("no answer")?;
    if answer.status() != StatusCode::OK {
        bail!("answered {}, expected {}", answer.status(), StatusCode::OK);
    }
    let header = answer.headers().get(CONTENT_TYPE).and_then(|header| header.to_str().ok());
    let content_type = header.map(ToOwned::to_owned);
    let body = Limited::new(answer.into_body(), MOST_KEPT).collect().await;
    let body = body.map_err(|error| match error.is::<LengthLimitError>() {
        true => anyhow!("the answer is longer than {} MiB", MOST_KEPT >> 20),
        false => anyhow!(error).context("the answer ends too early"),
    })?;
    Ok(Answer { body: body.to_bytes().into(), content_type })
}

async fn connect(url: &Uri, authority: &Authority, trust: Trust<'_>) -> Result<Stream> {
    let is_https = url.scheme() == Some(&Scheme::HTTPS);
    let host = authority.host().trim_matches(['[', ']']);
    let port = port(authority, is_https).map_err(|error| anyhow!(error))?;
    let stream = TcpStream::connect((host, port)).await;
    let stream = stream.context("cannot be reached: is the service up, and the URL right?")?;
    if !is_https {
        return Ok(Box::new(stream));
    }
    let config = tls::config(trust, "http/1.1")?;
    let name = ServerName::try_from(host.to_owned()).context("the host has no name for TLS")?;
    let stream = TlsConnector::from(config).connect(name, stream).await;
    let stream = stream.context(
        "no TLS: name its certificate's issuer with --ca FILE, or take any with --insecure",
    )?;
    Ok(Box::new(stream))
}
