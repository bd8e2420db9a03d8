//! When to stop: at a signal, or when who started the service is gone.

use anyhow::{Context, Result};
use std::io;
use std::thread;
use tokio::sync::oneshot;

/// The reasons to stop, listened for.
#[derive(Debug)]
pub struct Stop {
    signals: Signals,
    input: Option<oneshot::Receiver<()>>,
}

impl Stop {
    /// Listens for SIGTERM and SIGINT from now on (elsewhere than on Unix for
    /// Ctrl-C), and, if `with_input`, for the end of standard input.
    /// Fails when the system refuses a signal handler or a thread.
    /// Panics when called outside a tokio runtime.
    pub fn listen(with_input: bool) -> Result<Stop> {
        let signals = Signals::listen().context("cannot listen for signals")?;
        let input = with_input.then(end_of_input).transpose()?;
        Ok(Stop { signals, input })
    }

    /// Returns at the next reason to stop. The end of input is reported once.
    pub async fn next(&mut self) {
        tokio::select! {
            () = self.signals.next() => {}
            _ = async { self.input.as_mut()?.await.ok() }, if self.input.is_some() => {
                self.input = None;
            }
        }
    }
}

/// A thread of its own, since a read of standard input cannot be cancelled and
/// tokio would wait for it at the end.
fn end_of_input() -> Result<oneshot::Receiver<()>> {
    let (tell, ended) = oneshot::channel();
    thread::Builder::new()
        .name("input".into())
        .spawn(move || {
            let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
            let _ = tell.send(());
        })
        .context("cannot start the thread that watches standard input")?;
    Ok(ended)
}

#[cfg(unix)]
#[derive(Debug)]
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn listen() -> io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

#[cfg(not(unix))]
#[derive(Debug)]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn listen() -> io::Result<Signals> {
        Ok(Signals)
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}
