//! What clients meet: a listener whose memory stays bounded whatever they do, for any
//! [`Router`].
//!
//! [`Front`] accepts connections. Each gets a place in the table of `connections`, where
//! there is a limited number of them; is served, over TLS where the web configuration says so, by
//! the task in `connection`; and notes what it is at in its `phase`, by the bytes that pass its
//! `wire` and by the `answers` that it gives. A watch looks at all phases and ends who is over
//! one of the [`Limits`]. [`Counts`] tell what became of them.

mod answers;
mod connection;
mod connections;
mod counts;
mod heads;
mod limits;
mod phase;
mod pieces;
mod socket;
pub mod web;
mod wire;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::{TcpListener, TcpStream};

use self::connection::Server;
use self::connections::Connections;
pub use self::counts::{Counts, Reason};
pub use self::limits::Limits;
use self::phase::Phase;
use self::web::Web;
use crate::stop::Stop;

/// How long is waited before the system is asked again, where it had no room for a connection.
const BREATH: Duration = Duration::from_millis(50);
/// How long those that are being answered may take to the end once it is to stop.
const FAREWELL: Duration = Duration::from_secs(5);

/// Listens, and serves those who come within [`Limits`].
#[derive(Debug)]
pub struct Front {
    listener: TcpListener,
    address: SocketAddr,
    web: Arc<Web>,
    counts: Arc<Counts>,
    connections: Arc<Connections>,
}

impl Front {
    /// Listens at an address; `web` is a file in the format of Prometheus' web configuration.
    ///
    /// # Errors
    /// When the file cannot be used, or the address cannot be listened on.
    pub async fn bind(
        address: SocketAddr,
        limits: Limits,
        web: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let web = Arc::new(web.map_or_else(|| Ok(Web::nothing()), Web::open)?);
        let listener = socket::listen(address)?;
        let address = listener.local_addr()?;
        let counts = Arc::new(Counts::new(web.clone()));
        let connections = Connections::new(limits, counts.clone());
        Ok(Self { listener, address, web, counts, connections })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Whether clients have to speak TLS.
    pub fn is_encrypted(&self) -> bool {
        self.web.current().tls().is_some()
    }

    /// What it tells of itself, now and as it goes on.
    pub fn told(&self) -> Arc<Counts> {
        self.counts.clone()
    }

    /// Serves until it is to stop. Then nobody is accepted any more, those that are quiet are let
    /// go, and those that are being answered have a few seconds to take it.
    pub async fn serve(self, app: Router, mut stop: Stop) {
        let Self { listener, web, counts, connections, .. } = self;
        let server = Arc::new(Server::new(app, web, counts.clone(), stop.clone()));
        let watch = AbortOnDrop(tokio::spawn(connections.clone().watch()));
        let _ends = EndAll(connections.clone());
        loop {
            let came = tokio::select! {
                biased;
                () = stop.requested() => break,
                came = listener.accept() => came,
            };
            match came {
                Ok((tcp, _)) => begin(tcp, &server, &connections),
                Err(error) if socket::is_of_the_client(&error) => {}
                // Somebody has to make room, as for want of descriptors.
                Err(_) => {
                    if socket::is_waited_at(&listener) {
                        counts.no_connection();
                        connections.end_one();
                    }
                    tokio::time::sleep(BREATH).await;
                }
            }
        }
        // Whoever still comes is refused by the system.
        drop(listener);
        // They are ended below where this is not enough.
        let _ = tokio::time::timeout(FAREWELL, connections.gone()).await;
        drop(watch);
    }
}

fn begin(tcp: TcpStream, server: &Arc<Server>, connections: &Arc<Connections>) {
    let phase = Arc::new(Phase::new());
    let Some(place) = connections.admit(&phase) else { return };
    let id = place.id();
    let served = server.clone().serve(tcp, phase);
    let task = tokio::spawn(async move {
        served.await;
        drop(place);
    });
    connections.runs(id, task.abort_handle());
}

/// Nobody stays once it is over, even if it is not waited for.
struct EndAll(Arc<Connections>);

impl Drop for EndAll {
    fn drop(&mut self) {
        self.0.end_all();
    }
}

struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
