//! Pages of several registries, beside the union of what each registry shows alone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::metrics::{self, By, Users, opts, register, registry};
use super::model::assert_protobuf_agrees;
use super::protobuf;
use talea::{
    Combine, Conflict, Count, Counter, Escaping, FloatGauge, Format, Gauge, Histogram, Info,
    LabelValue, Page, Registry, Scrapable, Scraper, Seconds, StateSet, Summary,
};
use talea_parse::{Severity, Syntax, check, families};

pub(crate) const TEXTS: [(Format, Syntax); 2] =
    [(Format::Text, Syntax::Text), (Format::OpenMetrics, Syntax::OpenMetrics)];

/// Registries by the names that distinguish them.
#[derive(Clone)]
pub(crate) struct Several {
    label: &'static str,
    pub(crate) all: Arc<Vec<(String, Registry)>>,
}

impl Several {
    pub(crate) fn new(all: impl IntoIterator<Item = (&'static str, Registry)>) -> Self {
        Self::by("region", all)
    }

    pub(crate) fn by(
        label: &'static str,
        all: impl IntoIterator<Item = (&'static str, Registry)>,
    ) -> Self {
        let all = all.into_iter().map(|(name, registry)| (name.to_owned(), registry));
        Self { label, all: Arc::new(all.collect()) }
    }

    /// The page in a format, and what is left out of it.
    pub(crate) fn page(&self, format: Format) -> (Vec<u8>, Vec<Conflict>) {
        let mut scraper = Scraper::new(self);
        scraper.format(format, Escaping::AllowUtf8);
        let whole = scraper.scrape().to_vec();
        // In pieces it is the same, and so it is the second time.
        for len in [1, 100] {
            scraper.begin(|_| true);
            let mut pieces = Vec::new();
            let mut piece = Vec::new();
            while scraper.write_some(&mut piece, len) {
                pieces.append(&mut piece);
            }
            pieces.append(&mut piece);
            assert_eq!(lossy(&pieces), lossy(&whole), "in pieces of {len}");
        }
        let conflicts = scraper.page().conflicts().to_vec();
        (whole, conflicts)
    }

    /// The page as a text that breaks no rule of its format.
    pub(crate) fn text(&self, format: Format) -> String {
        let text = String::from_utf8(self.page(format).0).unwrap();
        let syntax = TEXTS.into_iter().find(|(of, _)| *of == format).unwrap().1;
        assert_no_violation(&text, syntax);
        text
    }

    pub(crate) fn conflicts(&self) -> Vec<Conflict> {
        let [text, openmetrics] = [Format::Text, Format::OpenMetrics].map(|format| {
            self.text(format);
            self.page(format).1
        });
        assert_eq!(text, openmetrics);
        text
    }

    /// The page of what each registry shows alone.
    pub(crate) fn expected(
        &self,
        format: Format,
        is_left_out: impl Fn(&str, &str) -> bool,
    ) -> String {
        let mut merged: BTreeMap<String, (String, String)> = BTreeMap::new();
        for (region, registry) in &*self.all {
            let alone = alone(registry, format);
            for Block { name, about, samples } in blocks(&alone, format) {
                if is_left_out(region, &name) {
                    continue;
                }
                let (_, all) = merged.entry(name).or_insert_with(|| (about, String::new()));
                for line in samples {
                    *all += &with_label(line, self.label, region);
                    all.push('\n');
                }
            }
        }
        let blocks = merged.into_values().map(|(about, samples)| about + &samples);
        let end = if format == Format::OpenMetrics { "# EOF\n" } else { "" };
        blocks.collect::<String>() + end
    }
}

/// A sample: its name, its labels in their order, its value.
pub(crate) type Sample = (String, Vec<(String, String)>, String);

/// The samples of a text in any order, without those that are left out.
fn samples(text: &str, syntax: Syntax, of: Option<(&str, &str)>) -> Vec<Sample> {
    let all = families(text, syntax).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let samples = all.iter().flat_map(|family| &family.samples).map(|sample| {
        let own = sample.labels.iter().map(|(name, value)| match of {
            Some((label, _)) if name == label => (format!("exported_{name}"), value.into_owned()),
            _ => (name.into_owned(), value.into_owned()),
        });
        let added = of.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut labels: Vec<_> = own.chain(added).collect();
        labels.sort();
        (sample.name.clone().into_owned(), labels, format!("{:?}", sample.value))
    });
    let mut samples: Vec<_> = samples.collect();
    samples.sort();
    samples
}

/// Checks that the page has all samples of its parts and no others, in each format, and that it
/// breaks no rule of the format; returns the conflicts.
pub(crate) fn assert_nothing_is_lost(several: &Several) -> Vec<Conflict> {
    for (format, syntax) in TEXTS {
        let text = several.text(format);
        let mut expected: Vec<Sample> = several
            .all
            .iter()
            .flat_map(|(part, registry): &(String, Registry)| {
                samples(&alone(registry, format), syntax, Some((several.label, part)))
            })
            .collect();
        expected.sort();
        assert_eq!(samples(&text, syntax, None), expected, "{text}");
        expected.dedup_by(|one, other| (&one.0, &one.1) == (&other.0, &other.1));
        assert_eq!(samples(&text, syntax, None).len(), expected.len(), "{text}");
    }
    let series = |page: &[u8], of: Option<&str>| {
        let mut all = Vec::new();
        for family in protobuf::families(page) {
            for mut metric in family.metric {
                for label in
                    metric.label.iter_mut().filter(|it| of.is_some() && it.name == several.label)
                {
                    label.name.insert_str(0, "exported_");
                }
                if let Some(value) = of {
                    let name = several.label.to_owned();
                    metric.label.insert(0, protobuf::LabelPair { name, value: value.to_owned() });
                }
                all.push(format!("{} {:?} {metric:?}", family.name, family.kind));
            }
        }
        all.sort();
        all
    };
    let mut expected: Vec<String> = several
        .all
        .iter()
        .flat_map(|(part, registry): &(String, Registry)| {
            series(&scraped(registry, Format::Protobuf, Escaping::AllowUtf8), Some(part))
        })
        .collect();
    expected.sort();
    assert_eq!(series(&several.page(Format::Protobuf).0, None), expected);
    assert_protobuf_agrees(several);
    several.conflicts()
}

impl Scrapable for Several {
    fn fill(&self, page: &mut Page, wants: &dyn Fn(&str) -> bool) {
        for (name, registry) in &*self.all {
            page.add(Some((self.label, name)), |snapshot| registry.snapshot_into(snapshot, wants));
        }
    }
}

pub(crate) fn lossy(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

pub(crate) fn assert_no_violation(text: &str, syntax: Syntax) {
    let mut faults = check(text, syntax);
    faults.retain(|finding| finding.severity == Severity::Violation);
    assert!(faults.is_empty(), "{faults:?}\n{text}");
    families(text, syntax).unwrap_or_else(|error| panic!("{error}\n{text}"));
}

/// A page in a format, with names as they are.
pub(crate) fn alone<S: Scrapable>(of: &S, format: Format) -> String {
    escaped(of, format, Escaping::AllowUtf8)
}

pub(crate) fn escaped<S: Scrapable>(of: &S, format: Format, escaping: Escaping) -> String {
    String::from_utf8(scraped(of, format, escaping)).unwrap()
}

pub(crate) fn scraped<S: Scrapable>(of: &S, format: Format, escaping: Escaping) -> Vec<u8> {
    let mut scraper = Scraper::new(of);
    scraper.format(format, escaping);
    scraper.scrape().to_vec()
}

/// The lines of one family in a text.
pub(crate) struct Block<'a> {
    /// As samples have it.
    name: String,
    about: String,
    samples: Vec<&'a str>,
}

pub(crate) fn blocks(text: &str, format: Format) -> Vec<Block<'_>> {
    let mut blocks: Vec<Block<'_>> = Vec::new();
    for line in text.lines().filter(|line| *line != "# EOF") {
        let mut words = line.splitn(4, ' ');
        if words.next() != Some("#") {
            blocks.last_mut().unwrap().samples.push(line);
            continue;
        }
        let (word, name) = (words.next().unwrap(), words.next().unwrap().to_owned());
        let first = if format == Format::OpenMetrics { "TYPE" } else { "HELP" };
        if word == first {
            let ending = match (format, words.next()) {
                (Format::OpenMetrics, Some("counter")) => "_total",
                (Format::OpenMetrics, Some("info")) => "_info",
                _ => "",
            };
            let name = format!("{name}{ending}");
            blocks.push(Block { name, about: String::new(), samples: Vec::new() });
        }
        blocks.last_mut().unwrap().about += &format!("{line}\n");
    }
    blocks
}

/// The line of a sample with another label before its own.
pub(crate) fn with_label(line: &str, name: &str, value: &str) -> String {
    let at = line.find(['{', ' ']).unwrap();
    let (metric, rest) = line.split_at(at);
    match rest.strip_prefix('{') {
        Some(rest) => format!("{metric}{{{name}=\"{value}\",{rest}"),
        None => format!("{metric}{{{name}=\"{value}\"}}{rest}"),
    }
}

#[derive(LabelValue)]
#[allow(dead_code)]
pub(crate) enum Circuit {
    Closed,
    Open,
}

/// A registry with a metric of each kind, whose values identify it.
pub(crate) fn one_of_each(n: u64) -> Registry {
    let registry = registry();
    let calls: Users<Counter> = registry.register(opts("calls").limit(2)).unwrap();
    calls.with(By { user: "a\"b\\c\nd" }).add(n);
    let trace = format!("0af{n}");
    calls.with(By { user: "bob" }).add_with_exemplar(2, &[("trace_id", &trace)]).unwrap();
    // There is no room for these.
    (0..n).for_each(|n| calls.with(By { user: &n.to_string() }).inc());
    register::<Counter>(&registry, "all").add(100 * n);
    let depth = opts("depth").combine(Combine::Each);
    registry.register::<Gauge>(depth).unwrap().set(-(n as i64));
    register::<FloatGauge>(&registry, "fill_ratio").set(1.0 / (n + 1) as f64);
    let times = opts("wait").buckets(&[0.1, 1.0]).quantiles(&[0.5, 0.99]);
    let wait: Users<Histogram<Seconds>> = registry.register(times).unwrap();
    let ann = wait.with(By { user: "ann" });
    ann.observe(Duration::from_millis(50 * n));
    ann.observe_with_exemplar(Duration::from_secs(n), &[("trace_id", "beef")]).unwrap();
    let bare = opts("bare").buckets(&[1.0, 10.0]);
    registry.register::<Histogram<Count>>(bare).unwrap().observe(n);
    let size = opts("size").quantiles(&[0.5, 1.0]);
    registry.register::<Summary<Count>>(size).unwrap().observe(7 * n);
    register::<Info<By<'static>>>(&registry, "build").set(By { user: "ci" });
    let state = if n % 2 == 0 { Circuit::Open } else { Circuit::Closed };
    register::<StateSet<Circuit>>(&registry, "circuit").set(state);
    registry
}

pub(crate) fn counter(name: &str, value: u64) -> Registry {
    with_counter(registry(), name, value)
}

pub(crate) fn with_counter(registry: Registry, name: &str, value: u64) -> Registry {
    register::<Counter>(&registry, name).add(value);
    registry
}

pub(crate) fn gauge(name: &str, value: i64) -> Registry {
    let (registry, gauge) = metrics::alone::<Gauge>(opts(name));
    gauge.set(value);
    registry
}

/// Registries as parts that may be damaged.
#[derive(Clone)]
pub(crate) struct Foreign(pub(crate) [(&'static str, Registry); 2]);

impl Scrapable for Foreign {
    fn fill(&self, page: &mut Page, wants: &dyn Fn(&str) -> bool) {
        for (name, registry) in &self.0 {
            let Ok(_) = page.try_add(Some(("region", name)), |snapshot: &mut talea::Snapshot| {
                registry.snapshot_into(snapshot, wants);
                Ok::<_, std::convert::Infallible>(())
            });
        }
    }
}
