//! Streams of server-sent events.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame};
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc};

use super::feed::{Event, Feed, Latest, event};
use super::series::Follower;

/// The most streams at once: connections for scrapes are left.
const MOST_STREAMS: usize = 32;

#[derive(Clone, Debug, Default)]
pub(super) struct Streams(Arc<AtomicUsize>);

/// The body of a stream. It has at most one event that was not taken; its connection ends where nothing is
/// taken for long.
#[derive(Debug)]
pub(super) struct Stream {
    events: mpsc::Receiver<Bytes>,
    open: Arc<AtomicUsize>,
}

impl Streams {
    /// The points of a feed; `None` if there are too many streams.
    pub(super) fn points(&self, feed: &Feed) -> Option<Stream> {
        let (hello, events) = feed.subscribe();
        self.begin(feed, hello, events, |event| match event {
            Event::Point { text, .. } | Event::Text(text) => vec![text],
            Event::End => Vec::new(),
        })
    }

    /// The series of one family; `None` if there are too many streams.
    pub(super) fn series(&self, feed: &Feed, family: String) -> Option<Stream> {
        let (_, events) = feed.subscribe();
        let mut follower = Follower::new(family);
        let mut news = move |latest: &Latest| {
            let news = follower.next(latest);
            let series = (!news.series.is_empty()).then(|| event("series", &news.series));
            series.into_iter().chain([event("values", &news.values)]).collect::<Vec<Bytes>>()
        };
        let first = news(&feed.latest()).concat().into();
        self.begin(feed, first, events, move |event| match event {
            Event::Point { latest, .. } => news(&latest),
            Event::Text(_) | Event::End => Vec::new(),
        })
    }

    fn begin(
        &self,
        feed: &Feed,
        first: Bytes,
        events: broadcast::Receiver<Event>,
        texts: impl FnMut(Event) -> Vec<Bytes> + Send + 'static,
    ) -> Option<Stream> {
        let open = Arc::clone(&self.0);
        let is_free = |number| (number < MOST_STREAMS).then_some(number + 1);
        open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_free).ok()?;
        let (sender, receiver) = mpsc::channel(1);
        let stream = Stream { events: receiver, open };
        if !feed.is_closed() {
            tokio::spawn(pump(first, events, sender, texts));
        }
        Some(stream)
    }
}

/// Hands events on, as fast as they are taken. Of those that came meanwhile a few are kept; the others
/// are left out, and their number is sent.
async fn pump(
    first: Bytes,
    mut events: broadcast::Receiver<Event>,
    to: mpsc::Sender<Bytes>,
    mut texts: impl FnMut(Event) -> Vec<Bytes>,
) {
    let mut next = vec![first];
    loop {
        for text in next.drain(..) {
            if to.send(text).await.is_err() {
                return;
            }
        }
        let event = tokio::select! {
            event = events.recv() => event,
            () = to.closed() => return,
        };
        next = match event {
            Ok(Event::End) | Err(RecvError::Closed) => return,
            Ok(event) => texts(event),
            Err(RecvError::Lagged(points)) => vec![event_of_lag(points)],
        };
    }
}

fn event_of_lag(points: u64) -> Bytes {
    event("lagged", &json!({ "points": points }))
}

impl Body for Stream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.events.poll_recv(context).map(|text| text.map(|text| Ok(Frame::data(text))))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}
