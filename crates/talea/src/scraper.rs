//! Scrapes one after the other, in memory that is used again.

use crate::definition::kind::Kind;
use crate::definition::names;
use crate::expose::{Encoder, Escaping, Format};
use crate::outside::page::{Page, Scrapable};
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
pub struct Scraper<S = Registry> {
    of: S,
    page: Page,
    encoder: Encoder,
    out: Vec<u8>,
}

impl Registry {
    /// What takes scrapes one after the other, in the text format; others by
    /// [`Scraper::format`].
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
    /// What takes scrapes one after the other, in the text format.
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

    /// All values at this instant in the format that was chosen.
    pub fn scrape(&mut self) -> &[u8] {
        self.take(&|_| true);
        self.out.clear();
        self.encoder.write(&self.page, &mut self.out);
        &self.out
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

    /// The same of the families that have any of these names, or samples of it: `wait_seconds` and
    /// `wait_seconds_bucket` are one histogram, `calls`, `calls_total` and `calls_created` one
    /// counter. A name that only some formats have may be given as it is, or as it is shown. All
    /// families where no names are given.
    pub fn begin_named(&mut self, names: &[impl AsRef<str>]) {
        if names.is_empty() {
            return self.begin(|_| true);
        }
        let escaping = self.encoder.escaping();
        let is = |kind, family: &str| {
            let shown = escaping.name(family);
            let takes =
                |name: &str| names::takes(kind, family, name) || names::takes(kind, &shown, name);
            names.iter().any(|name| takes(name.as_ref()))
        };
        // Of what kind a family is, only its snapshot knows.
        self.take(&|family| Kind::ALL.into_iter().any(|kind| is(kind, family)));
        self.page.retain(|family| is(family.kind(), family.name()));
        self.encoder.begin();
    }

    fn take(&mut self, wants: &dyn Fn(&str) -> bool) {
        self.page.clear();
        self.of.fill(&mut self.page, wants);
        self.page.join();
        self.of.joined(&self.page);
    }

    /// Writes on at the end of `out`, until that is about as long as `enough`: it ends with
    /// the series that makes it as long. False when all is written.
    pub fn write_some(&mut self, out: &mut Vec<u8>, enough: usize) -> bool {
        self.encoder.write_some(&self.page, out, enough)
    }

    /// What the last [`scrape`](Self::scrape) gave; nothing before the first.
    pub fn scraped(&self) -> &[u8] {
        &self.out
    }

    /// The page that was taken last.
    pub fn page(&self) -> &Page {
        &self.page
    }
}
