//! The text formats.

use std::collections::HashMap;

use anyhow::{Context, Result, anyhow, bail};
use talea_parse::{FamilyRef, LabelsRef, MetricType, Syntax};

use super::protobuf::{
    Bucket, Histogram, Kind, LabelPair, Metric, MetricFamily, Number, Quantile, Summary,
};

/// The first bytes of what gzip compressed. Source: RFC 1952, section 2.3.1.
const GZIP: &[u8] = &[0x1F, 0x8B];

/// A page as text. An error says what it is instead.
pub fn utf8(page: &[u8]) -> Result<&str> {
    if page.starts_with(GZIP) {
        bail!(
            "it is compressed with gzip, though nothing asked for that, and a text of metrics is \
             expected: decompress the file, or have the service compress only if it is asked to"
        );
    }
    std::str::from_utf8(page).map_err(|error| {
        let valid = &page[..error.valid_up_to()];
        let line = 1 + valid.iter().filter(|&&byte| byte == b'\n').count();
        anyhow!("line {line} is not UTF-8: found the byte {:#04x}", page[valid.len()])
    })
}

pub(super) fn families(page: &[u8]) -> Result<Vec<MetricFamily>> {
    let text = utf8(page).context("the page is neither protobuf nor text")?;
    let families = talea_parse::families(text, Syntax::of_text(text));
    let families = families.context("the page is neither protobuf nor a text of metrics")?;
    Ok(families.iter().map(family).collect())
}

fn family(from: &FamilyRef<'_>) -> MetricFamily {
    let kind = match from.kind {
        MetricType::Counter => Kind::Counter,
        MetricType::Gauge | MetricType::Info | MetricType::StateSet => Kind::Gauge,
        MetricType::Histogram => Kind::Histogram,
        MetricType::GaugeHistogram => Kind::GaugeHistogram,
        MetricType::Summary => Kind::Summary,
        _ => Kind::Untyped,
    };
    // OpenMetrics names a counter without the ending that its samples have.
    let is_total = |name: &str| name.strip_suffix("_total") == Some(&from.name);
    let total = from.samples.iter().find(|sample| kind == Kind::Counter && is_total(&sample.name));
    let mut family = MetricFamily {
        name: total.map_or(&from.name, |sample| &sample.name).clone().into_owned(),
        help: from.help.clone().unwrap_or_default().into_owned(),
        kind: kind.into(),
        metric: Vec::new(),
    };
    let mut series: HashMap<Vec<LabelPair>, usize> = HashMap::new();
    for sample in &from.samples {
        let ending = sample.name.strip_prefix(&*from.name).unwrap_or_default();
        if ending == "_created" {
            continue;
        }
        let labels = labels(sample.labels, kind);
        let new = family.metric.len();
        let at = *series.entry(labels).or_insert_with_key(|labels| {
            family.metric.push(Metric { label: labels.clone(), ..Metric::default() });
            new
        });
        let metric = &mut family.metric[at];
        let number = Some(Number { value: sample.value, exemplar: None });
        match kind {
            Kind::Counter => metric.counter = number,
            Kind::Gauge => metric.gauge = number,
            Kind::Untyped => metric.untyped = number,
            Kind::Histogram => {
                let le = sample.labels.get("le").and_then(|le| le.parse().ok());
                add(metric.histogram.get_or_insert_default(), ending, le, sample.value);
            }
            Kind::Summary => {
                let quantile = sample.labels.get("quantile").and_then(|it| it.parse().ok());
                add_to(metric.summary.get_or_insert_default(), ending, quantile, sample.value);
            }
            Kind::GaugeHistogram => {}
        }
    }
    family
}

/// The labels that distinguish series.
fn labels(labels: LabelsRef<'_>, kind: Kind) -> Vec<LabelPair> {
    let own = match kind {
        Kind::Histogram | Kind::GaugeHistogram => "le",
        Kind::Summary => "quantile",
        _ => "",
    };
    let labels = labels.iter().filter(|(name, _)| name != own);
    labels
        .map(|(name, value)| LabelPair { name: name.into_owned(), value: value.into_owned() })
        .collect()
}

fn add(histogram: &mut Histogram, ending: &str, threshold: Option<f64>, value: f64) {
    match (ending, threshold) {
        ("_sum", _) => histogram.sample_sum = value,
        ("_count", _) => histogram.sample_count = value as u64,
        ("_bucket", Some(upper_bound)) => {
            let cumulative_count = value as u64;
            histogram.bucket.push(Bucket { cumulative_count, upper_bound, exemplar: None });
        }
        _ => {}
    }
}

fn add_to(summary: &mut Summary, ending: &str, quantile: Option<f64>, value: f64) {
    match (ending, quantile) {
        ("_sum", _) => summary.sample_sum = value,
        ("_count", _) => summary.sample_count = value as u64,
        ("", Some(quantile)) => summary.quantile.push(Quantile { quantile, value }),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use talea::{Bucketing, Counter, Gauge, Histogram, Opts, Registry, Seconds};

    use super::super::{ACCEPT, read};

    #[test]
    fn all_formats_read_the_same() {
        let registry = Registry::for_test().unwrap();
        let orders = registry.family::<Counter>(Opts::new("orders", "O."), &["of"]).unwrap();
        orders.with_values(&["a \"b\"\\"]).add(3);
        registry.register::<Gauge>(Opts::new("level", "L.")).unwrap().set(-2);
        let opts = Opts::new("wait_seconds", "W.").bucketing(Bucketing::Classic);
        let waits = registry.family::<Histogram<Seconds>>(opts, &["of"]).unwrap();
        (1..9).for_each(|n| waits.with_values(&["x"]).observe(Duration::from_millis(n * 100)));
        let snapshot = registry.snapshot();
        let mut pages = Vec::new();
        for accept in [ACCEPT, "text/plain;version=0.0.4", "application/openmetrics-text"] {
            let (format, escaping) = talea::Format::negotiate(accept);
            let page: Vec<u8> = snapshot.chunks(format, escaping, usize::MAX).flatten().collect();
            let mut families = read(&page).unwrap();
            families.sort_by(|one, other| one.name.cmp(&other.name));
            // Protobuf need not have the bucket of all.
            let metrics = families.iter_mut().flat_map(|family| &mut family.metric);
            for histogram in metrics.filter_map(|metric| metric.histogram.as_mut()) {
                histogram.bucket.retain(|bucket| bucket.upper_bound < f64::INFINITY);
            }
            pages.push(families);
        }
        assert_eq!(pages[0].len(), 3);
        assert_eq!(pages[0], pages[1]);
        assert_eq!(pages[0], pages[2]);
    }

    #[test]
    fn what_is_no_page_is_an_error() {
        for page in [&b"<html>"[..], b"\x05abc", &[0xFF; 40]] {
            assert!(read(page).unwrap_err().to_string().contains("neither protobuf"));
        }
    }
}
