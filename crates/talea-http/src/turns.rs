//! Turns at a scarce resource, shared fairly among clients.
//!
//! The number of turns held at once and the number of waiting clients are limited, and so is the
//! memory. The order is round robin over sources (client addresses), and within a source over
//! names: the next turn goes to the source that was served least recently, so a client that asks a
//! hundred times waits for itself and does not delay others. If too many wait, the newest client of
//! the source with the most waiting clients is refused.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// The number of clients that are remembered as recently served.
const RECENT: usize = 64;

/// Hands out a limited number of turns. Clones share it.
#[derive(Clone, Debug)]
pub struct Turns(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    at_once: usize,
    waiting: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    held: usize,
    waiting: Vec<WaitingClient>,
    /// The clients that were served last, each once, the most recent at the end.
    recent: VecDeque<Client>,
}

#[derive(Debug)]
struct WaitingClient {
    client: Client,
    turn: oneshot::Sender<Turn>,
}

/// A client that asks for a turn.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Client {
    source: Option<IpAddr>,
    name: Vec<u8>,
}

/// A turn, which passes to the next client when it is dropped.
pub struct Turn(Option<Arc<Shared>>);

/// The refusal of a turn, because too many clients wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("too many clients wait for a turn; try again later")
    }
}

impl std::error::Error for Busy {}

/// The source of a client's address: for IPv6 its first 64 bits, since one client has all addresses
/// of such a network.
pub fn source_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = address.to_bits() >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from_bits(network))
        }
        address => address,
    }
}

impl Client {
    /// A client with an address and a name; an empty name if it has no name. Clients without an
    /// address share one source.
    pub fn new(address: Option<IpAddr>, name: impl Into<Vec<u8>>) -> Self {
        Self { source: address.map(source_of), name: name.into() }
    }

    /// Whether two clients have the same source.
    pub(crate) fn shares_source(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Turns {
    /// `at_once` turns are held at once (at least one), and `waiting` clients may wait.
    pub fn new(at_once: usize, waiting: usize) -> Self {
        let at_once = at_once.max(1);
        Self(Arc::new(Shared { at_once, waiting, state: Mutex::default() }))
    }

    /// Waits for a turn. Dropping the future gives the place up.
    ///
    /// The client takes its place when this is called, not when the future is polled.
    ///
    /// # Errors
    ///
    /// Too many clients wait, and this one's source has at least as many as any other.
    pub fn turn(&self, client: Client) -> impl Future<Output = Result<Turn, Busy>> + Send + use<> {
        let turn = self.0.enter(client);
        // The sender is dropped when the client is refused after all.
        async move { turn?.await.map_err(|_| Busy) }
    }

    /// The number of clients that wait.
    pub fn waiting(&self) -> usize {
        self.0.state().waiting.iter().filter(|waiting| !waiting.turn.is_closed()).count()
    }
}

impl Shared {
    fn enter(self: &Arc<Self>, client: Client) -> Result<oneshot::Receiver<Turn>, Busy> {
        let (turn, waits) = oneshot::channel();
        let mut state = self.state();
        state.waiting.retain(|waiting| !waiting.turn.is_closed());
        if state.held < self.at_once && state.waiting.is_empty() {
            state.held += 1;
            state.note_served(client);
            // It cannot fail: the receiver is here.
            let _ = turn.send(Turn(Some(self.clone())));
            return Ok(waits);
        }
        if state.waiting.len() >= self.waiting {
            let refused = state.refused_for(&client).ok_or(Busy)?;
            // Dropping its sender informs the client.
            state.waiting.remove(refused);
        }
        state.waiting.push(WaitingClient { client, turn });
        Ok(waits)
    }

    /// Hands a turn that ended to the next client.
    fn pass_on(self: Arc<Self>) {
        let mut turn = Turn(Some(self.clone()));
        loop {
            let mut state = self.state();
            let Some(next) = state.take_next() else {
                state.held -= 1;
                // It must not be passed on again.
                turn.0 = None;
                return;
            };
            // A client that has gone away gives the turn back here.
            drop(state);
            match next.turn.send(turn) {
                Ok(()) => return,
                Err(back) => turn = back,
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take_next(&mut self) -> Option<WaitingClient> {
        // Of several minima, the first to arrive.
        let (next, _) = self.waiting.iter().enumerate().min_by_key(|(_, waiting)| {
            let client = &waiting.client;
            (
                self.last_served(|recent| recent.shares_source(client)),
                self.last_served(|recent| recent == client),
            )
        })?;
        let next = self.waiting.remove(next);
        self.note_served(next.client.clone());
        Some(next)
    }

    /// The place of the client that was served last among those that match, from 1; 0 if no client matches.
    fn last_served(&self, matches: impl Fn(&Client) -> bool) -> usize {
        self.recent.iter().rposition(matches).map_or(0, |place| place + 1)
    }

    fn note_served(&mut self, client: Client) {
        self.recent.retain(|recent| *recent != client);
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(client);
    }

    /// The waiting client that is refused for a new one: the newest of the source with the most
    /// waiting clients, if these are at least two more than the waiting clients of the new client's source; or,
    /// within that source, of a name by the same rule.
    fn refused_for(&self, client: &Client) -> Option<usize> {
        let clients = || self.waiting.iter().map(|waiting| &waiting.client);
        let of_source = |client| clients().filter(|other| other.shares_source(client)).count();
        let of_client = |client| clients().filter(|other| *other == client).count();
        // Of several maxima, the last: the newest.
        let most = clients().max_by_key(|&client| of_source(client))?;
        let is_of_other_source = of_source(most) >= of_source(client) + 2;
        let source = if is_of_other_source { most } else { client };
        let among = clients().enumerate().filter(|(_, other)| other.shares_source(source));
        let (refused, most) = among.max_by_key(|&(_, client)| of_client(client))?;
        (is_of_other_source || of_client(most) >= of_client(client) + 2).then_some(refused)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(shared) = self.0.take() {
            shared.pass_on();
        }
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use proptest::prelude::*;

    use super::*;

    type Waits = Pin<Box<dyn Future<Output = Result<Turn, Busy>> + Send>>;

    fn ask(turns: &Turns, source: u8, name: &str) -> Waits {
        let address = IpAddr::from([10, 0, 0, source]);
        Box::pin(turns.turn(Client::new(Some(address), name)))
    }

    fn poll(waits: &mut Waits) -> Poll<Result<Turn, Busy>> {
        waits.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    fn has_turn(waits: &mut Waits) -> Turn {
        match poll(waits) {
            Poll::Ready(Ok(turn)) => turn,
            other => panic!("expected a turn, found {other:?}"),
        }
    }

    fn is_refused(waits: &mut Waits) -> bool {
        matches!(poll(waits), Poll::Ready(Err(Busy)))
    }

    #[test]
    fn one_has_a_turn_others_wait_and_the_rest_are_refused() {
        let turns = Turns::new(1, 8);
        let first = has_turn(&mut ask(&turns, 1, ""));
        let mut waiting: Vec<_> = (0..8).map(|_| ask(&turns, 1, "")).collect();
        assert!(waiting.iter_mut().all(|waits| poll(waits).is_pending()));
        assert!(is_refused(&mut ask(&turns, 1, "")));
        // A client that goes away leaves its place to another.
        waiting.pop();
        assert!(poll(&mut ask(&turns, 1, "")).is_pending());
        drop(first);
        has_turn(&mut waiting[0]);
    }

    #[test]
    fn a_hundred_of_one_source_do_not_delay_one_of_another() {
        let turns = Turns::new(1, 64);
        let held = has_turn(&mut ask(&turns, 1, "alice"));
        let _flood: Vec<_> = (0..100).map(|n| ask(&turns, 1, &format!("user {n}"))).collect();
        let mut other = ask(&turns, 2, "alice");
        assert!(poll(&mut other).is_pending(), "it is not refused");
        drop(held);
        has_turn(&mut other);
    }

    #[test]
    fn names_of_one_source_take_turns() {
        let turns = Turns::new(1, 64);
        let mut held = has_turn(&mut ask(&turns, 1, "mallory"));
        let mut flood: Vec<_> = (0..64).map(|_| ask(&turns, 1, "mallory")).collect();
        let mut alice = ask(&turns, 1, "alice");
        assert!(is_refused(&mut flood[63]), "the newest of the name that waits most");
        drop(std::mem::replace(&mut held, Turn(None)));
        has_turn(&mut alice);
    }

    #[test]
    fn a_turn_passed_to_a_client_that_left_goes_on() {
        let turns = Turns::new(1, 8);
        let held = has_turn(&mut ask(&turns, 1, ""));
        let left = ask(&turns, 2, "");
        let mut stays = ask(&turns, 3, "");
        drop(held);
        // The turn is on its way to the client that leaves now.
        drop(left);
        has_turn(&mut stays);
        assert_eq!(turns.0.state().held, 0);
    }

    #[test]
    fn networks_of_ipv6_are_one_source_each() {
        let client = |address: &str| Client::new(Some(address.parse().unwrap()), "");
        assert!(client("2001:db8::1").shares_source(&client("2001:db8::ffff:1")));
        assert!(!client("2001:db8::1").shares_source(&client("2001:db8:0:1::1")));
        assert!(client("::ffff:10.0.0.1").shares_source(&client("10.0.0.1")));
    }

    proptest! {
        /// In any order of arrivals, departures and ends, there are at most as many turns and
        /// waiting clients as allowed, and no client waits while a turn is free.
        #[test]
        fn turns_are_neither_lost_nor_made(
            at_once in 1..4_usize,
            limit in 0..6_usize,
            steps in prop::collection::vec((0..3_u8, 0..4_u8, 0..8_usize), 1..200),
        ) {
            let turns = Turns::new(at_once, limit);
            let mut waiting: Vec<Waits> = Vec::new();
            let mut held: Vec<Turn> = Vec::new();
            for (step, source, which) in steps {
                match step {
                    0 => waiting.push(ask(&turns, source, "")),
                    1 if !waiting.is_empty() => drop(waiting.swap_remove(which % waiting.len())),
                    _ if !held.is_empty() => drop(held.swap_remove(which % held.len())),
                    _ => {}
                }
                let mut still = Vec::new();
                for mut waits in waiting {
                    match poll(&mut waits) {
                        Poll::Ready(Ok(turn)) => held.push(turn),
                        Poll::Ready(Err(Busy)) => {}
                        Poll::Pending => still.push(waits),
                    }
                }
                waiting = still;
                prop_assert!(held.len() <= at_once);
                prop_assert!(waiting.len() <= limit);
                prop_assert!(waiting.is_empty() || held.len() == at_once);
                prop_assert_eq!(turns.0.state().held, held.len());
            }
        }
    }
}
