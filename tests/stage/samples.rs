//! The samples of a snapshot, as a scraper must have read them.

use std::collections::BTreeMap;
use std::time::UNIX_EPOCH;

use talea::{Kind, SeriesSnapshot, Snapshot, Value};

/// A sample's name and labels. A label without a value is none.
pub type Key = (String, BTreeMap<String, String>);

pub type Samples = BTreeMap<Key, f64>;

/// All samples of a snapshot; with the times at which they began to count, if the format
/// has them. Bounds are shown as [`f64`] shows them.
pub fn samples(snapshot: &Snapshot, created: bool) -> Samples {
    let mut all = Samples::new();
    for family in snapshot.families() {
        for series in family.series() {
            let labels: Vec<_> = series.labels();
            let mut put = |ending: &str, own: Option<(&str, f64)>, value: f64| {
                let name = match ending {
                    "_created" => family.name().trim_end_matches("_total"),
                    _ => family.name(),
                };
                let own = own.map(|(name, x)| (name.to_owned(), x.to_string()));
                let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
                let labels = labels.filter(|(_, value)| !value.is_empty()).chain(own).collect();
                let before = all.insert((name.to_owned() + ending, labels), value);
                assert_eq!(before, None, "{name}");
            };
            match series.value() {
                Value::Unsigned(n) => put("", None, n as f64),
                Value::Signed(n) => put("", None, n as f64),
                Value::Float(x) => put("", None, x),
                Value::Histogram(histogram) => {
                    histogram
                        .cumulative()
                        .for_each(|(le, n)| put("_bucket", Some(("le", le)), n as f64));
                    put("_count", None, histogram.count() as f64);
                    put("_sum", None, histogram.sum());
                }
                Value::Summary(summary) => {
                    for (q, value) in summary.quantiles {
                        put("", Some(("quantile", q)), value);
                    }
                    put("_count", None, summary.count as f64);
                    put("_sum", None, summary.sum);
                }
            }
            let counts = matches!(family.kind(), Kind::Counter | Kind::Histogram | Kind::Summary);
            if let Some(since) = created_seconds(&series).filter(|_| created && counts) {
                put("_created", None, since);
            }
        }
    }
    all
}

/// The nearest float to the decimal number that a scrape shows.
fn created_seconds(series: &SeriesSnapshot<'_>) -> Option<f64> {
    let since = series.created()?.duration_since(UNIX_EPOCH).ok()?;
    format!("{}.{:09}", since.as_secs(), since.subsec_nanos()).parse().ok()
}

/// A name as a scraper gets it that accepts letters, digits, `_` and `:` only.
pub fn escaped_by_underscores(samples: &Samples) -> Samples {
    let escaped = |name: &String| {
        name.chars()
            .map(|c| match c {
                _ if c.is_ascii_alphanumeric() || matches!(c, '_' | ':') => c,
                _ => '_',
            })
            .collect::<String>()
    };
    let all = samples.iter().map(|((name, labels), &value)| {
        let labels = labels.iter().map(|(name, value)| (escaped(name), value.clone()));
        ((escaped(name), labels.collect()), value)
    });
    all.collect()
}

/// Panics unless both have the same samples of the same values, to the last bit but for
/// what kind of NaN one is.
pub fn assert_same(found: &Samples, expected: &Samples) {
    let mut wrong = Vec::new();
    for (key, &value) in expected {
        match found.get(key) {
            Some(&other) if is_same(value, other) => {}
            other => wrong.push(format!("{key:?} is {value:?} and was read as {other:?}")),
        }
    }
    let more = found.iter().filter(|(key, _)| !expected.contains_key(key));
    wrong.extend(more.map(|sample| format!("{sample:?} was read and is not there")));
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(10)].join("\n")
    );
}

fn is_same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}
