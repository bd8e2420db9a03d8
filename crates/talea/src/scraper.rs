//! Scrapes one after the other, in memory that is used again.

use crate::expose::{Encoder, Escaping, Format};
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
/// assert!(scraper.scrape().ends_with(b"orders_total 1\n"));
/// orders.inc();
/// assert!(scraper.scrape().ends_with(b"orders_total 2\n"));
/// # Ok::<(), talea::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Scraper {
    registry: Registry,
    snapshot: Snapshot,
    encoder: Encoder,
    out: Vec<u8>,
}

impl Registry {
    /// What takes scrapes one after the other, in the text format; others by
    /// [`Scraper::format`].
    pub fn scraper(&self) -> Scraper {
        Scraper {
            registry: self.clone(),
            snapshot: Snapshot::default(),
            encoder: Encoder::new(Format::default(), Escaping::default()),
            out: Vec::new(),
        }
    }
}

impl Scraper {
    /// Chooses the format of the next scrapes, and how names are shown that it does not
    /// have otherwise.
    pub fn format(&mut self, format: Format, escaping: Escaping) {
        self.encoder = Encoder::new(format, escaping);
    }

    /// All values at this instant, as [`Registry::snapshot`].
    pub fn snapshot(&mut self) -> &Snapshot {
        self.registry.snapshot_into(&mut self.snapshot, |_| true);
        &self.snapshot
    }

    /// All values at this instant in the format that was chosen.
    pub fn scrape(&mut self) -> &[u8] {
        self.snapshot();
        self.out.clear();
        self.encoder.write(&self.snapshot, &mut self.out);
        &self.out
    }

    /// What the last scrape gave; nothing before the first.
    pub fn scraped(&self) -> &[u8] {
        &self.out
    }
}
