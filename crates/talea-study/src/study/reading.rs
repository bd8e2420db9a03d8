//! The values that a study reads from the service's metrics.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use talea_load::scenario::{Names, Quantity, Selector};
use talea_parse::Sample;

use talea_view::families::Durations;

/// The service's numbers at one instant.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Reading {
    /// By [`Quantity::ALL`]; none where the service says nothing. Of the durations the count.
    values: [Option<f64>; Quantity::ALL.len()],
    /// Requests by how long they took.
    pub durations: Durations,
    /// Each series of the counters, of the durations and of the times of starts. One that is no
    /// histogram has a count alone.
    pub(super) series: BTreeMap<SeriesKey, Durations>,
}

/// A quantity, and the labels of one of its series in their order.
pub(super) type SeriesKey = (Quantity, Vec<(String, String)>);

/// The kinds of samples that are read.
#[derive(Clone, Copy)]
pub(super) enum Column {
    /// Of any quantity but the durations.
    Value(Quantity),
    /// The parts of the histogram of durations.
    Count,
    Sum,
    AtMost(f64),
}

impl Reading {
    /// Reads the text exposition format; a quantity is the sum over all series that its name means,
    /// a high-water mark the largest of them.
    /// Fails when the text cannot be parsed.
    pub(crate) fn from_text(text: &str, names: &Names) -> Result<Self> {
        let samples = talea_parse::text(text).context(
            "the metrics are not in the Prometheus text \
            format",
        )?;
        let mut reading = Self::default();
        let mut add = |selector: &Selector, column: &dyn Fn(&Sample) -> Option<Column>| {
            let meant = samples.iter().filter(|it| selector.selects(&it.name, &it.labels));
            for (sample, column) in meant.filter_map(|it| Some((it, column(it)?))) {
                let labels = sample.labels.iter().map(|(name, value)| (&**name, &**value));
                reading.add(column, labels, sample.value, names.seconds());
            }
        };
        for (quantity, selector) in names.all() {
            if quantity != Quantity::Duration {
                add(selector, &|_| Some(Column::Value(quantity)));
                continue;
            }
            add(&selector.ending("_count"), &|_| Some(Column::Count));
            add(&selector.ending("_sum"), &|_| Some(Column::Sum));
            add(&selector.ending("_bucket"), &|sample| {
                let label = sample.labels.iter().find(|(name, _)| name == "le");
                label.and_then(|(_, text)| text.parse().ok()).map(Column::AtMost)
            });
        }
        Ok(reading)
    }

    /// Adds a sample of a series. Durations are in a unit of so many seconds.
    pub(super) fn add<'a>(
        &mut self,
        column: Column,
        labels: impl Iterator<Item = (&'a str, &'a str)>,
        value: f64,
        seconds: f64,
    ) {
        let quantity = match column {
            Column::Value(quantity) => quantity,
            Column::Count | Column::Sum | Column::AtMost(_) => Quantity::Duration,
        };
        if let Column::Value(_) | Column::Count = column {
            let known = &mut self.values[quantity as usize];
            *known = Some(known.map_or(value, |known| quantity.together(known, value)));
        }
        if !is_followed(quantity) {
            return;
        }
        let labels = labels.filter(|(name, _)| !["__name__", "le"].contains(name));
        let mut labels: Vec<_> =
            labels.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        labels.sort_unstable();
        let series = self.series.entry((quantity, labels)).or_default();
        match column {
            Column::Value(_) => series.count += value,
            Column::Count => {
                self.durations.count += value;
                series.count += value;
            }
            Column::Sum => {
                self.durations.sum += value * seconds;
                series.sum += value * seconds;
            }
            Column::AtMost(threshold) if value.is_finite() => {
                self.durations.add(threshold * seconds, value);
                series.add(threshold * seconds, value);
            }
            Column::AtMost(_) => {}
        }
    }

    /// A quantity, if the service reports it. A value that is no finite number says nothing.
    pub(crate) fn get(&self, quantity: Quantity) -> Option<f64> {
        self.values[quantity as usize].filter(|value| value.is_finite())
    }

    /// Sets a quantity other than the durations, as if it had a single series.
    #[cfg(test)]
    pub(crate) fn set(&mut self, quantity: Quantity, value: Option<f64>) {
        self.values[quantity as usize] = None;
        self.series.retain(|(of, _), _| *of != quantity);
        if let Some(value) = value {
            self.add(Column::Value(quantity), std::iter::empty(), value, 1.0);
        }
    }

    /// The metrics that are named for the service, and that it does not report.
    pub(crate) fn missing(&self, names: &Names) -> Vec<String> {
        let missing = names.all().filter(|(quantity, _)| self.get(*quantity).is_none());
        missing.map(|(_, selector)| selector.to_string()).collect()
    }
}

/// Whether each series of it is followed by itself from one reading to the next.
fn is_followed(quantity: Quantity) -> bool {
    use Quantity::{CpuSeconds, Duration, Requests, StartTime, TasksSpawned};
    matches!(quantity, Requests | Duration | TasksSpawned | CpuSeconds | StartTime)
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_view::families::Between;

    const TEXT: &str = r#"# TYPE http_requests_total counter
http_requests_total{method="GET",route="/api/items",status="2xx"} 40
http_requests_total{method="GET",route="/api/items",status="5xx"} 2
http_request_duration_seconds_bucket{route="/a",le="0.1"} 10
http_request_duration_seconds_bucket{route="/a",le="1"} 20
http_request_duration_seconds_bucket{route="/a",le="+Inf"} 21
http_request_duration_seconds_bucket{route="/b",le="0.1"} 11
http_request_duration_seconds_bucket{route="/b",le="1"} 21
http_request_duration_seconds_bucket{route="/b",le="+Inf"} 21
http_request_duration_seconds_sum{route="/a"} 1.5
http_request_duration_seconds_count{route="/a"} 21
http_request_duration_seconds_count{route="/b"} 21
server_tasks_alive 7
server_tasks_alive_peak 12
process_cpu_seconds_total 0.25
"#;

    fn talea() -> Names {
        Names::built_in("talea").unwrap()
    }

    #[test]
    fn requests_are_summed_over_routes_and_statuses() {
        let reading = Reading::from_text(TEXT, &talea()).unwrap();
        assert_eq!(reading.get(Quantity::Requests), Some(42.0));
        assert_eq!((reading.durations.sum, reading.durations.count), (1.5, 42.0));
        assert_eq!(reading.durations.below, [(0.1, 21.0), (1.0, 41.0), (f64::INFINITY, 42.0)]);
        assert_eq!(reading.get(Quantity::TasksPeak), Some(12.0));
        assert_eq!(reading.get(Quantity::CpuSeconds), Some(0.25));
    }

    #[test]
    fn high_water_marks_are_not_added_up() {
        let text = r#"db_client_connection_pending_requests{pool_name="a"} 3
db_client_connection_pending_requests{pool_name="b"} 4
db_client_connection_pending_requests_peak{pool_name="a"} 30
db_client_connection_pending_requests_peak{pool_name="b"} 40
"#;
        let reading = Reading::from_text(text, &talea()).unwrap();
        assert_eq!(reading.get(Quantity::PoolPending), Some(7.0));
        assert_eq!(reading.get(Quantity::PoolPendingPeak), Some(40.0));
    }

    #[test]
    fn a_metric_that_the_service_does_not_report_is_missing_rather_than_0() {
        let reading = Reading::from_text(TEXT, &talea()).unwrap();
        assert_eq!(reading.get(Quantity::Ready), None);
        let missing = reading.missing(&talea());
        assert!(missing.contains(&"server_tasks_ready".to_owned()), "{missing:?}");
        assert!(!missing.contains(&"http_requests_total".to_owned()), "{missing:?}");
    }

    #[test]
    fn milliseconds_are_recognised_by_the_name() {
        let text = "cowboy_request_duration_milliseconds_count 2\n\
                    cowboy_request_duration_milliseconds_sum 500\n\
                    cowboy_request_duration_milliseconds_bucket{le=\"100\"} 1\n\
                    cowboy_request_duration_milliseconds_bucket{le=\"+Inf\"} 2\n";
        let reading = Reading::from_text(text, &Names::built_in("phoenix").unwrap()).unwrap();
        assert_eq!(reading.get(Quantity::Requests), Some(2.0));
        assert_eq!(reading.durations.mean_ms(), Some(250.0));
        assert_eq!(reading.durations.below[0], (0.1, 1.0));
    }

    #[test]
    fn a_quantile_lies_between_two_thresholds() {
        let reading = Reading::from_text(TEXT, &talea()).unwrap();
        let between = |low, high| Some(Between { low, high });
        // The 21st of 42 is the last of the first bucket.
        assert_eq!(reading.durations.quantile_ms(0.5), between(0.0, Some(100.0)));
        assert_eq!(reading.durations.quantile_ms(0.75), between(100.0, Some(1000.0)));
        assert_eq!(reading.durations.quantile_ms(1.0), between(1000.0, None));
        assert_eq!(Durations::default().quantile_ms(0.5), None);
    }

    #[test]
    fn a_value_that_is_no_number_is_missing() {
        for value in ["NaN", "+Inf", "-Inf"] {
            let text = format!(
                "http_requests_total{{a=\"1\"}} 7\nhttp_requests_total{{a=\"2\"}} {value}\n\
                 server_tasks_alive {value}\nhttp_request_duration_seconds_sum {value}\n\
                 http_request_duration_seconds_count 2\n\
                 http_request_duration_seconds_bucket{{le=\"1\"}} {value}\n\
                 http_request_duration_seconds_bucket{{le=\"+Inf\"}} 2\n"
            );
            let reading = Reading::from_text(&text, &talea()).unwrap();
            assert_eq!(reading.get(Quantity::Requests), None, "{value}");
            assert_eq!(reading.get(Quantity::Tasks), None, "{value}");
            assert_eq!((reading.durations.count, reading.durations.mean_ms()), (2.0, None));
            assert_eq!(reading.durations.below, [(f64::INFINITY, 2.0)]);
        }
    }

    #[test]
    fn a_text_that_is_not_metrics_is_refused() {
        assert!(Reading::from_text("<html>", &talea()).is_err());
    }
}
