//! Thresholds, and quantiles from their counts.

use anyhow::Result;

/// The thresholds of OpenTelemetry's `http.server.request.duration`.
pub(crate) const THRESHOLDS: [f64; 14] =
    [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];

/// A quantile as Prometheus' `histogram_quantile` computes it, from the number of observations that
/// are at most each threshold.
pub(crate) fn quantile(at_most: &[(f64, u64)], q: f64) -> Option<f64> {
    let rank = q * at_most.last()?.1 as f64;
    let at = at_most.iter().position(|&(_, count)| count as f64 >= rank)?;
    let (upper, count) = at_most[at];
    let (lower, before) = at.checked_sub(1).map_or((0.0, 0), |below| at_most[below]);
    // Above the last threshold nothing is known.
    let inside = if upper.is_finite() { upper - lower } else { 0.0 };
    Some(lower + inside * (rank - before as f64) / (count - before).max(1) as f64)
}

/// A quantile of one series in the text of a scrape.
pub(crate) fn quantile_in_text(
    text: &str,
    name: &str,
    labels: &[(&str, &str)],
    q: f64,
) -> Result<Option<f64>> {
    let name = format!("{name}_bucket");
    let mut at_most = Vec::new();
    for sample in talea_parse::text(text)? {
        let label = |name: &str| sample.labels.iter().find(|(label, _)| label == name);
        let is = |&(name, value): &(&str, &str)| label(name).is_some_and(|(_, is)| is == value);
        if let (true, true, Some((_, le))) =
            (sample.name == name, labels.iter().all(is), label("le"))
        {
            at_most.push((le.parse()?, sample.value as u64));
        }
    }
    Ok(quantile(&at_most, q))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_lies_within_its_bucket() {
        let at_most = [(1.0, 10), (2.0, 30), (f64::INFINITY, 40)];
        let found = [0.125, 0.25, 0.5, 0.75, 0.9].map(|q| quantile(&at_most, q));
        assert_eq!(found, [0.5, 1.0, 1.5, 2.0, 2.0].map(Some));
        assert_eq!(quantile(&[], 0.5), None);
    }
}
