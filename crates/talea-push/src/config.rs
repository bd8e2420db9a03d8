//! Where to push, and within which bounds.

use std::path::{Path, PathBuf};
use std::time::Duration;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::uri::Scheme;
use http::{Uri, header};
use talea_page::Label;

use crate::error::Error;
use crate::relabel::Rule;

/// A receiver, and how metrics are pushed to it.
///
/// ```
/// use std::time::Duration;
/// use talea_push::Config;
///
/// let config = Config::remote_write("https://prometheus.example/api/v1/write")?
///     .label("job", "shop")
///     .label("instance", "a1")
///     .bearer_token_file("/run/secrets/token")
///     .queue_in("/var/lib/shop/push")
///     .interval(Duration::from_secs(30));
/// # Ok::<(), talea_push::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub(crate) protocol: Protocol,
    pub(crate) url: Uri,
    name: Option<String>,
    pub(crate) labels: Vec<Label>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) headers: HeaderMap,
    pub(crate) credentials: Credentials,
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) client_certificate: Option<(PathBuf, PathBuf)>,
    pub(crate) interval: Duration,
    pub(crate) timeout: Duration,
    pub(crate) backoff: (Duration, Duration),
    pub(crate) queue: Option<PathBuf>,
    pub(crate) most_bytes: usize,
    pub(crate) most_samples: u64,
    pub(crate) max_age: Duration,
    pub(crate) sends_native: bool,
    pub(crate) sends_classic: bool,
    pub(crate) ends_series: bool,
    pub(crate) temporality: Temporality,
}

/// Headers without which, or with another value of which, no request would be understood.
const OWN_HEADERS: [&str; 10] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "grpc-encoding",
    "grpc-timeout",
    "host",
    "te",
    "transfer-encoding",
    "x-prometheus-remote-write-version",
];

/// How values are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    RemoteWrite,
    Otlp,
    #[cfg(feature = "grpc")]
    OtlpGrpc,
}

/// What the values of counters and histograms hold, in OTLP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Temporality {
    /// All since the start of their series. A request that is repeated changes nothing, and one that is lost is made up
    /// by the next.
    #[default]
    Cumulative,
    /// What came since the collection before, for receivers that know no other. A request is delivered at least once:
    /// if its response is lost it is repeated, byte for byte with the same times, and a receiver that does not see
    /// that by the times counts it twice. What is dropped or refused is missing for good.
    Delta,
}

/// What a request is authenticated by. Files are read for each request, so they may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Credentials {
    Anonymous,
    Bearer(PathBuf),
    Basic { user: String, password: PathBuf },
}

impl Config {
    /// Prometheus remote-write: version 2.0, or 1.0 if the receiver knows no other.
    ///
    /// # Errors
    /// The URL is not valid, or neither `http` nor `https`.
    pub fn remote_write(url: &str) -> Result<Self, Error> {
        Self::new(Protocol::RemoteWrite, url)
    }

    /// OpenTelemetry's protocol over HTTP, with cumulative values, such as
    /// `http://localhost:4318/v1/metrics`. [Labels](Self::label) become attributes of the resource, such as
    /// `service.name`.
    ///
    /// # Errors
    /// The URL is not valid, or neither `http` nor `https`.
    pub fn otlp(url: &str) -> Result<Self, Error> {
        Self::new(Protocol::Otlp, url)
    }

    /// OpenTelemetry's protocol over gRPC, with cumulative values, such as `http://localhost:4317`; as
    /// [`otlp`](Self::otlp) in all else. With the feature `grpc`.
    ///
    /// # Errors
    /// The URL is not valid, neither `http` nor `https`, or has a path.
    #[cfg(feature = "grpc")]
    pub fn otlp_grpc(url: &str) -> Result<Self, Error> {
        let config = Self::new(Protocol::OtlpGrpc, url)?;
        // A receiver has one path for gRPC.
        match config.url.path_and_query().is_none_or(|path| path == "/") {
            true => Ok(config),
            false => Err(Error::Url(url.to_owned())),
        }
    }

    fn new(protocol: Protocol, url: &str) -> Result<Self, Error> {
        Ok(Self {
            protocol,
            url: url_of(url)?,
            name: None,
            labels: Vec::new(),
            rules: Vec::new(),
            headers: HeaderMap::new(),
            credentials: Credentials::Anonymous,
            ca_file: None,
            client_certificate: None,
            interval: Duration::from_secs(15),
            timeout: Duration::from_secs(30),
            backoff: (Duration::from_millis(100), Duration::from_secs(30)),
            queue: None,
            most_bytes: 64 << 20,
            most_samples: 5_000,
            max_age: Duration::from_secs(24 * 3600),
            sends_native: true,
            sends_classic: true,
            ends_series: true,
            temporality: Temporality::Cumulative,
        })
    }

    /// The name of the receiver in the label `target` of the metrics about pushing, and in messages. Default: its
    /// host, port and path. Pushers whose metrics are in one registry have different names.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// A label for each series that does not have one of this name: `job` and `instance`, for example.
    #[must_use]
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.push(Label::new(name, value));
        self
    }

    /// A rule that keeps, drops or changes series before they are sent, after those that were added before. Rules see
    /// the [labels](Self::label) too, except over OTLP, where these belong to the resource. There, a histogram or
    /// summary is one series, without `le` and `quantile`.
    ///
    /// # Errors
    /// The rule lacks what its action needs.
    pub fn relabel(mut self, rule: Rule) -> Result<Self, Error> {
        rule.check()?;
        self.rules.push(rule);
        Ok(self)
    }

    /// A header of each request, such as a tenant's.
    ///
    /// # Errors
    /// The name or the value is not valid in HTTP, or each request has the header anyway.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, Error> {
        let invalid = || Error::Header(name.to_owned());
        let header = HeaderName::try_from(name).map_err(|_| invalid())?;
        if OWN_HEADERS.contains(&header.as_str()) {
            return Err(Error::OwnHeader(name.to_owned()));
        }
        let mut value = HeaderValue::try_from(value).map_err(|_| invalid())?;
        value.set_sensitive(true);
        self.headers.insert(header, value);
        Ok(self)
    }

    /// A file with a bearer token, which is read for each request.
    #[must_use]
    pub fn bearer_token_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.credentials = Credentials::Bearer(path.into());
        self
    }

    /// A user, and a file with its password, which is read for each request.
    #[must_use]
    pub fn basic_auth(
        mut self,
        user: impl Into<String>,
        password_file: impl Into<PathBuf>,
    ) -> Self {
        self.credentials = Credentials::Basic { user: user.into(), password: password_file.into() };
        self
    }

    /// A file in PEM with the certificates that the receiver's is signed by. Default: those that the
    /// system trusts.
    #[must_use]
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.ca_file = Some(path.into());
        self
    }

    /// Files in PEM with a certificate and its key, by which the receiver knows this client.
    #[must_use]
    pub fn client_certificate(
        mut self,
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Self {
        self.client_certificate = Some((certificate.into(), key.into()));
        self
    }

    /// The time from one collection to the next. Default: 15 seconds.
    #[must_use]
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// The longest time that a request takes, with its connection. Default: 30 seconds.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The pauses before a request is repeated: the first, which doubles each time, and the longest.
    /// Each is shortened by up to a half at random. Default: 100 milliseconds and 30 seconds.
    #[must_use]
    pub fn backoff(mut self, first: Duration, longest: Duration) -> Self {
        self.backoff = (first, longest);
        self
    }

    /// The folder for what is not sent yet, which then survives this process. It is made if it is not
    /// there, and belongs to one pusher at a time. Default: memory. The bound becomes 1 GiB, unless
    /// [`max_queue_bytes`](Self::max_queue_bytes) is called after this.
    #[must_use]
    pub fn queue_in(mut self, folder: impl Into<PathBuf>) -> Self {
        self.queue = Some(folder.into());
        self.most_bytes = 1 << 30;
        self
    }

    /// The most bytes that wait, compressed. Then the oldest go. Default: 64 MiB.
    #[must_use]
    pub fn max_queue_bytes(mut self, bytes: usize) -> Self {
        self.most_bytes = bytes;
        self
    }

    /// The most samples of a request. Default: 5,000.
    #[must_use]
    pub fn max_samples(mut self, samples: u64) -> Self {
        self.most_samples = samples.max(1);
        self
    }

    /// The age at which what waits is dropped. Default: a day.
    #[must_use]
    pub fn max_age(mut self, age: Duration) -> Self {
        self.max_age = age;
        self
    }

    /// Whether native histograms are sent. Without them, a histogram has its classic buckets alone. Some
    /// old receivers refuse requests with native histograms as a whole. Default: true.
    #[must_use]
    pub fn native_histograms(mut self, sends: bool) -> Self {
        self.sends_native = sends;
        self
    }

    /// Whether histograms that are sent with native buckets are sent with their classic buckets too.
    /// Default: true. OTLP has either of them: the native ones, unless these are not sent.
    #[must_use]
    pub fn classic_beside_native(mut self, sends: bool) -> Self {
        self.sends_classic = sends;
        self
    }

    /// What counters and histograms hold, in OTLP; other protocols know cumulative values alone. Default: cumulative.
    ///
    /// Deltas begin when the pusher starts: what was counted before is in none of them. With [a folder](Self::queue_in)
    /// they go on where the last pusher that used it ended. They take memory for all values, once more.
    #[must_use]
    pub fn temporality(mut self, temporality: Temporality) -> Self {
        self.temporality = temporality;
        self
    }

    /// Whether all series are marked as ended when the pusher stops. Turn it off for a pusher whose source lives on,
    /// such as the regions of an agent. Default: true. OTLP has no such mark.
    #[must_use]
    pub fn end_series_at_stop(mut self, ends: bool) -> Self {
        self.ends_series = ends;
        self
    }

    /// Checks what can be known before a pusher starts: the labels.
    ///
    /// # Errors
    /// A label's name cannot be used, or is there twice; deltas are to be sent by remote-write.
    pub fn check(&self) -> Result<(), Error> {
        for (n, Label { name, .. }) in self.labels.iter().enumerate() {
            let is_twice = self.labels[..n].iter().any(|other| other.name == *name);
            if name.is_empty() || name.starts_with("__") || is_twice {
                return Err(Error::Label(name.clone()));
            }
        }
        match (self.protocol, self.temporality) {
            (Protocol::RemoteWrite, Temporality::Delta) => Err(Error::Deltas),
            _ => Ok(()),
        }
    }

    /// The folder of the queue, if it has one.
    pub(crate) fn queue_folder(&self) -> Option<PathBuf> {
        Some(self.queue.as_ref()?.join(self.protocol.folder()))
    }

    /// The receiver, as metrics and messages name it: without credentials and query.
    pub fn target(&self) -> String {
        if let Some(name) = &self.name {
            return name.clone();
        }
        let host = self.url.host().unwrap_or_default();
        let port = self.url.port().map(|port| format!(":{port}")).unwrap_or_default();
        format!("{host}{port}{}", self.url.path())
    }
}

impl Protocol {
    /// The part of a queue's folder that its requests are in: no other protocol can send them.
    fn folder(self) -> &'static str {
        match self {
            Self::RemoteWrite => "remote-write",
            Self::Otlp => "otlp",
            #[cfg(feature = "grpc")]
            Self::OtlpGrpc => "otlp",
        }
    }
}

impl Credentials {
    /// The header of a request, if there is one.
    pub(crate) fn header(&self) -> Result<Option<HeaderValue>, Error> {
        let text = match self {
            Self::Anonymous => return Ok(None),
            Self::Bearer(path) => format!("Bearer {}", secret(path)?),
            Self::Basic { user, password } => {
                use base64::Engine;
                let pair = format!("{user}:{}", secret(password)?);
                format!("Basic {}", base64::prelude::BASE64_STANDARD.encode(pair))
            }
        };
        let mut value = HeaderValue::try_from(text)
            .map_err(|_| Error::Header(header::AUTHORIZATION.to_string()))?;
        value.set_sensitive(true);
        Ok(Some(value))
    }
}

fn secret(path: &Path) -> Result<String, Error> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::file(path, error))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

fn url_of(url: &str) -> Result<Uri, Error> {
    let found = || Error::Url(url.to_owned());
    let parsed: Uri = url.parse().map_err(|_| found())?;
    let is_known = [Some(&Scheme::HTTP), Some(&Scheme::HTTPS)].contains(&parsed.scheme());
    let has_user = parsed.authority().is_some_and(|it| it.as_str().contains('@'));
    if !is_known || has_user || parsed.host().is_none_or(str::is_empty) {
        return Err(found());
    }
    Ok(parsed)
}
