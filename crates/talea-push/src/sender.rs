//! Sends what waits: one request at a time, so that the samples of a series stay in order.

use std::time::SystemTime;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName};

use crate::backoff::Backoff;
use crate::client::Client;
use crate::clock::Clock;
use crate::config::{Config, Protocol};
use crate::metrics::{Failure, Metrics};
use crate::otlp;
#[cfg(feature = "grpc")]
use crate::otlp::grpc;
use crate::queue::{Head, Queue, Reason};
use crate::record::{Collection, Counts, Record};
use crate::remote_write::{Version, downgraded, millis, verdict};
use crate::response::Response;
use crate::verdict::Verdict;

const VERSION: HeaderName = HeaderName::from_static("x-prometheus-remote-write-version");

/// The most characters of a receiver's words that a message repeats.
const MOST_WORDS: usize = 300;

pub(crate) struct Sender<'a> {
    pub(crate) client: Client,
    pub(crate) config: &'a Config,
    pub(crate) queue: &'a Queue,
    pub(crate) metrics: &'a Metrics,
    pub(crate) clock: &'a Clock,
    /// The newest version that the receiver is known to take.
    pub(crate) version: Version,
    pub(crate) notices: Notices,
}

/// What was said already, so that it is said once until it changes.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    refused: bool,
    waits: bool,
}

/// What became of a request in the end.
enum End {
    Done(Counts),
    Refused(Counts),
    /// It is older than what is sent.
    TooOld,
}

impl Sender<'_> {
    /// Sends what waits and what comes, and never returns.
    pub(crate) async fn run(&mut self) {
        loop {
            let head = self.queue.head().await;
            let (collection, error) = self.queue.load(head);
            if let Some(collection) = collection {
                self.send(head, &collection).await;
            }
            if let Some(error) = error {
                talea::notice(format_args!("a part of the queue is lost: {error}"));
            }
            // All of it was settled, unless it could not be read.
            self.metrics.dropped(Reason::Damaged, self.queue.end(head));
            self.show();
        }
    }

    async fn send(&mut self, head: Head, collection: &Collection) {
        for record in &collection.records {
            let all = record.counts;
            match self.send_record(head, record).await {
                End::Done(written) => {
                    self.metrics.sent(written);
                    self.metrics.failed(Failure::NotWritten, all - written);
                    self.clock.accepted(head.time, written.values() > 0);
                }
                End::Refused(written) => {
                    self.metrics.sent(written);
                    self.metrics.failed(Failure::Refused, all - written);
                    self.clock.accepted(head.time, written.values() > 0);
                }
                End::TooOld => self.metrics.dropped(Reason::Age, all),
            }
            self.queue.settle(head, all);
        }
    }

    /// Sends a request until it is taken or refused, or too old.
    async fn send_record(&mut self, head: Head, record: &Record) -> End {
        let mut backoff = Backoff::new(self.config.backoff);
        let mut version = self.version;
        loop {
            let max_age = i64::try_from(self.config.max_age.as_millis()).unwrap_or(i64::MAX);
            if millis(SystemTime::now()).saturating_sub(head.time) > max_age {
                return End::TooOld;
            }
            let asked = match self.attempt(version, record).await {
                Ok((Verdict::Done(written), _)) => {
                    if version != self.version {
                        self.settle_for_v1();
                    }
                    self.notices = Notices::default();
                    return End::Done(written);
                }
                Ok((Verdict::Refused(written), said)) => {
                    self.refused(&said);
                    return End::Refused(written);
                }
                Ok((Verdict::NeedsV1, _)) => {
                    self.settle_for_v1();
                    version = Version::V1;
                    continue;
                }
                Ok((Verdict::MayNeedV1, _)) => {
                    version = Version::V1;
                    continue;
                }
                Ok((Verdict::Later(asked), said)) => {
                    self.waits(&said);
                    asked
                }
                Err(error) => {
                    self.metrics.response(0);
                    self.waits(&error);
                    None
                }
            };
            self.metrics.retried();
            self.show();
            tokio::time::sleep(backoff.pause(asked)).await;
        }
    }

    /// Sends a request once. Returns what the response means, and its words.
    async fn attempt(
        &mut self,
        version: Version,
        record: &Record,
    ) -> Result<(Verdict, String), String> {
        match self.config.protocol {
            Protocol::RemoteWrite => self.attempt_remote_write(version, record).await,
            Protocol::Otlp => self.attempt_otlp(record).await,
            #[cfg(feature = "grpc")]
            Protocol::OtlpGrpc => self.attempt_otlp_grpc(record).await,
        }
    }

    async fn attempt_remote_write(
        &mut self,
        version: Version,
        record: &Record,
    ) -> Result<(Verdict, String), String> {
        let body = match version {
            Version::V2 => Bytes::from(record.body.clone()),
            Version::V1 => match downgraded(&record.body) {
                Some(body) => body.into(),
                None => {
                    return Ok((Verdict::Refused(Counts::default()), "not readable".to_owned()));
                }
            },
        };
        let headers = [
            (CONTENT_TYPE, version.content_type()),
            (CONTENT_ENCODING, "snappy"),
            (VERSION, version.header()),
        ];
        let response = self.client.post(&headers, body).await?;
        self.metrics.response(response.status.as_u16());
        let now = SystemTime::now();
        let found = verdict(version, record.counts, response.status, &response.headers, now);
        Ok((found, words(&response)))
    }

    async fn attempt_otlp(&mut self, record: &Record) -> Result<(Verdict, String), String> {
        let headers = [(CONTENT_TYPE, otlp::CONTENT_TYPE), (CONTENT_ENCODING, "gzip")];
        let response = self.client.post(&headers, Bytes::from(record.body.clone())).await?;
        let Response { status, headers, body, is_whole, .. } = &response;
        self.metrics.response(status.as_u16());
        // What a partial success rejects would stand there.
        if status.is_success() && !is_whole {
            return Err(format!("{status}, but its body ended early"));
        }
        let found = otlp::verdict(record.counts, *status, headers, body, SystemTime::now());
        Ok((found, words(&response)))
    }

    #[cfg(feature = "grpc")]
    async fn attempt_otlp_grpc(&mut self, record: &Record) -> Result<(Verdict, String), String> {
        let headers = [(CONTENT_TYPE, grpc::CONTENT_TYPE), (grpc::ENCODING, "gzip")];
        let response = self.client.post(&headers, grpc::body(&record.body)).await?;
        self.metrics.response(response.status.as_u16());
        grpc::verdict(record.counts, &response)
    }

    fn settle_for_v1(&mut self) {
        if self.version == Version::V2 {
            self.version = Version::V1;
            talea::notice(format_args!(
                "{} does not take remote-write 2.0; it gets 1.0 from now on, without start timestamps and \
                 metadata",
                self.config.target()
            ));
        }
    }

    fn refused(&mut self, said: &str) {
        if !std::mem::replace(&mut self.notices.refused, true) {
            talea::notice(format_args!(
                "{} refuses samples, which are counted in talea_push_samples_failed_total: {said}",
                self.config.target()
            ));
        }
    }

    fn waits(&mut self, said: &str) {
        if !std::mem::replace(&mut self.notices.waits, true) {
            talea::notice(format_args!(
                "{} takes nothing at present, so samples wait: {said}",
                self.config.target()
            ));
        }
    }

    fn show(&self) {
        self.metrics.load(self.queue.load_now(), millis(SystemTime::now()));
    }
}

/// What a response says, for people.
fn words(response: &Response) -> String {
    let words: String = String::from_utf8_lossy(&response.body).chars().take(MOST_WORDS).collect();
    format!("{} {}", response.status, words.trim().escape_debug())
}
