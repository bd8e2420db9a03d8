//! The phase of one connection: the step that it waits for, and since when.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::time::Instant;

use super::counts::Reason;
use super::head_progress::{HeadProgress, HeadTracker};
use super::limits::Limits;

/// The time for which a client that takes nothing of its response keeps its place while new
/// connections wait.
const STALLED: Duration = Duration::from_secs(1);

/// The phase of one connection. Its transport and its responses note it, the watch reads it.
#[derive(Debug)]
pub(super) struct Phase(Mutex<State>);

#[derive(Debug)]
struct State {
    heads: HeadTracker,
    handshake: bool,
    /// The time since which no request is in progress, if no request is.
    idle: Instant,
    /// The time since which a head is incomplete.
    head: Option<Instant>,
    /// The time since which bytes wait for the client to take them.
    unsent: Option<Instant>,
    /// The time since which the client has closed its half and taken nothing: it waits for its response,
    /// or it is gone.
    closed: Option<Instant>,
    /// Waits for the end of the responses to be informed that the client has closed its half.
    reader: Option<Waker>,
    responses: Vec<ResponseState>,
    next: u64,
    /// Whether unsent bytes are dropped when the connection ends.
    reset: bool,
}

#[derive(Debug)]
struct ResponseState {
    id: u64,
    /// Whether the gate let its request through.
    admitted: bool,
    /// Whether the next step is the application's, not the client's.
    polled: bool,
    /// Pieces that were handed to hyper and are not written yet.
    pieces: usize,
    /// The time since which the client has accepted no piece.
    untaken: Option<Instant>,
}

impl Phase {
    pub(super) fn new() -> Self {
        Self(Mutex::new(State {
            heads: HeadTracker::Unknown(0),
            handshake: true,
            idle: Instant::now(),
            head: None,
            unsent: None,
            closed: None,
            reader: None,
            responses: Vec::new(),
            next: 0,
            reset: false,
        }))
    }

    /// Notes that requests may come.
    pub(super) fn handshake_done(&self) {
        let mut state = self.state();
        state.handshake = false;
        state.idle = Instant::now();
    }

    pub(super) fn note_read(&self, bytes: &[u8]) {
        let mut state = self.state();
        match state.heads.read(bytes) {
            HeadProgress::Complete => state.head = None,
            HeadProgress::Started => state.head = Some(Instant::now()),
            HeadProgress::Continued => {
                state.head.get_or_insert_with(Instant::now);
            }
        }
    }

    /// Notes that the client has closed its half of the connection. Pending as long as it waits for a
    /// response, so that hyper is not informed before that has ended.
    pub(super) fn poll_closed(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state();
        state.closed.get_or_insert_with(Instant::now);
        let is_http1 = matches!(state.heads, HeadTracker::Http1(_) | HeadTracker::Body);
        if !is_http1 || state.is_answered() {
            return Poll::Ready(());
        }
        state.reader = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Notes that the bytes behind the head of an HTTP/1 request are its body, and that no other request
    /// follows.
    pub(super) fn ends_with_body(&self) {
        let mut state = self.state();
        state.heads = HeadTracker::Body;
        state.head = None;
    }

    /// Notes whether all bytes that were to be sent have been.
    pub(super) fn note_sent(&self, all: bool) {
        let mut state = self.state();
        if all {
            state.unsent = None;
            state.wake_reader();
        } else {
            state.unsent.get_or_insert_with(Instant::now);
        }
    }

    pub(super) fn is_reset(&self) -> bool {
        self.state().reset
    }

    /// Has unsent bytes dropped when the connection ends.
    pub(super) fn reset(&self) {
        self.state().reset = true;
    }

    /// The limit that is exceeded, if one is.
    pub(super) fn exceeded(&self, limits: &Limits, now: Instant) -> Option<Reason> {
        let state = self.state();
        let past = |since: Instant, limit| now.saturating_duration_since(since) > limit;
        if state.handshake {
            return past(state.idle, limits.header_time).then_some(Reason::Handshake);
        }
        if state.untaken().is_some_and(|since| past(since, limits.patience)) {
            return Some(Reason::Unread);
        }
        if state.closed.is_some_and(|since| past(since, limits.patience)) {
            return Some(Reason::Unread);
        }
        if state.head_due().is_some_and(|since| past(since, limits.header_time)) {
            return Some(Reason::Head);
        }
        let idle = state.responses.is_empty() && past(state.idle, limits.idle_time);
        idle.then_some(Reason::Idle)
    }

    /// The order in which connections are closed for new ones, least first. `None` if a response
    /// makes progress.
    ///
    /// A request whose password is being checked has no response yet: new connections get in
    /// while many clients guess.
    pub(super) fn eviction_order(&self, now: Instant) -> Option<(bool, Instant)> {
        let state = self.state();
        if state.untaken().is_none() && !state.has_admitted() {
            return Some((false, state.idle));
        }
        let stalled = state.untaken().or(state.closed)?;
        (now.saturating_duration_since(stalled) > STALLED).then_some((true, stalled))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The time since which the client takes nothing.
    fn untaken(&self) -> Option<Instant> {
        self.responses.iter().filter_map(|response| response.untaken).chain(self.unsent).min()
    }

    /// The time since which the client has to send the rest of a head. Over HTTP/1 a head that begins
    /// during a response is parsed after it, and its time begins then.
    fn head_due(&self) -> Option<Instant> {
        match (&self.heads, self.responses.is_empty()) {
            (HeadTracker::Http2(_), _) => self.head,
            (_, true) => self.head.map(|since| since.max(self.idle)),
            (_, false) => None,
        }
    }

    fn is_answered(&self) -> bool {
        self.responses.is_empty() && self.unsent.is_none()
    }

    fn wake_reader(&mut self) {
        if self.is_answered() {
            self.reader.take().into_iter().for_each(Waker::wake);
        }
    }

    fn has_admitted(&self) -> bool {
        self.responses.iter().any(|response| response.admitted)
    }
}

/// Tracks the response to one request until it is dropped.
#[derive(Debug)]
pub(super) struct ResponseGuard {
    phase: Arc<Phase>,
    id: u64,
}

impl ResponseGuard {
    pub(super) fn begin(phase: &Arc<Phase>) -> Self {
        let mut state = phase.state();
        let id = state.next;
        state.next += 1;
        state.responses.push(ResponseState {
            id,
            admitted: false,
            polled: true,
            pieces: 0,
            untaken: None,
        });
        Self { phase: phase.clone(), id }
    }

    pub(super) fn admitted(&self) {
        self.note(|response| response.admitted = true);
    }

    /// Notes that the head was handed to hyper, which asks for no piece before it is taken.
    pub(super) fn head_given(&self) {
        self.note(|response| {
            response.polled = false;
            response.untaken = Some(Instant::now());
        });
    }

    pub(super) fn polled(&self) {
        self.note(|response| {
            response.polled = true;
            if response.pieces == 0 {
                response.untaken = None;
            }
        });
    }

    pub(super) fn piece_given(&self) {
        self.note(|response| {
            response.polled = false;
            response.pieces += 1;
            response.untaken.get_or_insert_with(Instant::now);
        });
    }

    pub(super) fn piece_taken(&self) {
        let mut state = self.phase.state();
        state.closed = state.closed.map(|_| Instant::now());
        drop(state);
        self.note(|response| {
            response.pieces -= 1;
            let waits = response.pieces > 0 || !response.polled;
            response.untaken = waits.then(Instant::now);
        });
    }

    fn note(&self, change: impl FnOnce(&mut ResponseState)) {
        let mut state = self.phase.state();
        if let Some(response) = state.responses.iter_mut().find(|response| response.id == self.id) {
            change(response);
        }
    }
}

impl Drop for ResponseGuard {
    fn drop(&mut self) {
        let mut state = self.phase.state();
        state.responses.retain(|response| response.id != self.id);
        if state.responses.is_empty() {
            state.idle = Instant::now();
            state.wake_reader();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connected() -> Arc<Phase> {
        let phase = Arc::new(Phase::new());
        phase.handshake_done();
        phase
    }

    /// The default limit that is exceeded after a time, if one is.
    fn exceeded_after(phase: &Phase, time: Duration) -> Option<Reason> {
        phase.exceeded(&Limits::default(), Instant::now() + time)
    }

    #[test]
    fn a_handshake_has_the_time_of_a_head() {
        let Limits { header_time, .. } = Limits::default();
        let phase = Phase::new();
        assert_eq!(exceeded_after(&phase, header_time / 2), None);
        assert_eq!(exceeded_after(&phase, header_time * 2), Some(Reason::Handshake));
        phase.handshake_done();
        assert_eq!(exceeded_after(&phase, header_time * 2), None);
    }

    #[test]
    fn a_client_that_waits_for_its_password_makes_room() {
        let phase = connected();
        let guard = ResponseGuard::begin(&phase);
        assert!(phase.eviction_order(Instant::now()).is_some());
        guard.admitted();
        assert!(phase.eviction_order(Instant::now()).is_none());
        drop(guard);
        assert!(phase.eviction_order(Instant::now()).is_some());
    }

    #[test]
    fn a_slow_application_is_not_the_clients_fault() {
        let Limits { idle_time, .. } = Limits::default();
        let phase = connected();
        let guard = ResponseGuard::begin(&phase);
        assert_eq!(exceeded_after(&phase, idle_time * 2), None);
        guard.head_given();
        guard.polled();
        guard.piece_given();
        guard.polled();
        guard.piece_taken();
        assert_eq!(exceeded_after(&phase, idle_time * 2), None);
    }

    #[test]
    fn a_piece_that_is_not_taken_is_the_clients_fault() {
        let phase = connected();
        let guard = ResponseGuard::begin(&phase);
        let exceeded = || exceeded_after(&phase, Limits::default().patience * 2);
        guard.head_given();
        assert_eq!(exceeded(), Some(Reason::Unread), "the head alone was given");
        guard.polled();
        guard.piece_given();
        guard.polled();
        assert_eq!(exceeded(), Some(Reason::Unread), "another was asked for");
        guard.piece_given();
        guard.piece_taken();
        assert_eq!(exceeded(), Some(Reason::Unread), "one of two was taken");
    }

    #[test]
    fn a_client_that_closed_its_half_has_patience_without_progress_and_makes_room() {
        let Limits { patience, .. } = Limits::default();
        let phase = connected();
        let guard = ResponseGuard::begin(&phase);
        guard.admitted();
        assert_eq!(exceeded_after(&phase, patience * 2), None);
        assert!(phase.eviction_order(Instant::now() + STALLED * 2).is_none());
        phase.note_read(b"GET / HTTP/1.1\r\n\r\n");
        let closed = || phase.poll_closed(&mut Context::from_waker(Waker::noop()));
        assert!(closed().is_pending());
        assert_eq!(exceeded_after(&phase, patience / 2), None);
        assert_eq!(exceeded_after(&phase, patience * 2), Some(Reason::Unread));
        assert!(phase.eviction_order(Instant::now()).is_none(), "it may wait for its response");
        assert!(phase.eviction_order(Instant::now() + STALLED * 2).is_some());
        phase.note_sent(false);
        drop(guard);
        assert!(closed().is_pending(), "bytes wait for the client");
        phase.note_sent(true);
        assert!(closed().is_ready());
    }

    #[test]
    fn a_body_that_comes_during_a_response_is_no_head() {
        let phase = connected();
        phase.note_read(b"POST / HTTP/1.1\r\n\r\n");
        let guard = ResponseGuard::begin(&phase);
        phase.ends_with_body();
        phase.note_read(b"body");
        drop(guard);
        assert_eq!(exceeded_after(&phase, Limits::default().header_time * 2), None);
    }

    #[test]
    fn a_half_head_behind_a_whole_request_has_its_time_from_the_end_of_the_response() {
        let Limits { header_time, .. } = Limits::default();
        for reads in [
            &[&b"GET / HTTP/1.1\r\n\r\nGET / HT"[..]][..],
            &[b"GET / HTTP/1.1\r\n\r\n", b"GET / HT"],
        ] {
            let phase = connected();
            phase.note_read(reads[0]);
            let guard = ResponseGuard::begin(&phase);
            reads[1..].iter().for_each(|read| phase.note_read(read));
            assert_eq!(exceeded_after(&phase, header_time * 2), None, "the response goes on");
            drop(guard);
            assert_eq!(exceeded_after(&phase, header_time / 2), None);
            assert_eq!(exceeded_after(&phase, header_time * 2), Some(Reason::Head));
            phase.note_read(b"TP/1.1\r\n\r\n");
            assert_eq!(exceeded_after(&phase, header_time * 2), None);
        }
    }
}
