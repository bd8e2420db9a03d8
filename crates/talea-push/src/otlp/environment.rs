//! The variables of OpenTelemetry's specification, "OTLP exporter configuration".

use std::time::Duration;

use percent_encoding::percent_decode_str;

use crate::config::{Config, Temporality};
use crate::error::Error;

/// A protocol of OTLP by its name: how its configuration is made of a URL, and by default.
type Protocol = (fn(&str) -> Result<Config, Error>, &'static str);

const ENDPOINT: &str = "http://localhost:4318";
#[cfg(feature = "grpc")]
const GRPC_ENDPOINT: &str = "http://localhost:4317";

impl Config {
    /// OpenTelemetry's protocol, as the variables `OTEL_EXPORTER_OTLP_ENDPOINT`, `…_PROTOCOL` (`http/protobuf`, and `grpc`
    /// with the feature of that name), `…_HEADERS`, `…_TIMEOUT`, `…_CERTIFICATE`, `…_CLIENT_CERTIFICATE` and `…_CLIENT_KEY`, those with `…_METRICS_…` before
    /// them, `OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE` (`cumulative`, `delta`), `OTEL_METRIC_EXPORT_INTERVAL`, `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` of this process
    /// describe it.
    ///
    /// # Errors
    /// A variable has a value that cannot be used, or asks for another protocol or temporality.
    pub fn otlp_from_env() -> Result<Self, Error> {
        from_environment(|name| std::env::var(name).ok())
    }
}

/// The configuration that variables describe; `variable` finds one by its name. For each, the one for metrics
/// goes before the one for all signals. An empty one is the same as no variable.
fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Config, Error> {
    let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
    let of_otlp = |name: &str| {
        let for_metrics = variable(&format!("OTEL_EXPORTER_OTLP_METRICS_{name}"));
        for_metrics.or_else(|| variable(&format!("OTEL_EXPORTER_OTLP_{name}")))
    };
    let protocol = of_otlp("PROTOCOL");
    let (new, endpoint) = protocol_of(protocol.as_deref().unwrap_or(HTTP))?;
    let base = variable("OTEL_EXPORTER_OTLP_ENDPOINT");
    let base = base.as_deref().unwrap_or(endpoint).trim_end_matches('/');
    // The endpoint of all signals is a base, the one of metrics is the URL itself. gRPC has no paths.
    let path = if endpoint == ENDPOINT { "/v1/metrics" } else { "" };
    let url = variable("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT");
    let mut config = new(&url.unwrap_or_else(|| format!("{base}{path}")))?;
    if let Some(preference) = variable("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE") {
        config = config.temporality(temporality_of(&preference)?);
    }
    for (name, value) in pairs(&of_otlp("HEADERS").unwrap_or_default()) {
        config = config.header(&name, &value)?;
    }
    if let Some(timeout) = millis("OTEL_EXPORTER_OTLP_TIMEOUT", of_otlp("TIMEOUT"))? {
        config = config.timeout(timeout);
    }
    let interval = variable("OTEL_METRIC_EXPORT_INTERVAL");
    let interval = millis("OTEL_METRIC_EXPORT_INTERVAL", interval)?;
    config = config.interval(interval.unwrap_or(Duration::from_secs(60)));
    if let Some(path) = of_otlp("CERTIFICATE") {
        config = config.ca_file(path);
    }
    if let (Some(certificate), Some(key)) = (of_otlp("CLIENT_CERTIFICATE"), of_otlp("CLIENT_KEY")) {
        config = config.client_certificate(certificate, key);
    }
    let service = variable("OTEL_SERVICE_NAME");
    let attributes = pairs(&variable("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default());
    let others = attributes.into_iter();
    let others = others.filter(|(name, _)| service.is_none() || name != "service.name");
    for (name, value) in others {
        config = config.label(name, value);
    }
    if let Some(service) = service {
        config = config.label("service.name", service);
    }
    Ok(config)
}

const HTTP: &str = "http/protobuf";

fn protocol_of(name: &str) -> Result<Protocol, Error> {
    match name {
        HTTP => Ok((Config::otlp, ENDPOINT)),
        #[cfg(feature = "grpc")]
        "grpc" => Ok((Config::otlp_grpc, GRPC_ENDPOINT)),
        other => {
            let expected = match cfg!(feature = "grpc") {
                true => "\"http/protobuf\" or \"grpc\"",
                false => "\"http/protobuf\", or \"grpc\" with the feature of that name",
            };
            Err(Error::Environment(format!("found the protocol {other:?}, expected {expected}")))
        }
    }
}

fn temporality_of(preference: &str) -> Result<Temporality, Error> {
    match preference.to_ascii_lowercase().as_str() {
        "cumulative" => Ok(Temporality::Cumulative),
        "delta" => Ok(Temporality::Delta),
        _ => {
            let expected = "expected \"cumulative\" or \"delta\"";
            Err(Error::Environment(format!("found the temporality {preference:?}, {expected}")))
        }
    }
}

/// Names and values as W3C's baggage has them: `a=b,c=d`, the values with percent signs.
fn pairs(text: &str) -> Vec<(String, String)> {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    let decoded = |text: &str| percent_decode_str(text.trim()).decode_utf8_lossy().into_owned();
    pairs.map(|(name, value)| (decoded(name), decoded(value))).collect()
}

fn millis(name: &str, value: Option<String>) -> Result<Option<Duration>, Error> {
    let Some(value) = value else { return Ok(None) };
    match value.trim().parse() {
        Ok(millis) => Ok(Some(Duration::from_millis(millis))),
        Err(_) => {
            let reason = format!("found {value:?} in {name}, expected whole milliseconds");
            Err(Error::Environment(reason))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(variables: &[(&str, &str)]) -> Result<Config, Error> {
        from_environment(|name| {
            let found = variables.iter().find(|(known, _)| *known == name)?;
            Some(found.1.to_owned())
        })
    }

    #[test]
    fn endpoints_are_found_as_the_specification_says() {
        const ALL: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
        const METRICS: &str = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT";
        for (variables, expected) in [
            (&[][..], "http://localhost:4318/v1/metrics"),
            (&[(ALL, "")], "http://localhost:4318/v1/metrics"),
            (&[(ALL, "https://a.example")], "https://a.example/v1/metrics"),
            (&[(ALL, "http://a.example:1/b/")], "http://a.example:1/b/v1/metrics"),
            (&[(ALL, "http://a.example"), (METRICS, "http://b.example/c")], "http://b.example/c"),
            (&[(METRICS, "http://b.example/")], "http://b.example/"),
        ] {
            assert_eq!(config(variables).unwrap().url.to_string(), expected, "{variables:?}");
        }
    }

    #[cfg(feature = "grpc")]
    #[test]
    fn grpc_has_a_port_of_its_own_and_no_path() {
        const PROTOCOL: (&str, &str) = ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
        const ALL: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
        const METRICS: &str = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT";
        for (variables, expected) in [
            (&[PROTOCOL][..], Some("http://localhost:4317/")),
            (&[PROTOCOL, (ALL, "https://a.example/")], Some("https://a.example/")),
            (&[PROTOCOL, (METRICS, "http://a.example:1")], Some("http://a.example:1/")),
            (&[PROTOCOL, (METRICS, "http://a.example/v1/metrics")], None),
        ] {
            let found = config(variables).ok().map(|config| config.url.to_string());
            assert_eq!(found.as_deref(), expected, "{variables:?}");
        }
    }

    #[test]
    fn deltas_are_a_choice() {
        const NAME: &str = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE";
        for (value, expected) in [
            ("", Temporality::Cumulative),
            ("Cumulative", Temporality::Cumulative),
            ("DELTA", Temporality::Delta),
        ] {
            assert_eq!(config(&[(NAME, value)]).unwrap().temporality, expected, "{value}");
        }
    }

    #[test]
    fn variables_for_metrics_go_before_those_for_all() {
        let config = config(&[
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-a=1"),
            ("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "x-b = two%20words ,x-c=3"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "500"),
            ("OTEL_METRIC_EXPORT_INTERVAL", "1500"),
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem"),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=hidden,deployment=a%2Cb"),
            ("OTEL_SERVICE_NAME", "shop"),
        ])
        .unwrap();
        let headers: Vec<_> =
            config.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        assert_eq!(headers, [("x-b", &b"two words"[..]), ("x-c", b"3")]);
        let millis = Duration::from_millis;
        assert_eq!((config.timeout, config.interval), (millis(500), millis(1_500)));
        assert_eq!(config.ca_file.as_deref(), Some("/ca.pem".as_ref()));
        let labels: Vec<_> =
            config.labels.iter().map(|label| (&*label.name, &*label.value)).collect();
        assert_eq!(labels, [("deployment", "a,b"), ("service.name", "shop")]);
    }

    #[test]
    fn what_is_not_supported_is_an_error_that_says_so() {
        for (name, value, expected) in [
            ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "http/json", "expected \"http/protobuf\""),
            (
                "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE",
                "lowmemory",
                "expected \"cumulative\"",
            ),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s", "expected whole milliseconds"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318", "expected a URL"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a b=c", "cannot send the header"),
        ] {
            let error = config(&[(name, value)]).unwrap_err().to_string();
            assert!(error.contains(expected), "{name}={value}: {error}");
        }
    }
}
