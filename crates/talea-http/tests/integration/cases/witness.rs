//! Records of requests by a service outside of the meter, to compare its metrics with.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use axum::body::Bytes;
use axum::http::{HeaderMap, Request, Response, Version, header};
use hyper::body::{Body, Frame, SizeHint};
use tower::Service;

use crate::cases::bodies::{BoxBody, BoxError, boxed};

/// The header in which a client numbers its request.
pub(crate) const NAME: &str = "x-name";

#[derive(Default)]
pub(crate) struct Witness {
    calls: AtomicU64,
    records: Mutex<HashMap<u64, Arc<Record>>>,
}

#[derive(Default)]
pub(crate) struct Record {
    pub(crate) version: Version,
    /// The size of its line, its headers and the declared body.
    pub(crate) declared_size: u64,
    pub(crate) is_running: AtomicBool,
    /// The bytes of both bodies that passed.
    request: AtomicU64,
    response: AtomicU64,
    /// The number of holders: the service's future, then the response's body; the request's body.
    holders: AtomicU64,
    /// Whether a panic went through a holder.
    unwound: AtomicBool,
}

impl Witness {
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(SeqCst)
    }

    pub(crate) fn record(&self, name: u64) -> Option<Arc<Record>> {
        self.records.lock().unwrap().get(&name).cloned()
    }

    pub(crate) fn is_at_rest(&self) -> bool {
        self.records.lock().unwrap().values().all(|record| record.is_over())
    }
}

impl Record {
    pub(crate) fn request(&self) -> u64 {
        self.request.load(SeqCst)
    }

    pub(crate) fn response(&self) -> u64 {
        self.response.load(SeqCst)
    }

    pub(crate) fn is_running(&self) -> bool {
        self.is_running.load(SeqCst)
    }

    pub(crate) fn has_unwound(&self) -> bool {
        self.unwound.load(SeqCst)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.holders.load(SeqCst) == 0
    }
}

struct Hold(Arc<Record>);

impl Hold {
    fn new(record: &Arc<Record>) -> Self {
        record.holders.fetch_add(1, SeqCst);
        Self(Arc::clone(record))
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.unwound.store(true, SeqCst);
        }
        self.0.holders.fetch_sub(1, SeqCst);
    }
}

#[derive(Clone)]
pub(crate) struct Witnessed<S> {
    pub(crate) inner: S,
    pub(crate) witness: Arc<Witness>,
}

impl<S, B, R> Service<Request<B>> for Witnessed<S>
where
    S: Service<Request<WitnessedBody<B>>, Response = Response<R>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    B: Body<Data = Bytes>,
    R: Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    type Response = Response<BoxBody>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<BoxBody>, io::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        self.inner.poll_ready(cx).map_err(io::Error::other)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        self.witness.calls.fetch_add(1, SeqCst);
        let record = Arc::new(Record {
            version: request.version(),
            declared_size: declared_size(&request),
            ..Record::default()
        });
        let held = Hold::new(&record);
        if let Some(name) = name(request.headers()) {
            let before = self.witness.records.lock().unwrap().insert(name, Arc::clone(&record));
            assert!(before.is_none(), "each request has a number of its own");
        }
        request.extensions_mut().insert(Arc::clone(&record));
        let in_request = Hold::new(&record);
        let request =
            request.map(|inner| WitnessedBody::new(inner, in_request, |record| &record.request));
        let future = self.inner.call(request);
        Box::pin(async move {
            let response = future.await.map_err(io::Error::other)?;
            Ok(response
                .map(|inner| boxed(WitnessedBody::new(inner, held, |record| &record.response))))
        })
    }
}

fn name(headers: &HeaderMap) -> Option<u64> {
    headers.get(NAME)?.to_str().ok()?.parse().ok()
}

/// As Caddy's convention defines it: request line, headers and body.
fn declared_size<B>(request: &Request<B>) -> u64 {
    let uri = request.uri().to_string();
    let target = uri.strip_prefix("http://").unwrap_or(&uri);
    let version = format!("{:?}", request.version());
    let headers: usize =
        request.headers().iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    let body = request.headers().get(header::CONTENT_LENGTH);
    let body = body.map_or(0, |length| length.to_str().unwrap().parse().unwrap());
    (request.method().as_str().len() + target.len() + version.len() + headers) as u64 + body
}

pub(crate) struct WitnessedBody<B> {
    inner: Pin<Box<B>>,
    counts: fn(&Record) -> &AtomicU64,
    // Dropped after the body, so that everything is recorded by then.
    held: Hold,
}

impl<B> WitnessedBody<B> {
    fn new(inner: B, held: Hold, counts: fn(&Record) -> &AtomicU64) -> Self {
        Self { inner: Box::pin(inner), counts, held }
    }
}

impl<B: Body<Data = Bytes>> Body for WitnessedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = ready!(self.inner.as_mut().poll_frame(cx));
        if let Some(Ok(frame)) = &frame {
            let bytes = frame.data_ref().map_or(0, Bytes::len) as u64;
            (self.counts)(&self.held.0).fetch_add(bytes, SeqCst);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
