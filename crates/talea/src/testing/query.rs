//! Queries: how a test or a tool finds values in a snapshot.
//!
//! Labels are asked for by their plain values, in any order. Each query looks
//! at every series of one family.

use std::fmt;

use crate::definition::kind::Kind;
use crate::expose;
use crate::histogram::snapshot::HistogramSnapshot;
use crate::snapshot::{FamilySnapshot, SeriesSnapshot, Snapshot, SummarySnapshot, Value};

impl Snapshot {
    /// The family of this name, as samples have it (a counter's with `_total`).
    /// Cost: a look at each family's name.
    ///
    /// ```
    /// # use talea::{Counter, Kind, Opts, Registry};
    /// # let registry = Registry::for_test()?;
    /// let orders: Counter = registry.register(Opts::new("orders", "Orders."))?;
    /// let snapshot = registry.snapshot();
    /// assert_eq!(snapshot.family("orders_total").unwrap().kind(), Kind::Counter);
    /// assert!(snapshot.family("orders").is_none());
    /// # Ok::<(), talea::Error>(())
    /// ```
    pub fn family(&self, name: &str) -> Option<FamilySnapshot<'_>> {
        self.families().find(|family| family.name() == name)
    }

    /// The value of the counter or gauge series with exactly these labels, in any order; `None` if
    /// there is no such series, or it is a histogram. Of a summary, the quantile that is among the
    /// labels, as in a scrape. Whole numbers above 2⁵³ are rounded. Cost: linear in the family's
    /// series.
    ///
    /// ```
    /// # use talea::{Counter, Family, Labels, Opts, Registry};
    /// # #[derive(Labels)]
    /// # struct Sale { country: &'static str, gift: bool }
    /// # let registry = Registry::for_test()?;
    /// # let sales: Family<Sale, Counter> = registry.register(Opts::new("sales", "Sales."))?;
    /// sales.with(Sale { country: "pe", gift: true }).inc();
    /// let snapshot = registry.snapshot();
    /// let labels = [("gift", "true"), ("country", "pe")];
    /// assert_eq!(snapshot.value("sales_total", &labels), Some(1.0));
    /// assert_eq!(snapshot.value("sales_total", &[("gift", "true")]), None);
    /// # Ok::<(), talea::Error>(())
    /// ```
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        if self.family(name)?.kind() == Kind::Summary {
            return self.quantile(name, labels);
        }
        self.only(name, labels)?.as_f64()
    }

    /// The value that a summary shows for the quantile in the labels.
    fn quantile(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let is_quantile = |(name, _): &&(&str, &str)| *name == "quantile";
        let wanted: f64 = labels.iter().find(is_quantile)?.1.parse().ok()?;
        let others: Vec<_> = labels.iter().filter(|label| !is_quantile(label)).copied().collect();
        let mut quantiles = self.only(name, &others)?.quantiles();
        quantiles.find(|(q, _)| *q == wanted).map(|(_, value)| value)
    }

    /// The sum over all counter or gauge series of a family that carry these labels among others;
    /// `None` if there are no such series. Cost: linear in the family's series.
    ///
    /// ```
    /// # use talea::{Counter, Family, Labels, Opts, Registry};
    /// # #[derive(Labels)]
    /// # struct Sale { country: &'static str, gift: bool }
    /// # let registry = Registry::for_test()?;
    /// # let sales: Family<Sale, Counter> = registry.register(Opts::new("sales", "Sales."))?;
    /// sales.with(Sale { country: "pe", gift: true }).inc();
    /// sales.with(Sale { country: "pe", gift: false }).add(2);
    /// sales.with(Sale { country: "ch", gift: false }).add(4);
    /// let snapshot = registry.snapshot();
    /// assert_eq!(snapshot.total("sales_total", &[("country", "pe")]), Some(3.0));
    /// assert_eq!(snapshot.total("sales_total", &[]), Some(7.0));
    /// assert_eq!(snapshot.total("sales_total", &[("country", "de")]), None);
    /// # Ok::<(), talea::Error>(())
    /// ```
    pub fn total(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        self.select(name, labels)
            .filter_map(|series| series.as_f64())
            .reduce(|total, value| total + value)
    }

    /// The histogram over all series of a family that carry these labels; `None` if there are no such series.
    /// Cost: linear in the family's series.
    ///
    /// ```
    /// # use talea::{Bytes, Family, Histogram, Labels, Opts, Registry};
    /// # #[derive(Labels)]
    /// # struct Page { country: &'static str, cached: bool }
    /// # let registry = Registry::for_test()?;
    /// # let pages: Family<Page, Histogram<Bytes>> =
    /// #     registry.register(Opts::new("page", "Pages."))?;
    /// pages.with(Page { country: "pe", cached: true }).observe(100);
    /// pages.with(Page { country: "pe", cached: false }).observe(300);
    /// let snapshot = registry.snapshot();
    /// let pages = snapshot.histogram("page_bytes", &[("country", "pe")]).unwrap();
    /// assert_eq!((pages.count(), pages.sum()), (2, 400.0));
    /// # Ok::<(), talea::Error>(())
    /// ```
    pub fn histogram(&self, name: &str, labels: &[(&str, &str)]) -> Option<HistogramSnapshot> {
        self.select(name, labels)
            .filter_map(|series| match series.value() {
                Value::Histogram(histogram) => Some(histogram),
                Value::Summary(_) => Some(series.histogram()),
                _ => None,
            })
            .reduce(|mut all, one| {
                all.merge(&one);
                all
            })
    }

    /// The series of a family that carry these labels among others; empty if there is no such
    /// family. Cost: linear in the family's series.
    ///
    /// ```
    /// # use talea::{Counter, Family, Labels, Opts, Registry};
    /// # #[derive(Labels)]
    /// # struct Sale { country: &'static str, gift: bool }
    /// # let registry = Registry::for_test()?;
    /// # let sales: Family<Sale, Counter> = registry.register(Opts::new("sales", "Sales."))?;
    /// sales.with(Sale { country: "pe", gift: true }).inc();
    /// sales.with(Sale { country: "ch", gift: true }).inc();
    /// let snapshot = registry.snapshot();
    /// let gifts = snapshot.select("sales_total", &[("gift", "true")]);
    /// let countries: Vec<_> = gifts.filter_map(|series| series.label("country")).collect();
    /// assert_eq!(countries, ["pe", "ch"]);
    /// # Ok::<(), talea::Error>(())
    /// ```
    pub fn select<'a, 'l>(
        &'a self,
        name: &str,
        labels: &'l [(&'l str, &'l str)],
    ) -> impl Iterator<Item = SeriesSnapshot<'a>> + use<'a, 'l> {
        self.family(name).into_iter().flat_map(move |family| family.select(labels))
    }

    /// The series with these labels and no others.
    pub(crate) fn only(&self, name: &str, labels: &[(&str, &str)]) -> Option<SeriesSnapshot<'_>> {
        self.family(name)?.series().find(|series| {
            // A series has no label twice, so this leaves none of the wanted out.
            let found = series.labels();
            found.len() == labels.len()
                && found
                    .iter()
                    .all(|(name, value): &(&str, String)| labels.contains(&(name, value)))
        })
    }
}

impl<'a> FamilySnapshot<'a> {
    /// The series that carry these labels among others, in the order of their
    /// birth. Cost: linear in the family's series.
    ///
    /// ```
    /// # use talea::{Counter, Family, Labels, Opts, Registry};
    /// # #[derive(Labels)]
    /// # struct Sale { country: &'static str, gift: bool }
    /// # let registry = Registry::for_test()?;
    /// # let sales: Family<Sale, Counter> = registry.register(Opts::new("sales", "Sales."))?;
    /// sales.with(Sale { country: "pe", gift: true }).inc();
    /// sales.with(Sale { country: "ch", gift: false }).inc();
    /// let snapshot = registry.snapshot();
    /// let family = snapshot.family("sales_total").unwrap();
    /// assert_eq!(family.select(&[("gift", "true")]).count(), 1);
    /// assert_eq!(family.select(&[]).count(), 2);
    /// # Ok::<(), talea::Error>(())
    /// ```
    pub fn select<'l>(
        &self,
        labels: &'l [(&'l str, &'l str)],
    ) -> impl Iterator<Item = SeriesSnapshot<'a>> + use<'a, 'l> {
        self.series().filter(move |series| series.carries(labels))
    }
}

impl SeriesSnapshot<'_> {
    /// The plain value of one label; `None` if there is no such label.
    ///
    /// ```
    /// # use talea::{Counter, Family, Labels, Opts, Registry};
    /// # #[derive(Labels)]
    /// # struct Sale { country: &'static str }
    /// # let registry = Registry::for_test()?;
    /// # let sales: Family<Sale, Counter> = registry.register(Opts::new("sales", "Sales."))?;
    /// sales.with(Sale { country: "\"pe\"" }).inc();
    /// let snapshot = registry.snapshot();
    /// let series = snapshot.select("sales_total", &[]).next().unwrap();
    /// assert_eq!(series.label("country").as_deref(), Some("\"pe\""));
    /// assert_eq!(series.label("town"), None);
    /// # Ok::<(), talea::Error>(())
    /// ```
    pub fn label(&self, name: &str) -> Option<String> {
        self.labels().into_iter().find(|(found, _)| *found == name).map(|(_, value)| value)
    }

    /// Whether the series carries these labels, among others or not.
    ///
    /// ```
    /// # use talea::{Counter, Family, Labels, Opts, Registry};
    /// # #[derive(Labels)]
    /// # struct Sale { country: &'static str, gift: bool }
    /// # let registry = Registry::for_test()?;
    /// # let sales: Family<Sale, Counter> = registry.register(Opts::new("sales", "Sales."))?;
    /// sales.with(Sale { country: "pe", gift: true }).inc();
    /// let snapshot = registry.snapshot();
    /// let series = snapshot.select("sales_total", &[]).next().unwrap();
    /// assert!(series.carries(&[("country", "pe")]) && series.carries(&[]));
    /// assert!(!series.carries(&[("country", "pe"), ("gift", "false")]));
    /// # Ok::<(), talea::Error>(())
    /// ```
    pub fn carries(&self, labels: &[(&str, &str)]) -> bool {
        let found = self.labels();
        labels.iter().all(|(name, value)| found.iter().any(|(n, v)| n == name && v == value))
    }

    /// The value of a counter or a gauge; `None` for a histogram. Whole numbers
    /// above 2⁵³ are rounded.
    ///
    /// ```
    /// # use talea::{Gauge, Opts, Registry};
    /// # let registry = Registry::for_test()?;
    /// let depth: Gauge = registry.register(Opts::new("depth", "Depth."))?;
    /// depth.set(-3);
    /// let snapshot = registry.snapshot();
    /// assert_eq!(snapshot.select("depth", &[]).next().unwrap().as_f64(), Some(-3.0));
    /// # Ok::<(), talea::Error>(())
    /// ```
    pub fn as_f64(&self) -> Option<f64> {
        match self.value() {
            Value::Unsigned(n) => Some(n as f64),
            Value::Signed(n) => Some(n as f64),
            Value::Float(x) => Some(x),
            Value::Histogram(_) | Value::Summary(_) => None,
        }
    }
}

/// The name and kind, then each series in a line.
impl fmt::Debug for FamilySnapshot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name(), self.kind().as_str())?;
        self.series().try_for_each(|series| write!(f, "\n  {series:?}"))
    }
}

/// As the text format shows it; of a histogram the count and the sum.
impl fmt::Debug for SeriesSnapshot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&selector(self.family().name(), self.label_text()))?;
        match self.value() {
            Value::Unsigned(n) => write!(f, " {n}"),
            Value::Signed(n) => write!(f, " {n}"),
            Value::Float(x) => write!(f, " {}", shown(x)),
            Value::Histogram(histogram) => {
                write!(f, " count {}, sum {}", histogram.count(), shown(histogram.sum()))
            }
            Value::Summary(SummarySnapshot { quantiles, count, sum }) => {
                for (q, value) in quantiles {
                    write!(f, " {}: {},", shown(q), shown(value))?;
                }
                write!(f, " count {count}, sum {}", shown(sum))
            }
        }
    }
}

/// `name{labels}`, as the text format has it.
pub(crate) fn selector(name: &str, label_text: &str) -> String {
    match label_text {
        "" => name.to_owned(),
        labels => format!("{name}{{{labels}}}"),
    }
}

/// A float as the text format has it.
pub(crate) fn shown(x: f64) -> String {
    let mut out = Vec::new();
    expose::write_float(&mut out, x);
    String::from_utf8(out).unwrap_or_default()
}
