//! Summaries as numbers, which all readers of families know.

use super::protobuf::{Kind, LabelPair, Metric, MetricFamily, Number, Summary};

/// A family as it is; a summary as its quantiles, and beside it the counters of its observations and of
/// their sum, as Prometheus stores it.
pub(super) fn samples(mut family: MetricFamily) -> Vec<MetricFamily> {
    if family.kind != Kind::Summary as i32 {
        return vec![family];
    }
    let of = |ending: &str| MetricFamily {
        name: format!("{}{ending}", family.name),
        help: family.help.clone(),
        kind: Kind::Counter.into(),
        metric: Vec::new(),
    };
    let (mut counts, mut sums) = (of("_count"), of("_sum"));
    let mut quantiles = Vec::new();
    for Metric { label, summary, .. } in std::mem::take(&mut family.metric) {
        let Some(Summary { sample_count, sample_sum, quantile }) = summary else { continue };
        for (family, value) in [(&mut counts, sample_count as f64), (&mut sums, sample_sum)] {
            let counter = Some(Number { value, exemplar: None });
            family.metric.push(Metric { label: label.clone(), counter, ..Metric::default() });
        }
        for found in quantile {
            let mut label = label.clone();
            let (name, value) = ("quantile".to_owned(), found.quantile.to_string());
            label.push(LabelPair { name, value });
            let gauge = Some(Number { value: found.value, exemplar: None });
            quantiles.push(Metric { label, gauge, ..Metric::default() });
        }
    }
    family.metric = quantiles;
    vec![family, counts, sums]
}

#[cfg(test)]
mod tests {
    use talea::{Count, Escaping, Format, Opts, Registry};

    use super::super::read;
    use super::*;

    #[test]
    fn the_values_of_a_summary_are_read_from_each_format() {
        let registry = Registry::for_test().unwrap();
        let opts = Opts::new("size", "S.").quantiles(&[0.5, 1.0]);
        let sizes = registry.family::<talea::Summary<Count>>(opts, &["of"]).unwrap();
        sizes.with_values(&["a"]).observe(7);
        sizes.with_values(&["a"]).observe(7);
        let mut scraper = registry.scraper();
        for format in [Format::Protobuf, Format::Text, Format::OpenMetrics] {
            scraper.format(format, Escaping::default());
            let families = read(scraper.scrape()).unwrap();
            let short = |family: &MetricFamily| {
                let values = family.metric.iter().map(|metric| {
                    let labels: Vec<String> =
                        metric.label.iter().map(|it| format!("{}={}", it.name, it.value)).collect();
                    (labels.join(" "), metric.value().unwrap().round())
                });
                (family.name.clone(), family.kind, values.collect::<Vec<_>>())
            };
            let found: Vec<_> = families.iter().map(short).collect();
            let value = |labels: &str, value| (labels.to_owned(), value);
            let counter = Kind::Counter as i32;
            let quantiles = vec![value("of=a quantile=0.5", 7.0), value("of=a quantile=1", 7.0)];
            let expected = [
                ("size".to_owned(), Kind::Summary as i32, quantiles),
                ("size_count".to_owned(), counter, vec![value("of=a", 2.0)]),
                ("size_sum".to_owned(), counter, vec![value("of=a", 14.0)]),
            ];
            assert_eq!(found, expected, "{format:?}");
        }
    }
}
