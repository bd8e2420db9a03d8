//! The web configuration: TLS, passwords, headers and pace, in the format that Prometheus and its
//! exporters share.
//!
//! [`Web`] stands for the file; `Rules` are its content at a moment. The file and those that it
//! names are checked again while the agent runs, so that a certificate or a password can be
//! changed without a restart. Nothing becomes weaker by accident: a file that is bad changes
//! nothing, and neither does one that has lost its TLS, its passwords, or its authority or names for
//! clients, as one written to a full disk may have.

mod clients;
mod file;
mod gate;
mod headers;
mod hosts;
mod passwords;
mod pem;
mod rate_limit;
mod rules;
mod sources;
mod tls;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use talea_http::turns::Turns;

pub use self::hosts::{Hosts, check_host};
use self::passwords::Refusal;
use self::rules::Rules;
use self::sources::Sources;
use talea_view::screen::note;

/// How long the files are taken to be as they were.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A web configuration that follows its file.
pub struct Web {
    rules: RwLock<Arc<Rules>>,
    bad_reloads: AtomicU64,
    unauthorized: AtomicU64,
    followed: Option<WatchedFile>,
}

struct WatchedFile {
    path: PathBuf,
    checks: Turns,
    checked: Mutex<CheckedFiles>,
}

struct CheckedFiles {
    at: Instant,
    sources: Sources,
}

impl Web {
    /// Opens a file, and follows its changes.
    ///
    /// # Errors
    /// When the file, or one that it names, cannot be read, or says what cannot be done.
    pub fn open(path: &Path) -> Result<Self> {
        let checks = Turns::new(passwords::CHECKS_AT_ONCE, passwords::CHECKS_WAITING);
        let mut sources = Sources::default();
        let rules =
            Rules::read(path, &mut sources, &checks).with_context(|| cannot_be_used(path))?;
        let checked = Mutex::new(CheckedFiles { at: Instant::now(), sources });
        Ok(Self::with(rules, Some(WatchedFile { path: path.to_owned(), checks, checked })))
    }

    /// No TLS and no passwords, and HTTP/2 for clients that speak it.
    pub fn nothing() -> Self {
        Self::with(Rules::default(), None)
    }

    fn with(rules: Rules, followed: Option<WatchedFile>) -> Self {
        Self {
            rules: RwLock::new(Arc::new(rules)),
            bad_reloads: AtomicU64::new(0),
            unauthorized: AtomicU64::new(0),
            followed,
        }
    }

    /// Whether connections are TLS.
    pub fn is_tls(&self) -> bool {
        self.current().tls.is_some()
    }

    /// The rules in force now: to be asked for each connection, and again for each request, so
    /// that a password that was changed is changed for connections that are open too.
    ///
    /// Looks at the files where the last look is a second ago, which takes as long as to read
    /// them. A bad change is reported once on standard error, and the rules in force stay.
    pub(crate) fn current(&self) -> Arc<Rules> {
        if let Some(followed) = &self.followed {
            // While one connection checks the files, others go on with the rules in force.
            if let Ok(mut checked) = followed.checked.try_lock()
                && checked.at.elapsed() >= LOOK_EVERY
            {
                checked.at = Instant::now();
                self.look(followed, &mut checked.sources);
            }
        }
        self.in_force()
    }

    /// The number of requests that were refused because the user or password was wrong or missing.
    pub fn unauthorized(&self) -> u64 {
        self.unauthorized.load(Ordering::Relaxed)
    }

    /// The number of changes that were not taken because they were bad.
    pub fn bad_reloads(&self) -> u64 {
        self.bad_reloads.load(Ordering::Relaxed)
    }

    fn look(&self, followed: &WatchedFile, sources: &mut Sources) {
        if !sources.have_changed() {
            return;
        }
        let mut found = Sources::default();
        let rules = Rules::read(&followed.path, &mut found, &followed.checks);
        *sources = found;
        let rules = rules
            .and_then(|rules| rules.instead_of(&self.in_force()))
            .with_context(|| cannot_be_used(&followed.path));
        match rules {
            Ok(rules) => {
                *self.rules.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(rules);
            }
            Err(error) => {
                self.bad_reloads.fetch_add(1, Ordering::Relaxed);
                note(format_args!("{error:#}; the rules in force stay"));
            }
        }
    }

    fn in_force(&self) -> Arc<Rules> {
        self.rules.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for Web {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.followed.as_ref().map(|followed| &followed.path);
        f.debug_struct("Web").field("path", &path).finish_non_exhaustive()
    }
}

fn cannot_be_used(path: &Path) -> String {
    format!("the web configuration {} cannot be used", path.display())
}

#[cfg(test)]
mod tests;
