//! Requests to stop: Ctrl-C, SIGTERM and perhaps SIGHUP, heard once and seen everywhere.

use tokio::sync::watch;

/// Whether the user has asked to stop. Clones see the same request.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// Starts to listen for SIGINT and SIGTERM (Ctrl-C elsewhere). Needs a tokio runtime.
    ///
    /// The first signal is a request to stop in good order. The second ends the process at once with
    /// status 130, after a call of `at_second`. A child that was started with a piped standard input
    /// sees it close.
    ///
    /// With `hangups`, on Linux, the first may be SIGHUP, unless the process ignores it, as `nohup` makes it.
    /// No SIGHUP is the second signal: a terminal that closes may send several.
    ///
    /// # Errors
    /// When a signal cannot be listened for.
    pub fn on_signals(
        hangups: bool,
        at_second: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<Self> {
        let (asked, stop) = watch::channel(false);
        let mut signals = Signals::listen(hangups)?;
        tokio::spawn(async move {
            signals.first().await;
            // Nobody listens any more once the command has ended.
            let _ = asked.send(true);
            signals.next().await;
            at_second();
            std::process::exit(INTERRUPTED.into());
        });
        Ok(Self(stop))
    }

    /// A stop that is never requested.
    pub fn never() -> Self {
        Self(watch::channel(false).1)
    }

    /// Whether a stop was requested.
    pub fn is_requested(&self) -> bool {
        *self.0.borrow()
    }

    /// Runs some work to its end, or until a stop is requested: whether that cut it off.
    pub(crate) async fn cuts(&mut self, work: impl Future<Output = ()>) -> bool {
        tokio::select! {
            biased;
            () = self.requested() => true,
            () = work => false,
        }
    }

    /// Waits until a stop is requested.
    pub async fn requested(&mut self) {
        if self.0.wait_for(|asked| *asked).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// The exit status of a process that a second signal ended.
pub const INTERRUPTED: u8 = 130;

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hangup: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Signals {
    fn listen(hangups: bool) -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: match hangups && !is_hangup_ignored() {
                true => Some(signal(SignalKind::hangup())?),
                false => None,
            },
        })
    }

    async fn first(&mut self) {
        match self.hangup.take() {
            None => self.next().await,
            Some(mut hangup) => tokio::select! {
                () = self.next() => {}
                _ = hangup.recv() => {}
            },
        }
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Whether this process ignores SIGHUP; so also where that is not known.
#[cfg(unix)]
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // SIGHUP is signal 1, the lowest bit.
    ignored.is_none_or(|mask| mask & 1 == 1)
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn listen(_: bool) -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn first(&mut self) {
        self.next().await;
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
