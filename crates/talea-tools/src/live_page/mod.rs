//! The live page of a command that makes load, if it is asked for.

#[cfg(target_os = "linux")]
mod presentation;

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Result;

#[cfg(target_os = "linux")]
use self::presentation::Presentation;
use talea_study::study::Watcher;
use talea_view::screen::note;

/// A page that is served while a study or a load runs, or none.
#[derive(Default)]
pub(crate) struct LivePage {
    #[cfg(target_os = "linux")]
    presentation: Option<Presentation>,
    watcher: Option<Arc<dyn Watcher>>,
}

impl LivePage {
    /// Serves a page at an address, if there is one, and says on standard error where.
    ///
    /// # Errors
    /// When the address cannot be listened on, or the system is not Linux.
    pub(crate) fn start(address: Option<SocketAddr>, title: &str) -> Result<Self> {
        match address {
            None => Ok(Self::default()),
            Some(address) => Self::at(address, title),
        }
    }

    #[cfg(target_os = "linux")]
    fn at(address: SocketAddr, title: &str) -> Result<Self> {
        let presentation = Presentation::start(address, title)?;
        note(format_args!("live page: {}", presentation.url()));
        Ok(Self { watcher: Some(presentation.watcher()), presentation: Some(presentation) })
    }

    #[cfg(not(target_os = "linux"))]
    fn at(_: SocketAddr, _: &str) -> Result<Self> {
        anyhow::bail!("--live: the live page needs Linux")
    }

    pub(crate) fn watcher(&self) -> Option<&dyn Watcher> {
        self.watcher.as_deref()
    }

    /// Shows that it is over, with the report's path if there is one, and ends the page.
    pub(crate) fn end(self, report: Option<String>) {
        #[cfg(target_os = "linux")]
        if let Some(presentation) = self.presentation {
            presentation.end(report);
        }
        #[cfg(not(target_os = "linux"))]
        drop(report);
    }
}
