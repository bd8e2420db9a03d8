//! Prometheus' HTTP API, as far as a study asks it. Source of the format: "HTTP API" in the
//! Prometheus documentation.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow, bail};
use form_urlencoded::Serializer;
use http_body_util::Full;
use hyper::Request;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HOST};
use serde::Deserialize;

use talea_load::{Keep, Protocol, Session, Target};

const ANSWERS_WITHIN: Duration = Duration::from_secs(30);

pub(super) struct Api {
    pub(super) target: Target,
    session: Session,
}

/// A series with its samples: milliseconds since 1970, and values.
pub(super) struct Series {
    labels: BTreeMap<String, String>,
    pub(super) values: Vec<(i64, f64)>,
}

#[derive(Deserialize)]
struct Answer {
    data: Option<Data>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Data {
    result: Vec<Found>,
}

#[derive(Deserialize)]
struct Found {
    #[serde(default)]
    metric: BTreeMap<String, String>,
    value: Option<(f64, String)>,
    #[serde(default)]
    values: Vec<(f64, String)>,
}

/// Prometheus' resolution of time.
fn milliseconds(seconds: f64) -> i64 {
    (seconds * 1e3).round() as i64
}

impl Series {
    pub(super) fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        self.labels.iter().map(|(name, value)| (&**name, &**value))
    }

    pub(super) fn label(&self, name: &str) -> Option<&str> {
        self.labels.get(name).map(String::as_str)
    }

    /// Its last value at or before an instant, if it was there.
    pub(super) fn at(&self, instant: i64) -> Option<f64> {
        let known = self.values.partition_point(|(at, _)| *at <= instant);
        known.checked_sub(1).map(|last| self.values[last].1)
    }
}

impl Api {
    pub(super) fn new(target: Target) -> Self {
        let protocol = Protocol::Http1 { keep_alive: true };
        Self { session: Session::new(target.clone(), protocol, ANSWERS_WITHIN), target }
    }

    /// The one number that a query finds at an instant; none where it finds none, or not a number.
    pub(super) async fn number(&mut self, query: &str, at: f64) -> Result<Option<f64>> {
        let found = self.ask("query", &[("query", query), ("time", &at.to_string())]).await?;
        let value = found.first().and_then(|found| found.value.as_ref());
        let number = value.map(|(_, text)| text.parse::<f64>()).transpose()?;
        Ok(number.filter(|number| number.is_finite()))
    }

    /// The most that a query finds at any second from the one instant to the other.
    pub(super) async fn most(&mut self, query: &str, from: f64, to: f64) -> Result<Option<f64>> {
        let (from, to) = (from.to_string(), to.to_string());
        let parameters = [("query", query), ("start", &from), ("end", &to), ("step", "1")];
        let found = self.ask("query_range", &parameters).await?;
        let values = found.iter().flat_map(|found| &found.values);
        let numbers = values.filter_map(|(_, text)| text.parse::<f64>().ok());
        Ok(numbers.filter(|number| number.is_finite()).reduce(f64::max))
    }

    /// The samples of all series that a selector means, from the one instant to the other; the first
    /// of a series that was there before is what it was at the first instant.
    pub(super) async fn raw(&mut self, selector: &str, from: f64, to: f64) -> Result<Vec<Series>> {
        let at = from.to_string();
        let before = self.ask("query", &[("query", selector), ("time", &at)]).await?;
        let mut all: Vec<Series> = Vec::new();
        for Found { metric, value, .. } in before {
            let Some((_, text)) = value else { continue };
            all.push(Series { labels: metric, values: vec![(milliseconds(from), text.parse()?)] });
        }
        for series in self.since(selector, from, to).await? {
            let later = series.values.into_iter().filter(|(at, _)| *at > milliseconds(from));
            match all.iter_mut().find(|known| known.labels == series.labels) {
                Some(known) => known.values.extend(later),
                None => all.push(Series { labels: series.labels, values: later.collect() }),
            }
        }
        Ok(all)
    }

    async fn since(&mut self, selector: &str, from: f64, to: f64) -> Result<Vec<Series>> {
        // A little longer: newer versions leave out what lies on the edge.
        let range = ((to - from) * 1e3).ceil() as i64 + 5;
        let query = format!("{selector}[{range}ms]");
        let at = (to + 0.001).to_string();
        let found = self.ask("query", &[("query", &query), ("time", &at)]).await?;
        found
            .into_iter()
            .map(|found| {
                let values = found
                    .values
                    .into_iter()
                    .map(|(at, text)| Ok((milliseconds(at), text.parse()?)))
                    .collect::<Result<_>>()?;
                Ok(Series { labels: found.metric, values })
            })
            .collect()
    }

    async fn ask(&mut self, what: &str, parameters: &[(&str, &str)]) -> Result<Vec<Found>> {
        let form = Serializer::new(String::new()).extend_pairs(parameters).finish();
        let base = self.target.path().path().trim_end_matches('/');
        let request = Request::post(format!("{base}/api/v1/{what}"))
            .header(HOST, self.target.host_header())
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Full::new(Bytes::from(form)))?;
        let target = &self.target;
        let answer = self.session.send(request, Keep::Body).await;
        let answer = answer.map_err(|trouble| anyhow!("Prometheus at {target}: {trouble}"))?;
        let query = parameters.first().map_or("", |(_, query)| query);
        let read: Answer = serde_json::from_slice(&answer.body).with_context(|| {
            format!(
                "{target} responded to {query} with {}, expected the JSON of Prometheus",
                answer.status
            )
        })?;
        match (read.data, read.error) {
            (Some(data), None) => Ok(data.result),
            (_, error) => {
                bail!("{target} refused {query}: {}", error.unwrap_or_else(|| "no data".into()))
            }
        }
    }
}

/// Seconds since 1970.
pub(super) fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_what_it_was_last() {
        let series = Series { labels: BTreeMap::new(), values: vec![(1000, 1.0), (2000, 5.0)] };
        let at = [999, 1000, 1999, 2000, 9000].map(|instant| series.at(instant));
        assert_eq!(at, [None, Some(1.0), Some(1.0), Some(5.0), Some(5.0)]);
    }
}
