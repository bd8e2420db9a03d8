//! What one connection is at, and since when.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::counts::Reason;
use super::heads::{Heads, Owed};
use super::limits::Limits;

/// How long a client that takes nothing keeps its place when others come.
const SLOW: Duration = Duration::from_secs(1);

/// What one connection is at. Its wire and its answers note it, the watch looks at it.
#[derive(Debug)]
pub(super) struct Phase(Mutex<State>);

#[derive(Debug)]
struct State {
    heads: Heads,
    /// Until it is known to be encrypted, or not to need it.
    handshake: bool,
    /// Since when no request is being answered, if none is.
    quiet: Instant,
    /// Since when the client owes the rest of a head.
    head: Option<Instant>,
    /// Since when it has not taken all that was written.
    unsent: Option<Instant>,
    answers: Vec<Answer>,
    next: u64,
    /// Whether what is unsent is dropped when the connection ends.
    reset: bool,
}

/// One that is being given.
#[derive(Debug)]
struct Answer {
    id: u64,
    /// Whether its client may have it, as far as that is known.
    admitted: bool,
    /// Whether the application has to go on with it, not the client.
    asked: bool,
    /// Pieces that were given away and are not written yet.
    pieces: usize,
    /// Since when the client has taken none of what it was given.
    untaken: Option<Instant>,
}

impl Phase {
    pub(super) fn new() -> Self {
        Self(Mutex::new(State {
            heads: Heads::new(),
            handshake: true,
            quiet: Instant::now(),
            head: None,
            unsent: None,
            answers: Vec::new(),
            next: 0,
            reset: false,
        }))
    }

    /// Requests may come.
    pub(super) fn shook_hands(&self) {
        let mut state = self.state();
        state.handshake = false;
        state.quiet = Instant::now();
    }

    pub(super) fn read(&self, bytes: &[u8]) {
        let mut state = self.state();
        let owed = state.heads.read(bytes);
        // What HTTP/1 sends during an answer is read with its end.
        let early = matches!(state.heads, Heads::Http1) && !state.answers.is_empty();
        match owed {
            _ if early => state.head = None,
            Owed::Nothing => state.head = None,
            Owed::Another => state.head = Some(Instant::now()),
            Owed::Rest => {
                state.head.get_or_insert_with(Instant::now);
            }
        }
    }

    /// Whether all is sent that was to be.
    pub(super) fn sent(&self, all: bool) {
        let mut state = self.state();
        if all {
            state.unsent = None;
        } else {
            state.unsent.get_or_insert_with(Instant::now);
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
            return Some(Reason::Unread);
        }
        if state.head.is_some_and(|since| past(since, limits.header_time)) {
            return Some(Reason::Head);
        }
        let idle = state.answers.is_empty() && past(state.quiet, limits.idle_time);
        idle.then_some(Reason::Idle)
    }

    /// How willingly it is ended for another: the least first. None if it is being answered.
    ///
    /// Whoever waits for its password to be looked at is not answered yet: others may come
    /// while many guess.
    pub(super) fn place(&self, now: Instant) -> Option<(bool, Instant)> {
        let state = self.state();
        match state.untaken() {
            None if !state.is_answering() => Some((false, state.quiet)),
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
        self.answers.iter().filter_map(|answer| answer.untaken).chain(self.unsent).min()
    }

    fn is_answering(&self) -> bool {
        self.answers.iter().any(|answer| answer.admitted)
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
        state.answers.push(Answer { id, admitted: false, asked: true, pieces: 0, untaken: None });
        Self { phase: phase.clone(), id }
    }

    /// Its client may have the answer.
    pub(super) fn admitted(&self) {
        self.note(|answer| answer.admitted = true);
    }

    /// The head of the answer was given away: no piece is asked for before it is taken.
    pub(super) fn answered(&self) {
        self.note(|answer| {
            answer.asked = false;
            answer.untaken = Some(Instant::now());
        });
    }

    /// A piece is asked for.
    pub(super) fn asked(&self) {
        self.note(|answer| {
            answer.asked = true;
            if answer.pieces == 0 {
                answer.untaken = None;
            }
        });
    }

    /// A piece was given away.
    pub(super) fn gave(&self) {
        self.note(|answer| {
            answer.asked = false;
            answer.pieces += 1;
            answer.untaken.get_or_insert_with(Instant::now);
        });
    }

    /// A piece was written.
    pub(super) fn taken(&self) {
        self.note(|answer| {
            answer.pieces -= 1;
            let waits = answer.pieces > 0 || !answer.asked;
            answer.untaken = waits.then(Instant::now);
        });
    }

    fn note(&self, what: impl FnOnce(&mut Answer)) {
        let mut state = self.phase.state();
        if let Some(answer) = state.answers.iter_mut().find(|answer| answer.id == self.id) {
            what(answer);
        }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        let mut state = self.phase.state();
        state.answers.retain(|answer| answer.id != self.id);
        if state.answers.is_empty() {
            state.quiet = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connected() -> Arc<Phase> {
        let phase = Arc::new(Phase::new());
        phase.shook_hands();
        phase
    }

    fn later(duration: Duration) -> Instant {
        Instant::now() + duration
    }

    #[test]
    fn a_handshake_has_the_time_of_a_head() {
        let limits = Limits::default();
        let phase = Phase::new();
        assert_eq!(phase.over(&limits, later(limits.header_time / 2)), None);
        let over = later(limits.header_time * 2);
        assert_eq!(phase.over(&limits, over), Some(Reason::Handshake));
        phase.shook_hands();
        assert_eq!(phase.over(&limits, over), None);
    }

    #[test]
    fn whoever_waits_for_its_password_makes_room() {
        let phase = connected();
        let answering = Answering::begin(&phase);
        assert!(phase.place(Instant::now()).is_some());
        answering.admitted();
        assert!(phase.place(Instant::now()).is_none());
        drop(answering);
        assert!(phase.place(Instant::now()).is_some());
    }

    #[test]
    fn an_application_that_takes_its_time_is_not_the_clients_fault() {
        let limits = Limits::default();
        let phase = connected();
        let answering = Answering::begin(&phase);
        assert_eq!(phase.over(&limits, later(limits.idle_time * 2)), None);
        answering.answered();
        answering.asked();
        answering.gave();
        answering.asked();
        answering.taken();
        assert_eq!(phase.over(&limits, later(limits.idle_time * 2)), None);
    }

    #[test]
    fn a_piece_that_is_not_taken_is() {
        let limits = Limits::default();
        let phase = connected();
        let answering = Answering::begin(&phase);
        let over = later(limits.patience * 2);
        answering.answered();
        assert_eq!(phase.over(&limits, over), Some(Reason::Unread), "the head alone was given");
        answering.asked();
        answering.gave();
        answering.asked();
        assert_eq!(phase.over(&limits, over), Some(Reason::Unread), "another was asked for");
        answering.gave();
        answering.taken();
        assert_eq!(phase.over(&limits, over), Some(Reason::Unread), "one of two was taken");
    }

    #[test]
    fn a_body_that_comes_during_an_answer_is_no_head() {
        let limits = Limits::default();
        let phase = connected();
        phase.read(b"POST / HTTP/1.1\r\n\r\n");
        let answering = Answering::begin(&phase);
        phase.read(b"body");
        drop(answering);
        assert_eq!(phase.over(&limits, later(limits.header_time * 2)), None);
    }
}
