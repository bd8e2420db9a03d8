//! An HTTP server whose memory and connections stay bounded, whatever its clients do.
//!
//! [`Server`] serves any [`Router`]. [`MetricsServer`](crate::MetricsServer) and the agent use
//! it. Each connection has an entry in the table of `connections`; the number of entries is
//! limited. The task in `connection` serves it: after the [`Gate`] has accepted it (TLS, for
//! example), hyper reads requests from its `transport` and gets responses from `gated_app`. Both
//! note the connection's state in its `phase`. A watch reads all phases and closes connections that
//! exceed one of the [`Limits`]. [`Counts`] has the numbers of connections, also by the reason for
//! which they were closed.

mod address;
mod connection;
mod connections;
mod counts;
mod gate;
mod gated_app;
mod head_progress;
mod host;
mod limits;
mod listener;
mod phase;
mod socket;
mod transport;
#[cfg(unix)]
mod unix;
mod watched_body;

pub use self::address::Address;
#[cfg(unix)]
pub use self::address::UnixAddress;
pub use self::counts::{Counts, Reason};
pub use self::gate::{AcceptedConnection, Gate, OpenGate};
pub use self::limits::Limits;
pub use self::socket::Socket;
pub use self::transport::Transport;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use ::axum::Router;
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::connection::Protocols;
use self::connections::Connections;
use self::listener::Listener;
use self::phase::Phase;

/// The pause before the system is asked again for a connection that it could not give.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// The time that responses may take to their end once the server stops.
const SHUTDOWN_TIME: Duration = Duration::from_secs(5);

/// Listens on an address and serves within [`Limits`].
///
/// Each request has the client's address as the extension
/// [`ConnectInfo<SocketAddr>`](::axum::extract::ConnectInfo). Clients of a Unix socket have 127.0.0.1.
#[derive(Debug)]
pub struct Server {
    listener: Listener,
    address: Address,
    gate: Arc<dyn Gate>,
    counts: Arc<Counts>,
    connections: Arc<Connections>,
}

impl Server {
    /// Listens on an address; port 0 picks a free one. Needs a tokio runtime.
    ///
    /// # Errors
    ///
    /// The address cannot be listened on. The error names it.
    pub fn bind(
        address: impl Into<Address>,
        limits: Limits,
        gate: Arc<dyn Gate>,
    ) -> io::Result<Self> {
        let (listener, address) = Listener::bind(address.into())?;
        let counts = Arc::new(Counts::default());
        let connections = Connections::new(limits, counts.clone());
        Ok(Self { listener, address, gate, counts, connections })
    }

    /// Where it listens, with the port that the system chose.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The IP address that it listens on; 0.0.0.0 and port 0 if it listens on a Unix socket.
    pub fn local_addr(&self) -> SocketAddr {
        match self.address {
            Address::Tcp(address) => address,
            #[cfg(unix)]
            Address::Unix(_) => ([0, 0, 0, 0], 0).into(),
        }
    }

    /// Counts of its connections, which stay current while it serves.
    pub fn counts(&self) -> Arc<Counts> {
        self.counts.clone()
    }

    /// Serves until `shutdown` completes. Then it accepts no more connections, closes idle ones,
    /// and gives responses that have begun five seconds to end.
    ///
    /// If the future is dropped, all connections are closed at once.
    pub async fn serve(self, app: Router, shutdown: impl Future<Output = ()> + Send) {
        let Self { listener, gate, connections, counts, .. } = self;
        let (stop, stopping) = watch::channel(false);
        let protocols = Arc::new(Protocols::new(app, gate, counts.clone(), stopping));
        let mut watch = JoinSet::new();
        watch.spawn(connections.clone().watch());
        let _close_all = CloseAllOnDrop(connections.clone());
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut shutdown => break,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((socket, client)) => begin(socket, client, &protocols, &connections),
                Err(error) if listener::is_of_the_client(&error) => {}
                // The system has no room, for example no free descriptor.
                Err(_) => {
                    if listener.has_pending_connection() {
                        counts.accept_errors.fetch_add(1, Relaxed);
                        connections.close_one();
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        // From now on the system refuses new connections.
        drop(listener);
        stop.send_replace(true);
        // `_close_all` closes those that need longer.
        let _ = tokio::time::timeout(SHUTDOWN_TIME, connections.none_open()).await;
        drop(watch);
    }
}

fn begin(
    socket: Socket,
    client: SocketAddr,
    protocols: &Arc<Protocols>,
    connections: &Arc<Connections>,
) {
    let phase = Arc::new(Phase::new());
    let Some(entry) = connections.admit(client.ip(), &phase) else { return };
    let id = entry.id;
    let served = protocols.clone().serve(socket, client, phase);
    let task = tokio::spawn(async move {
        served.await;
        drop(entry);
    });
    connections.set_task(id, task.abort_handle());
}

/// No connection outlives the server's future, even one that is dropped.
struct CloseAllOnDrop(Arc<Connections>);

impl Drop for CloseAllOnDrop {
    fn drop(&mut self) {
        self.0.close_all();
    }
}
