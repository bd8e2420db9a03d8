//! One GET, as a scraper does it.

use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use http_body_util::{BodyExt, Empty, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;

use crate::connect::{EXPECTS_TLS, MOST_KEPT};
use crate::target::Target;

/// How long connecting and answering may take together.
const WITHIN: Duration = Duration::from_secs(30);

/// The answer to a request for a URL.
pub struct Answer {
    pub body: Vec<u8>,
    pub content_type: Option<String>,
}

/// Asks a URL, ready for TLS where that is `https`, for a page in one of the formats of an `Accept` header.
pub async fn fetch(target: &Target, accept: &str) -> Result<Answer> {
    let answer = tokio::time::timeout(WITHIN, get(target, accept)).await;
    answer.context("no response within 30 s")?
}

async fn get(target: &Target, accept: &str) -> Result<Answer> {
    let stream = target.connect_tcp().await;
    let stream = stream.context(
        "cannot be reached; check that the service runs and that the URL \
        is right",
    )?;
    let stream = target.secured(stream).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // It ends with the answer; an error is returned there too.
    tokio::spawn(connection);
    let request = Request::get(target.path())
        .header(HOST, target.host_header())
        .header(ACCEPT, accept)
        .body(Empty::<Bytes>::new())?;
    let answer = match sender.send_request(request).await {
        Ok(answer) => answer,
        Err(_) if target.expects_tls().await => bail!("{EXPECTS_TLS}"),
        Err(error) => return Err(anyhow!(error).context("no response")),
    };
    if answer.status() != StatusCode::OK {
        bail!("found the status {}, expected {}", answer.status(), StatusCode::OK);
    }
    let header = answer.headers().get(CONTENT_TYPE);
    let content_type = header.map(|header| String::from_utf8_lossy(header.as_bytes()).into_owned());
    let body = Limited::new(answer.into_body(), MOST_KEPT).collect().await;
    let body = body.map_err(|error| match error.is::<LengthLimitError>() {
        true => anyhow!("the response is longer than {} MiB", MOST_KEPT >> 20),
        false => anyhow!(error).context("the response ends too early"),
    })?;
    Ok(Answer { body: body.to_bytes().into(), content_type })
}
