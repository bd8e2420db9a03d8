//! Where a text comes from.

use std::fmt;
use std::io::Read;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use talea_load::Target;
use talea_parse::Syntax;

use crate::arguments::connection::Tls;

/// A file, a URL or standard input.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// Standard input, `-`.
    Input,
    Url(Box<Target>),
    File(PathBuf),
}

/// A text, and its format if its source states it.
pub(super) struct Text {
    pub(super) text: String,
    pub(super) syntax: Option<Syntax>,
}

impl Source {
    /// Reads all of it. `wanted` is the only format to ask for, if there is one.
    pub(super) async fn read(&self, wanted: Option<Syntax>, tls: &Tls) -> Result<Text> {
        let (bytes, syntax) = match self {
            Self::Url(url) => fetch(url, wanted, tls).await.with_context(|| self.to_string())?,
            Self::File(path) => (std::fs::read(path).with_context(|| self.to_string())?, None),
            Self::Input => (input().await?, None),
        };
        let text = String::from_utf8(bytes)
            // An error, which says what it is instead.
            .or_else(|error| talea_parse::utf8(error.as_bytes()).map(str::to_owned))
            .with_context(|| self.to_string())?;
        Ok(Text { text, syntax })
    }
}

/// As a `fallback_scrape_protocol` does for Prometheus.
const FORMAT: &str = "to check its text all the same, state the format with --format";

/// The answer of a URL, and the format that it states.
async fn fetch(
    url: &Target,
    wanted: Option<Syntax>,
    tls: &Tls,
) -> Result<(Vec<u8>, Option<Syntax>)> {
    let answer = talea_load::fetch(&tls.to(url, "http/1.1")?, accept(wanted)).await?;
    let syntax = match answer.content_type.as_deref().map(Syntax::of_content_type) {
        Some(Ok(syntax)) => Some(syntax),
        _ if wanted.is_some() => None,
        Some(Err(error)) => bail!("{error}. Prometheus drops such a scrape; {FORMAT}"),
        None => bail!("it has no Content-Type. Prometheus drops such a scrape; {FORMAT}"),
    };
    Ok((answer.body, syntax))
}

/// As Prometheus has it: OpenMetrics first, where both will do.
fn accept(wanted: Option<Syntax>) -> &'static str {
    match wanted {
        Some(Syntax::Text) => "text/plain;version=0.0.4",
        Some(Syntax::OpenMetrics) => "application/openmetrics-text;version=1.0.0",
        None => "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5",
    }
}

/// All of standard input. It is read on a thread of its own, which nobody waits for where
/// a signal comes first.
async fn input() -> Result<Vec<u8>> {
    let (send, receive) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = std::io::stdin().read_to_end(&mut bytes).map(|_| bytes);
        // Nobody may be there any more.
        let _ = send.send(read);
    });
    receive.await?.context("standard input")
}

impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "-" {
            return Ok(Self::Input);
        }
        if text.contains("://") {
            return Ok(Self::Url(Box::new(Target::page(text)?)));
        }
        Ok(Self::File(text.into()))
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input => f.write_str("-"),
            Self::Url(url) => url.fmt(f),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_urls_and_standard_input_are_distinguished() {
        let of = |text: &str| text.parse::<Source>();
        assert!(matches!(of("-"), Ok(Source::Input)));
        assert!(matches!(of("metrics.txt"), Ok(Source::File(_))));
        assert!(matches!(of("http://[::1]:9100/metrics?a=b"), Ok(Source::Url(_))));
        assert!(matches!(of("https://x/metrics"), Ok(Source::Url(_))));
        assert!(of("ftp://x").unwrap_err().contains("expected http or https"));
    }
}
