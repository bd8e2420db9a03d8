//! Accepts connections and serves each in a task.

use crate::log;
use crate::stop::Stop;
use anyhow::{Result, anyhow};
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;
use talea_collectors::tasks::TaskMeter;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::sleep;

/// How long a stopping server waits for the answers that are in flight.
pub const DRAIN_LIMIT: Duration = Duration::from_secs(10);

/// How many connections may wait to be accepted; thousands of clients start at
/// once in a study. The system may lower it.
const BACKLOG: u32 = 4096;

/// How long to leave the listener alone when the system is out of descriptors
/// or memory: until some connection has ended, perhaps.
const BACK_OFF: Duration = Duration::from_millis(50);

/// Listens at `address`.
/// Fails when the address is taken or may not be used, and names it.
pub fn bind(address: SocketAddr) -> Result<TcpListener> {
    listen(address).map_err(|error| refused(address, "--listen", &error))
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // On Unix this lets a restart have the port of connections that linger; on
    // Windows it would let two programs share the port.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Says which address could not be had, and what to do about it.
pub(crate) fn refused(address: SocketAddr, option: &str, error: &io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::AddrInUse => anyhow!(
            "port {} of {} is taken by another program: stop that one, or choose another port \
             with {option} {}:PORT (0 picks a free one)",
            address.port(),
            address.ip(),
            address.ip(),
        ),
        // The metrics server's error names the address and what to do.
        _ if error.to_string().contains(&address.to_string()) => anyhow!("{option}: {error}"),
        _ => anyhow!("cannot listen on {address}: {error}; choose another with {option}"),
    }
}

/// Serves `app` until `stop` says so, then finishes what is in flight: for
/// [`DRAIN_LIMIT`] at most, or until `stop` says so again. `tasks` meters the tasks.
pub async fn serve(listener: TcpListener, app: Router, tasks: Option<TaskMeter>, mut stop: Stop) {
    let connections = GracefulShutdown::new();
    tokio::select! {
        () = accept(&listener, &app, tasks.as_ref(), &connections) => {}
        () = stop.next() => {}
    }
    drop(listener);
    drain(connections, stop.next()).await;
}

/// Never returns: no error of one connection may end the service.
async fn accept(
    listener: &TcpListener,
    app: &Router,
    tasks: Option<&TaskMeter>,
    connections: &GracefulShutdown,
) {
    let mut reported = false;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let serving = connection(stream, app, connections);
                match tasks {
                    Some(tasks) => tasks.spawn(serving),
                    None => tokio::spawn(serving),
                };
            }
            Err(error) if is_of_the_client(&error) => {}
            Err(error) => {
                if !reported {
                    reported = true;
                    log::line(format_args!(
                        "cannot accept a connection: {error}; trying again (reported once)"
                    ));
                }
                sleep(BACK_OFF).await;
            }
        }
    }
}

fn is_of_the_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset
    )
}

fn connection(
    stream: TcpStream,
    app: &Router,
    connections: &GracefulShutdown,
) -> impl Future<Output = ()> + Send + use<> {
    // Refused only by a socket that is already closed, as serving will find out.
    let _ = stream.set_nodelay(true);
    let serving = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(app.clone()));
    let serving = connections.watch(serving);
    async move {
        // An error here is a client that broke off or spoke no HTTP: its own affair.
        let _ = serving.await;
    }
}

async fn drain(connections: GracefulShutdown, stopped: impl Future<Output = ()>) {
    tokio::select! {
        () = connections.shutdown() => {}
        () = sleep(DRAIN_LIMIT) => log::line(format_args!(
            "connections that were still busy after {} s are cut",
            DRAIN_LIMIT.as_secs()
        )),
        () = stopped => {}
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use std::future::pending;
    use tokio::io::{AsyncWriteExt, duplex};
    use tokio::sync::mpsc;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_that_never_ends_is_cut_after_ten_seconds() {
        let (begins, mut begun) = mpsc::channel(1);
        let app = TowerToHyperService::new(Router::new().route(
            "/",
            get(async move || {
                let _ = begins.send(()).await;
                pending::<()>().await
            }),
        ));
        let (mut client, server) = duplex(1 << 10);
        let connections = GracefulShutdown::new();
        let serving = http1::Builder::new().serve_connection(TokioIo::new(server), app);
        tokio::spawn(connections.watch(serving));
        client.write_all(b"GET / HTTP/1.1\r\nhost: items\r\n\r\n").await.unwrap();
        begun.recv().await.unwrap();
        let stopped = Instant::now();
        drain(connections, pending()).await;
        assert_eq!(stopped.elapsed(), DRAIN_LIMIT);
    }
}
