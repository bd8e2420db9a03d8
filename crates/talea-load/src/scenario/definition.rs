//! A scenario: its steps, its variables, the names of the service's metrics.

use std::ops::RangeInclusive;
use std::time::Duration;

use hyper::header::{HeaderMap, HeaderName};
use hyper::{Method, StatusCode};

use super::names::Names;
use super::template::Template;
use super::value::Variable;

/// The requests of one iteration.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name in reports.
    pub name: String,
    /// The variables, by their places.
    pub variables: Vec<Variable>,
    /// The requests, in their order.
    pub steps: Vec<Step>,
    /// The names of the metrics of the service.
    pub metrics: Metrics,
}

/// The settings of a scenario for the names of the service's metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metrics {
    /// The built-in names that they begin with.
    pub base: String,
    /// The names that differ: keys and metrics.
    pub overrides: Vec<(String, String)>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self { base: "talea".to_owned(), overrides: Vec::new() }
    }
}

impl Metrics {
    /// The names, which begin with those of another base if one is given.
    /// Fails when there is no such base.
    pub fn names(&self, base: Option<&str>) -> Result<Names, String> {
        let mut names = Names::built_in(base.unwrap_or(&self.base))?;
        for (key, metric) in &self.overrides {
            names.set(key, metric)?;
        }
        Ok(names)
    }
}

/// One request of a scenario.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its name in reports.
    pub name: String,
    /// Its method.
    pub method: Method,
    /// Its path and query, behind those of the target.
    pub path: Template,
    /// Headers that are the same each time.
    pub headers: HeaderMap,
    /// Headers with variables.
    pub filled_headers: Vec<(HeaderName, Template)>,
    /// Its body, if it has one.
    pub body: Option<Template>,
    /// The statuses that say that it was done.
    pub expected: ExpectedStatus,
    /// Parts of the answer that later requests use.
    pub captures: Vec<Capture>,
    /// How long the client thinks after the answer, at least and at most.
    pub think: Option<RangeInclusive<Duration>>,
}

#[derive(Clone, Debug)]
pub struct Capture {
    pub variable: usize,
    /// Where it stands in the answer's JSON, as a JSON pointer (RFC 6901).
    pub pointer: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpectedStatus {
    AnySuccess,
    OneOf(Vec<StatusCode>),
}

impl ExpectedStatus {
    /// Whether a status is among them.
    pub fn includes(&self, status: StatusCode) -> bool {
        match self {
            Self::AnySuccess => status.is_success(),
            Self::OneOf(statuses) => statuses.contains(&status),
        }
    }
}

impl std::fmt::Display for ExpectedStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AnySuccess => f.write_str("200 to 299"),
            Self::OneOf(statuses) => {
                let texts: Vec<String> = statuses.iter().copied().map(status_text).collect();
                f.write_str(&texts.join(" or "))
            }
        }
    }
}

/// Its number and its name, such as `404 Not Found`; 520 has none.
pub(crate) fn status_text(status: StatusCode) -> String {
    let name = status.canonical_reason().unwrap_or_default();
    format!("{} {name}", status.as_u16()).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_without_a_name_is_shown_by_its_number() {
        let statuses = [200, 520].map(|code| StatusCode::from_u16(code).unwrap());
        assert_eq!(ExpectedStatus::OneOf(statuses.to_vec()).to_string(), "200 OK or 520");
    }
}
