//! Streams of server-sent events.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use serde_json::json;
use talea_http::turns::source_of;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::feed::{Event, Feed, Latest, event};
use super::query::Selection;
use super::series::Follower;

/// The most streams at once: connections for scrapes are left.
const MOST_STREAMS: usize = 32;
/// How long a stream goes on before it makes room for one of a client that has as many.
const SHARE: Duration = Duration::from_secs(60);

/// The streams that are open. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Streams(Arc<Mutex<Table>>);

#[derive(Debug, Default)]
struct Table {
    /// In the order in which they began.
    open: BTreeMap<u64, OpenStream>,
    next: u64,
}

#[derive(Debug)]
struct OpenStream {
    /// The client's address, see [`source_of`].
    source: IpAddr,
    began: Instant,
    /// `None` until its task runs.
    task: Option<AbortHandle>,
}

impl Table {
    /// Makes an entry for a new stream. If there are too many, the oldest one ends of the address that has the most,
    /// if that has two more than the new one's or it has had its share. `None` if it goes on.
    fn admit(&mut self, source: IpAddr) -> Option<u64> {
        if self.open.len() >= MOST_STREAMS {
            let held = |of: IpAddr| self.open.values().filter(|it| it.source == of).count();
            let most = self.open.values().map(|stream| held(stream.source)).max()?;
            let (&oldest, stream) = self.open.iter().find(|it| held(it.1.source) == most)?;
            if most < held(source) + 2 && stream.began.elapsed() < SHARE {
                return None;
            }
            if let Some(task) = self.open.remove(&oldest)?.task {
                task.abort();
            }
        }
        let id = self.next;
        self.next += 1;
        self.open.insert(id, OpenStream { source, began: Instant::now(), task: None });
        Some(id)
    }
}

/// The body of a stream. It has at most one event that was not taken; its connection ends where nothing is
/// taken for long.
#[derive(Debug)]
pub(super) struct Stream {
    events: mpsc::Receiver<Bytes>,
    all: Streams,
    id: u64,
}

impl Streams {
    /// The points of a feed, for a client; `None` if there are too many streams.
    pub(super) fn points(&self, feed: &Feed, client: IpAddr) -> Option<Stream> {
        let (hello, events) = feed.subscribe();
        self.begin(feed, client, hello, events, |event| match event {
            Event::Point { text, .. } | Event::Text(text) => vec![text],
            Event::End => Vec::new(),
        })
    }

    /// The series of one family, for a client; `None` if there are too many streams.
    pub(super) fn series(
        &self,
        feed: &Feed,
        client: IpAddr,
        family: String,
        wanted: Selection,
    ) -> Option<Stream> {
        let (_, events) = feed.subscribe();
        let mut follower = Follower::new(family, wanted);
        let mut news = move |latest: &Latest| {
            let news = follower.next(latest);
            let series = (!news.series.is_empty()).then(|| event("series", &news.series));
            series.into_iter().chain([event("values", &news.values)]).collect::<Vec<Bytes>>()
        };
        let first = news(&feed.latest()).concat().into();
        self.begin(feed, client, first, events, move |event| match event {
            Event::Point { latest, .. } => news(&latest),
            Event::Text(_) | Event::End => Vec::new(),
        })
    }

    fn begin(
        &self,
        feed: &Feed,
        client: IpAddr,
        first: Bytes,
        events: broadcast::Receiver<Event>,
        texts: impl FnMut(Event) -> Vec<Bytes> + Send + 'static,
    ) -> Option<Stream> {
        let mut table = self.table();
        let id = table.admit(source_of(client))?;
        let (sender, receiver) = mpsc::channel(1);
        if !feed.is_closed() {
            let task = tokio::spawn(pump(first, events, sender, texts)).abort_handle();
            if let Some(stream) = table.open.get_mut(&id) {
                stream.task = Some(task);
            }
        }
        Some(Stream { events: receiver, all: self.clone(), id })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.all.table().open.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn addresses(table: &Table) -> Vec<u8> {
        let last = |address: IpAddr| match address {
            IpAddr::V4(address) => address.octets()[3],
            IpAddr::V6(_) => 0,
        };
        table.open.values().map(|stream| last(stream.source)).collect()
    }

    fn address(last: u8) -> IpAddr {
        [127, 0, 0, last].into()
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_has_all_streams_makes_room_for_others_at_once() {
        let mut table = Table::default();
        (0..MOST_STREAMS).for_each(|_| assert!(table.admit(address(1)).is_some()));
        assert!(table.admit(address(1)).is_none(), "it has the most");
        for _ in 0..MOST_STREAMS / 2 {
            assert!(table.admit(address(2)).is_some());
        }
        let half = MOST_STREAMS / 2;
        assert_eq!(addresses(&table), [vec![1; half], vec![2; half]].concat());
        assert!(table.admit(address(2)).is_none(), "they have as many");
        assert!(table.admit(address(3)).is_some());
        assert_eq!(table.open.len(), MOST_STREAMS);
    }

    #[tokio::test(start_paused = true)]
    async fn clients_that_have_one_stream_each_take_turns() {
        let mut table = Table::default();
        (0..MOST_STREAMS as u8).for_each(|of| assert!(table.admit(address(of)).is_some()));
        assert!(table.admit(address(100)).is_none());
        tokio::time::advance(SHARE - Duration::from_secs(1)).await;
        assert!(table.admit(address(100)).is_none());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(table.admit(address(100)).is_some());
        assert!(table.admit(address(100)).is_none_or(|_| !addresses(&table).contains(&0)));
    }
}
