//! What one connection is at, and since when.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::counts::Reason;
use super::heads::Heads;
use super::limits::Limits;

/// How long a client that takes nothing keeps its place when others come.
const SLOW: Duration = Duration::from_secs(1);

/// What one connection is at. Its stream and its answers note it, the watch looks at it.
#[derive(Debug)]
pub(super) struct Phase(Mutex<State>);

#[derive(Debug)]
struct State {
    heads: Heads,
    /// Until TLS is there.
    handshake: bool,
    /// Since when no request is being answered, if none is.
    quiet: Instant,
    /// Since when the client owes the rest of a head.
    head: Option<Instant>,
    /// Since when it has not taken all that it was sent.
    unsent: Option<Instant>,
    /// Of each answer that is being given: since when the client has not taken its last piece.
    answers: Vec<(u64, Option<Instant>)>,
    next: u64,
    /// Whether what is unsent is dropped when the connection ends.
    reset: bool,
}

impl Phase {
    pub(super) fn new(handshake: bool) -> Self {
        Self(Mutex::new(State {
            heads: Heads::new(),
            handshake,
            quiet: Instant::now(),
            head: None,
            unsent: None,
            answers: Vec::new(),
            next: 0,
            reset: false,
        }))
    }

    pub(super) fn shook_hands(&self) {
        let mut state = self.state();
        state.handshake = false;
        state.quiet = Instant::now();
    }

    pub(super) fn read(&self, bytes: &[u8]) {
        let mut state = self.state();
        let owes = state.heads.read(bytes);
        // What HTTP/1 sends during an answer is read with its end.
        let early = matches!(state.heads, Heads::Http1) && !state.answers.is_empty();
        if !owes || early {
            state.head = None;
        } else if state.head.is_none() {
            state.head = Some(Instant::now());
        }
    }

    /// Whether all is sent that was to be.
    pub(super) fn sent(&self, all: bool) {
        let mut state = self.state();
        if all {
            state.unsent = None;
        } else if state.unsent.is_none() {
            state.unsent = Some(Instant::now());
        }
    }

    /// Whether the connection was ended in a way that nobody waits for what is unsent.
    pub(super) fn is_reset(&self) -> bool {
        self.state().reset
    }

    pub(super) fn reset(&self) {
        self.state().reset = true;
    }

    /// Which limit is passed, if one is.
    pub(super) fn over(&self, limits: &Limits, now: Instant) -> Option<Reason> {
        let state = self.state();
        let past = |since: Instant, limit| now.saturating_duration_since(since) > limit;
        if state.handshake {
            return past(state.quiet, limits.header_time).then_some(Reason::Handshake);
        }
        if state.untaken().is_some_and(|since| past(since, limits.patience)) {
            return Some(Reason::Stalled);
        }
        if state.head.is_some_and(|since| past(since, limits.header_time)) {
            return Some(Reason::Head);
        }
        let idle = state.answers.is_empty() && past(state.quiet, limits.idle_time);
        idle.then_some(Reason::Idle)
    }

    /// How willingly it is ended for another: the least first. None if it is being answered.
    pub(super) fn place(&self, now: Instant) -> Option<(bool, Instant)> {
        let state = self.state();
        match state.untaken() {
            None if state.answers.is_empty() => Some((false, state.quiet)),
            Some(since) if now.saturating_duration_since(since) > SLOW => Some((true, since)),
            _ => None,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Since when the client does not take what it is sent.
    fn untaken(&self) -> Option<Instant> {
        let pieces = self.answers.iter().filter_map(|(_, untaken)| *untaken);
        pieces.chain(self.unsent).min()
    }
}

/// A request that is being answered, until it is dropped.
#[derive(Debug)]
pub(super) struct Answering {
    phase: Arc<Phase>,
    id: u64,
}

impl Answering {
    pub(super) fn begin(phase: &Arc<Phase>) -> Self {
        let mut state = phase.state();
        let id = state.next;
        state.next += 1;
        if matches!(state.heads, Heads::Http1) {
            state.head = None;
        }
        state.answers.push((id, None));
        Self { phase: phase.clone(), id }
    }

    /// A piece was given away: it is not asked for another before the client has taken it.
    pub(super) fn gave(&self) {
        self.set(Some(Instant::now()));
    }

    /// Another piece is asked for.
    pub(super) fn asked(&self) {
        self.set(None);
    }

    fn set(&self, untaken: Option<Instant>) {
        let mut state = self.phase.state();
        if let Some(answer) = state.answers.iter_mut().find(|(id, _)| *id == self.id) {
            answer.1 = untaken;
        }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        let mut state = self.phase.state();
        state.answers.retain(|(id, _)| *id != self.id);
        if state.answers.is_empty() {
            state.quiet = Instant::now();
        }
    }
}
