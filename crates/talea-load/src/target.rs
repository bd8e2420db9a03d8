//! The collection that a load is made on: its URL, and where it is reached.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use hyper::Uri;
use hyper::header::HeaderValue;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::connect::{Stream, Trust, config, in_words, port};

/// An `http://` or `https://` URL, taken apart once.
#[derive(Clone, Debug)]
pub struct Target {
    url: String,
    host: String,
    port: u16,
    path: Uri,
    host_header: HeaderValue,
    /// The address that answered, once [`Target::reached`] has found it.
    address: Option<SocketAddr>,
    is_https: bool,
    /// The TLS configuration of `https`, once [`Target::over`] has set it.
    tls: Option<Arc<ClientConfig>>,
}

impl Target {
    /// Whether connections use TLS.
    pub fn is_https(&self) -> bool {
        self.is_https
    }

    /// This target, with this TLS configuration for its connections.
    #[must_use]
    pub fn over(mut self, tls: Arc<ClientConfig>) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Scheme and authority: `http://127.0.0.1:4000`.
    pub fn origin(&self) -> String {
        let scheme = if self.is_https { "https" } else { "http" };
        let (open, close) = if self.host.contains(':') { ("[", "]") } else { ("", "") };
        format!("{scheme}://{open}{}{close}:{}", self.host, self.port)
    }

    /// A page such as that of the metrics, whose URL may have a query.
    /// Fails when the text is no such URL.
    pub fn page(text: &str) -> Result<Self, String> {
        Self::parse(text, "expected a page such as http://127.0.0.1:4000/metrics")
    }

    /// The path of the collection; of a page its query too.
    pub fn path(&self) -> &Uri {
        &self.path
    }

    /// The `Host` header of requests.
    pub fn host_header(&self) -> &HeaderValue {
        &self.host_header
    }

    /// This target with another path, such as `/study/reset`.
    /// Fails when the path is not one.
    pub fn with_path(&self, path: &'static str) -> Result<Self, String> {
        format!("{}{path}", self.origin()).parse().map(|mut target: Self| {
            target.address = self.address;
            target.tls = self.tls.clone();
            target
        })
    }

    /// Opens a connection, closes it again, and remembers the address, so that a load that cannot
    /// begin ends before it does. No request is sent.
    /// Fails when the name is unknown or nothing accepts a connection within `timeout`.
    pub async fn reached(mut self, timeout: Duration) -> io::Result<Self> {
        let reach = async {
            let stream = self.connect_tcp().await?;
            let address = stream.peer_addr()?;
            self.secured(stream).await.map(|_| address)
        };
        let reached = tokio::time::timeout(timeout, reach).await;
        let address = reached.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        self.address = Some(address);
        Ok(self)
    }

    /// Opens a connection that sends small requests at once (TCP_NODELAY).
    /// Fails when the name is unknown or nothing accepts a connection, or none over TLS.
    pub async fn connect(&self) -> io::Result<Stream> {
        self.secured(self.connect_tcp().await?).await
    }

    /// A connection over TLS, if the target asks for that.
    pub(crate) async fn secured(&self, stream: TcpStream) -> io::Result<Stream> {
        let Some(tls) = &self.tls else { return Ok(Box::new(stream)) };
        let name = ServerName::try_from(self.host.clone());
        let name = name.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        match TlsConnector::from(tls.clone()).connect(name, stream).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) => Err(in_words(error, &self.host, self.port)),
        }
    }

    /// Whether the server speaks TLS though the URL has `http`. It tries a handshake.
    pub(crate) async fn expects_tls(&self) -> bool {
        const WITHIN: Duration = Duration::from_secs(5);
        let Ok(tls) = config(Trust::Any, "http/1.1") else { return false };
        let tls = self.clone().over(tls);
        !self.is_https && matches!(tokio::time::timeout(WITHIN, tls.connect()).await, Ok(Ok(_)))
    }

    pub(crate) async fn connect_tcp(&self) -> io::Result<TcpStream> {
        let stream = match self.address {
            Some(address) => TcpStream::connect(address).await?,
            None => TcpStream::connect((self.host.as_str(), self.port)).await?,
        };
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const EXPECTED: &str = "expected a collection such as http://127.0.0.1:4000/api/items";
        let target = Self::parse(text, EXPECTED)?;
        if target.path.query().is_some() {
            return Err(format!("found a query, which a collection cannot have; {EXPECTED}"));
        }
        Ok(target)
    }
}

impl Target {
    fn parse(text: &str, expected: &str) -> Result<Self, String> {
        let uri: Uri = text.parse().map_err(|error| format!("{error}; {expected}"))?;
        match uri.scheme_str() {
            Some("http" | "https") => {}
            Some(other) => {
                return Err(format!(
                    "found the scheme {other}, expected http or https; {expected}"
                ));
            }
            None => return Err(format!("found no http:// at its start; {expected}")),
        }
        let authority = uri.authority().ok_or_else(|| format!("no host; {expected}"))?;
        if authority.as_str().contains('@') {
            return Err(format!("found a user name, which is not sent; {expected}"));
        }
        let is_https = uri.scheme_str() == Some("https");
        let header = HeaderValue::from_str(authority.as_str());
        let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        let path = format!("{}{query}", uri.path()).parse();
        Ok(Self {
            url: text.to_owned(),
            host: authority.host().trim_matches(['[', ']']).to_owned(),
            port: port(authority, is_https).map_err(|error| format!("{error}; {expected}"))?,
            path: path.map_err(|error| format!("{error}; {expected}"))?,
            host_header: header.map_err(|error| format!("{error}; {expected}"))?,
            address: None,
            is_https,
            tls: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart() {
        let target: Target = "http://localhost:4000/api/items/".parse().unwrap();
        assert_eq!((target.host.as_str(), target.port), ("localhost", 4000));
        assert_eq!(target.path(), "/api/items/");
        let six: Target = "http://[::1]/items".parse().unwrap();
        assert_eq!((six.host.as_str(), six.port), ("::1", 80));
        assert_eq!(six.origin(), "http://[::1]:80");
        let tls: Target = "https://shop.example/".parse().unwrap();
        assert_eq!((tls.port, tls.is_https()), (443, true));
        assert_eq!(six.with_path("/study/reset").unwrap().path(), "/study/reset");
    }

    #[test]
    fn a_page_may_have_a_query() {
        for (url, path) in [
            ("http://x/metrics?name[]=a&name[]=b%20c", "/metrics?name[]=a&name[]=b%20c"),
            ("https://x?a=1", "/?a=1"),
            ("http://x", "/"),
        ] {
            assert_eq!(Target::page(url).unwrap().path(), path);
        }
        for text in [
            "",
            "localhost/metrics",
            "http://",
            "ftp://x/metrics",
            "http://u@x/m",
            "https://u@x/m",
            "http://x:440000/",
        ] {
            let error = Target::page(text).unwrap_err();
            assert!(error.contains("http://127.0.0.1:4000/metrics"), "{text}: {error}");
        }
    }

    #[test]
    fn an_impossible_target_is_refused_with_an_example() {
        for text in [
            "",
            "localhost:4000/api",
            "ftp://x/items",
            "http://x/items?a=1",
            "http://u@x/i",
            "http://x:440000/",
        ] {
            let error = text.parse::<Target>().unwrap_err();
            assert!(error.contains("http://127.0.0.1:4000/api/items"), "{text}: {error}");
        }
    }
}
