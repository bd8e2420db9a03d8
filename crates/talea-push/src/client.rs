//! One HTTP/1 connection to a receiver, which is opened again when it is closed.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use http::uri::Scheme;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::config::{Config, Credentials};
use crate::error::Error;
use crate::tls;

/// The most bytes of a response that are read.
const MOST_BODY: usize = 64 << 10;

const AGENT: &str = concat!("talea-push/", env!("CARGO_PKG_VERSION"));

/// The connection, and all that a request has beside its body.
pub(crate) struct Client {
    host: String,
    port: u16,
    path: String,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    headers: HeaderMap,
    credentials: Credentials,
    timeout: Duration,
    connection: Option<SendRequest<Full<Bytes>>>,
}

/// A response, with the beginning of its body.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
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
        let authority = url.authority().ok_or_else(is_url)?.as_str();
        headers.insert(HOST, HeaderValue::try_from(authority).map_err(|_| is_url())?);
        headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(AGENT));
        let path = url.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        Ok(Self {
            port: url.port_u16().unwrap_or(if is_tls { 443 } else { 80 }),
            host,
            path,
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
        *request.uri_mut() = self.path.parse().map_err(|_| "the path is not valid".to_owned())?;
        *request.headers_mut() = self.headers.clone();
        for (name, value) in headers {
            request.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        if let Some(value) = self.credentials.header().map_err(|error| error.to_string())? {
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        let connection = self.connect().await?;
        let response = connection.send_request(request).await.map_err(|error| error.to_string())?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, MOST_BODY).collect().await;
        // Nothing but a message for people stands in a body that is longer.
        let is_whole = body.is_ok();
        let body = body.map(|body| body.to_bytes()).unwrap_or_default();
        if !is_whole {
            self.connection = None;
        }
        Ok(Response { status: head.status, headers: head.headers, body })
    }

    /// The connection, ready for a request.
    async fn connect(&mut self) -> Result<&mut SendRequest<Full<Bytes>>, String> {
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

    async fn open(&self) -> Result<SendRequest<Full<Bytes>>, String> {
        let Self { host, port, .. } = self;
        let stream = TcpStream::connect((host.as_str(), *port)).await;
        let stream = stream.map_err(|error| format!("cannot connect: {error}"))?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        match &self.tls {
            None => shake_hands(TokioIo::new(stream)).await,
            Some((config, name)) => {
                let connector = TlsConnector::from(config.clone());
                let stream = connector.connect(name.clone(), stream).await;
                let stream = stream.map_err(|error| format!("cannot connect by TLS: {error}"))?;
                shake_hands(TokioIo::new(stream)).await
            }
        }
    }
}

async fn shake_hands<S>(stream: S) -> Result<SendRequest<Full<Bytes>>, String>
where
    S: hyper::rt::Read + hyper::rt::Write + Send + Unpin + 'static,
{
    let (sender, connection) = handshake(stream).await.map_err(|error| error.to_string())?;
    // An error of the connection comes with the request too.
    tokio::spawn(async {
        let _ = connection.await;
    });
    Ok(sender)
}
