//! A scraper, which reuses its buffers from one scrape to the next.

use std::cell::Cell;

use crate::definition::kind::Kind;
use crate::definition::names;
use crate::expose::{Encoder, Escaping, Format};
use crate::page::{Page, Scrapable};
use crate::registry::Registry;
use crate::snapshot::Snapshot;

/// Scrapes a registry and reuses the memory of the snapshot and of the text. Once these have
/// reached their full size, a scrape allocates nothing.
///
/// Give each thread that serves scrapes its own. If scrapes are rare, use [`Registry::snapshot`],
/// which keeps no memory between them.
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
pub struct Scraper<S = Registry> {
    of: S,
    page: Page,
    encoder: Encoder,
    out: Vec<u8>,
}

impl Registry {
    /// A scraper, which reuses its buffers. It writes the text format unless [`Scraper::format`]
    /// chooses another.
    pub fn scraper(&self) -> Scraper {
        Scraper::new(self)
    }
}

impl Scraper {
    /// All values at this instant, as [`Registry::snapshot`].
    pub fn snapshot(&mut self) -> &Snapshot {
        self.take(&|_| true);
        self.page.first()
    }
}

impl<S: Scrapable> Scraper<S> {
    /// A scraper that writes the text format.
    pub fn new(of: &S) -> Self {
        Self {
            of: of.clone(),
            page: Page::new(),
            encoder: Encoder::new(Format::default(), Escaping::default()),
            out: Vec::new(),
        }
    }

    /// Chooses the format of the next scrapes, and how names are shown that it does not
    /// have otherwise.
    pub fn format(&mut self, format: Format, escaping: Escaping) {
        self.encoder = Encoder::new(format, escaping);
    }

    /// Leaves the samples `_created` out of OpenMetrics' text, until [`format`](Self::format) is called
    /// again.
    ///
    /// ```
    /// # use talea::{Counter, Escaping, Format, Opts, Registry};
    /// # let registry = Registry::for_test()?;
    /// # let orders: Counter = registry.register(Opts::new("orders", "Orders accepted."))?;
    /// let mut scraper = registry.scraper();
    /// scraper.format(Format::OpenMetrics, Escaping::default());
    /// assert!(String::from_utf8_lossy(scraper.scrape()).contains("orders_created "));
    /// scraper.hide_created();
    /// assert!(!String::from_utf8_lossy(scraper.scrape()).contains("orders_created "));
    /// # Ok::<(), talea::Error>(())
    /// ```
    pub fn hide_created(&mut self) {
        self.encoder.hide_created();
    }

    /// Shows the samples `_created` in Prometheus' text too, as a family of gauges beside each counter,
    /// histogram and summary, until [`format`](Self::format) is called again. For readers that expect
    /// what Python's official client writes.
    ///
    /// ```
    /// # use talea::{Counter, Opts, Registry};
    /// # let registry = Registry::for_test()?;
    /// # let orders: Counter = registry.register(Opts::new("orders", "Orders accepted."))?;
    /// let mut scraper = registry.scraper();
    /// scraper.show_created();
    /// assert!(String::from_utf8_lossy(scraper.scrape()).contains("# TYPE orders_created gauge\n"));
    /// # Ok::<(), talea::Error>(())
    /// ```
    pub fn show_created(&mut self) {
        self.encoder.show_created();
    }

    /// Writes whole numbers as `1.0` in both text formats, as clients do whose numbers are all floats, until [`format`](Self::format) is called again. Parsers read the same number; a text that is
    /// compared does not differ. A page takes about twice as long.
    ///
    /// ```
    /// # use talea::{Counter, Opts, Registry};
    /// # let registry = Registry::for_test()?;
    /// # let orders: Counter = registry.register(Opts::new("orders", "Orders accepted."))?;
    /// let mut scraper = registry.scraper();
    /// scraper.write_decimals();
    /// assert!(scraper.scrape().ends_with(b"\norders_total 0.0\n"));
    /// # Ok::<(), talea::Error>(())
    /// ```
    pub fn write_decimals(&mut self) {
        self.encoder.write_decimals();
    }

    /// All values at this instant in the format that was chosen.
    pub fn scrape(&mut self) -> &[u8] {
        self.take(&|_| true);
        self.out.clear();
        self.encoder.write(&self.page, &mut self.out);
        &self.out
    }

    /// All values at this instant, as families of the [model of a page](crate::model). Each is made as it is asked for,
    /// so that a large page need not be in memory as a whole.
    ///
    /// ```
    /// # use talea::{Counter, Opts, Registry, model};
    /// # let registry = Registry::for_test()?;
    /// # let orders: Counter = registry.register(Opts::new("orders", "Orders accepted."))?;
    /// orders.add(3);
    /// let mut scraper = registry.scraper();
    /// let families: Vec<_> = scraper.families().collect();
    /// assert_eq!(families[0].name, "orders_total");
    /// assert_eq!(families[0].kind, model::Kind::Counter);
    /// assert_eq!(families[0].series[0].value.number(), Some(3.0));
    /// # Ok::<(), talea::Error>(())
    /// ```
    pub fn families(&mut self) -> impl Iterator<Item = crate::model::Family> {
        self.take(&|_| true);
        self.page.families()
    }

    /// Takes the snapshot of a scrape that leaves in pieces, of the families whose names
    /// are wanted, as samples have them; [`write_some`](Self::write_some) writes it.
    ///
    /// ```
    /// # use talea::{Counter, Opts, Registry};
    /// # let registry = Registry::for_test()?;
    /// # let _: Counter = registry.register(Opts::new("orders", "Orders accepted."))?;
    /// let mut scraper = registry.scraper();
    /// scraper.begin(|name| name == "orders_total");
    /// let (mut sent, mut piece) = (0, Vec::new());
    /// while scraper.write_some(&mut piece, 1 << 16) {
    ///     sent += piece.len();
    ///     piece.clear();
    /// }
    /// sent += piece.len();
    /// assert_eq!(sent, registry.snapshot().to_text().len());
    /// # Ok::<(), talea::Error>(())
    /// ```
    pub fn begin(&mut self, wants: impl Fn(&str) -> bool) {
        self.take(&wants);
        self.encoder.begin();
    }

    /// Begins a scrape of the families that have any of these names, or samples of that name:
    /// `wait_seconds` and `wait_seconds_bucket` are one histogram, `calls`, `calls_total` and
    /// `calls_created` one counter. A name that must be escaped may be given escaped or not.
    /// Without names, all families.
    pub fn begin_named(&mut self, names: &[impl AsRef<str>]) {
        if names.is_empty() {
            return self.begin(|_| true);
        }
        let escaping = self.encoder.escaping();
        let is = |kind, family: &str| {
            let shown = escaping.name(family);
            names
                .iter()
                .map(AsRef::as_ref)
                .any(|name| names::takes(kind, family, name) || names::takes(kind, &shown, name))
        };
        // The kind of a family is known only once it is in a snapshot.
        self.take(&|family| Kind::ALL.into_iter().any(|kind| is(kind, family)));
        self.page.retain(|family| is(family.kind(), family.name()));
        self.encoder.begin();
    }

    fn take(&mut self, wants: &dyn Fn(&str) -> bool) {
        self.page.clear();
        let is_filtered = Cell::new(false);
        self.of.fill(&mut self.page, &|family: &str| {
            let is_wanted = wants(family);
            is_filtered.set(is_filtered.get() || !is_wanted);
            is_wanted
        });
        self.page.is_filtered = is_filtered.get();
        self.page.join();
        self.of.joined(&self.page);
    }

    /// Writes on at the end of `out`, until that is about as long as `enough`: it ends with
    /// the series that makes it as long. False when all is written.
    pub fn write_some(&mut self, out: &mut Vec<u8>, enough: usize) -> bool {
        self.encoder.write_some(&self.page, out, enough)
    }

    /// The text of the last [`scrape`](Self::scrape); empty before the first.
    pub fn scraped(&self) -> &[u8] {
        &self.out
    }

    /// The page that was taken last.
    pub fn page(&self) -> &Page {
        &self.page
    }
}
