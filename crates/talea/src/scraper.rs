//! Scrapes one after the other, in memory that is used again.

use crate::expose;
use crate::registry::Registry;
use crate::snapshot::Snapshot;

/// What takes scrapes of a registry one after the other: the snapshot and the text of
/// the last one are the memory of the next, so once they are as large as they get,
/// nothing is allocated.
///
/// Give each thread that serves scrapes one of its own; where they are rare,
/// [`Registry::snapshot`] keeps no memory in between.
///
/// ```
/// use talea::{Counter, Opts, Registry};
///
/// let registry = Registry::for_test()?;
/// let orders: Counter = registry.register(Opts::new("orders", "Orders accepted."))?;
/// let mut scraper = registry.scraper();
/// orders.inc();
/// assert!(scraper.text().ends_with("orders_total 1\n"));
/// orders.inc();
/// assert!(scraper.text().ends_with("orders_total 2\n"));
/// # Ok::<(), talea::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Scraper {
    registry: Registry,
    snapshot: Snapshot,
    text: String,
}

impl Registry {
    /// What takes scrapes one after the other.
    pub fn scraper(&self) -> Scraper {
        Scraper { registry: self.clone(), snapshot: Snapshot::default(), text: String::new() }
    }
}

impl Scraper {
    /// All values at this instant, as [`Registry::snapshot`].
    pub fn snapshot(&mut self) -> &Snapshot {
        self.registry.snapshot_into(&mut self.snapshot, |_| true);
        &self.snapshot
    }

    /// The text exposition format of all values at this instant, as
    /// [`Snapshot::to_text`].
    pub fn text(&mut self) -> &str {
        let mut out = std::mem::take(&mut self.text).into_bytes();
        out.clear();
        expose::text(self.snapshot(), &mut out);
        // Nothing but text is written.
        self.text = String::from_utf8(out).unwrap_or_default();
        &self.text
    }
}
