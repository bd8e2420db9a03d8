//! One connection to a receiver, which is opened again when it is closed: HTTP/1, or HTTP/2 for gRPC.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use http::uri::Scheme;
use http::{Method, Request, Uri};
use http_body_util::{BodyExt, Collected, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
#[cfg(feature = "grpc")]
use hyper::client::conn::http2;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::config::{Config, Credentials, Protocol};
use crate::error::Error;
#[cfg(feature = "grpc")]
use crate::otlp::grpc;
use crate::response::Response;
use crate::tls;

/// The most bytes of a response that are read.
const MOST_BODY: usize = 64 << 10;

const AGENT: &str = concat!("talea-push/", env!("CARGO_PKG_VERSION"));

/// The connection, and all that a request has beside its body.
pub(crate) struct Client {
    host: String,
    port: u16,
    protocol: Protocol,
    /// A path for HTTP/1, and all of a URL for HTTP/2.
    target: Uri,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    headers: HeaderMap,
    credentials: Credentials,
    timeout: Duration,
    connection: Option<Connection>,
}

enum Connection {
    Http1(http1::SendRequest<Full<Bytes>>),
    #[cfg(feature = "grpc")]
    Http2(http2::SendRequest<Full<Bytes>>),
}

impl Client {
    pub(crate) fn new(config: &Config) -> Result<Self, Error> {
        let url = &config.url;
        let is_url = || Error::Url(url.to_string());
        let host = url.host().ok_or_else(is_url)?.trim_matches(['[', ']']).to_owned();
        let is_tls = url.scheme() == Some(&Scheme::HTTPS);
        let tls = match is_tls {
            true => {
                let name = ServerName::try_from(host.clone()).map_err(|_| is_url())?;
                Some((tls::config(config)?, name))
            }
            false => None,
        };
        let mut headers = config.headers.clone();
        headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(AGENT));
        let authority = url.authority().ok_or_else(is_url)?.as_str();
        let target = match config.protocol {
            #[cfg(feature = "grpc")]
            Protocol::OtlpGrpc => {
                headers.insert(http::header::TE, HeaderValue::from_static("trailers"));
                let limit = grpc::timeout(config.timeout);
                headers.extend(HeaderValue::try_from(limit).map(|it| (grpc::TIMEOUT, it)));
                let scheme = if is_tls { Scheme::HTTPS } else { Scheme::HTTP };
                Uri::builder()
                    .scheme(scheme)
                    .authority(authority)
                    .path_and_query(grpc::PATH)
                    .build()
            }
            _ => {
                headers.insert(HOST, HeaderValue::try_from(authority).map_err(|_| is_url())?);
                let path = url.path_and_query().map_or("/", |path| path.as_str());
                Uri::builder().path_and_query(path).build()
            }
        };
        Ok(Self {
            port: url.port_u16().unwrap_or(if is_tls { 443 } else { 80 }),
            host,
            protocol: config.protocol,
            target: target.map_err(|_| is_url())?,
            tls,
            headers,
            credentials: config.credentials.clone(),
            timeout: config.timeout,
            connection: None,
        })
    }

    /// Sends a request and reads its response. A redirect is not followed, so that neither values nor
    /// credentials go to another host. An error says what happened instead of a response.
    pub(crate) async fn post(
        &mut self,
        headers: &[(HeaderName, &'static str)],
        body: Bytes,
    ) -> Result<Response, String> {
        let sent = tokio::time::timeout(self.timeout, self.exchange(headers, body)).await;
        let sent = sent.unwrap_or_else(|_| Err(format!("no response within {:?}", self.timeout)));
        if sent.is_err() {
            self.connection = None;
        }
        sent
    }

    async fn exchange(
        &mut self,
        headers: &[(HeaderName, &'static str)],
        body: Bytes,
    ) -> Result<Response, String> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.target.clone();
        *request.headers_mut() = self.headers.clone();
        for (name, value) in headers {
            request.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        if let Some(value) = self.credentials.header().map_err(|error| error.to_string())? {
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        let response = self.connect().await?.send(request).await;
        let (head, body) = response.map_err(|error| error.to_string())?.into_parts();
        let body = Limited::new(body, MOST_BODY).collect().await;
        // Nothing but a message for people stands in a body that is longer.
        let is_whole = body.as_ref().err().is_none_or(|error| error.is::<LengthLimitError>());
        if body.is_err() {
            self.connection = None;
        }
        let trailers = body.as_ref().ok().and_then(Collected::trailers).cloned();
        Ok(Response {
            status: head.status,
            headers: head.headers,
            trailers: trailers.unwrap_or_default(),
            body: body.map(Collected::to_bytes).unwrap_or_default(),
            is_whole,
        })
    }

    /// The connection, ready for a request.
    async fn connect(&mut self) -> Result<&mut Connection, String> {
        if let Some(connection) = &mut self.connection {
            if connection.ready().await.is_err() {
                self.connection = None;
            }
        }
        if self.connection.is_none() {
            self.connection = Some(self.open().await?);
        }
        self.connection.as_mut().ok_or_else(|| "no connection".to_owned())
    }

    async fn open(&self) -> Result<Connection, String> {
        let Self { host, port, protocol, .. } = self;
        let stream = TcpStream::connect((host.as_str(), *port)).await;
        let stream = stream.map_err(|error| format!("cannot connect: {error}"))?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        match &self.tls {
            None => shake_hands(*protocol, TokioIo::new(stream)).await,
            Some((config, name)) => {
                let connector = TlsConnector::from(config.clone());
                let stream = connector.connect(name.clone(), stream).await;
                let stream = stream.map_err(|error| format!("cannot connect by TLS: {error}"))?;
                shake_hands(*protocol, TokioIo::new(stream)).await
            }
        }
    }
}

impl Connection {
    async fn ready(&mut self) -> hyper::Result<()> {
        match self {
            Self::Http1(sender) => sender.ready().await,
            #[cfg(feature = "grpc")]
            Self::Http2(sender) => sender.ready().await,
        }
    }

    async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> hyper::Result<http::Response<Incoming>> {
        match self {
            Self::Http1(sender) => sender.send_request(request).await,
            #[cfg(feature = "grpc")]
            Self::Http2(sender) => sender.send_request(request).await,
        }
    }
}

/// An error of the connection comes with the request too, so the task that drives it says nothing.
async fn shake_hands<S>(protocol: Protocol, stream: S) -> Result<Connection, String>
where
    S: hyper::rt::Read + hyper::rt::Write + Send + Unpin + 'static,
{
    match protocol {
        #[cfg(feature = "grpc")]
        Protocol::OtlpGrpc => {
            let executor = hyper_util::rt::TokioExecutor::new();
            let shaken = http2::handshake(executor, stream).await;
            let (sender, connection) = shaken.map_err(|error| error.to_string())?;
            tokio::spawn(async {
                let _ = connection.await;
            });
            Ok(Connection::Http2(sender))
        }
        _ => {
            let shaken = http1::handshake(stream).await;
            let (sender, connection) = shaken.map_err(|error| error.to_string())?;
            tokio::spawn(async {
                let _ = connection.await;
            });
            Ok(Connection::Http1(sender))
        }
    }
}
