//! The file of `talea serve --push`: receivers, as TOML.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use serde::Deserialize;
use talea_push::{Config, Rule, Temporality};
use toml::Spanned;

use crate::arguments::quantity::duration;

/// Where a fault stands in the text, and what it is.
type Fault = (Range<usize>, String);

/// The tables of receivers.
#[derive(Clone, Copy)]
enum Table {
    RemoteWrite,
    Otlp,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    remote_write: Vec<Spanned<Receiver>>,
    #[serde(default)]
    otlp: Vec<Spanned<Receiver>>,
}

/// A receiver, with the names that Prometheus has for the same settings, where it has them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Receiver {
    url: Spanned<String>,
    protocol: Option<Spanned<OtlpProtocol>>,
    temporality: Option<Spanned<OtlpTemporality>>,
    name: Option<String>,
    #[serde(default)]
    labels: BTreeMap<Spanned<String>, String>,
    #[serde(default)]
    headers: BTreeMap<Spanned<String>, String>,
    interval: Option<Spanned<String>>,
    timeout: Option<Spanned<String>>,
    backoff: Option<[Spanned<String>; 2]>,
    max_age: Option<Spanned<String>>,
    max_samples: Option<Spanned<u64>>,
    queue: Option<Spanned<PathBuf>>,
    max_queue_mib: Option<Spanned<u64>>,
    bearer_token_file: Option<PathBuf>,
    basic_auth: Option<BasicAuth>,
    ca_file: Option<PathBuf>,
    cert_file: Option<PathBuf>,
    key_file: Option<PathBuf>,
    native_histograms: Option<bool>,
    classic_beside_native: Option<bool>,
    #[serde(default)]
    relabel: Vec<Spanned<Relabel>>,
}

/// As OpenTelemetry's variables name them.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
enum OtlpProtocol {
    #[serde(rename = "http/protobuf")]
    Http,
    #[serde(rename = "grpc")]
    Grpc,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum OtlpTemporality {
    Cumulative,
    Delta,
}

/// A rule as Prometheus' `write_relabel_configs` have it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Relabel {
    #[serde(default)]
    action: Action,
    #[serde(default)]
    source_labels: Vec<String>,
    separator: Option<String>,
    regex: Option<Spanned<String>>,
    target_label: Option<String>,
    replacement: Option<String>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    #[default]
    Replace,
    Keep,
    Drop,
    LabelMap,
    LabelDrop,
    LabelKeep,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BasicAuth {
    username: String,
    password_file: PathBuf,
}

/// The receivers of a file, at least one. Paths in it are relative to its folder.
///
/// # Errors
/// The file cannot be read, or says what cannot be done: the error names the line, what was found and what was
/// expected.
pub(super) fn read(path: &Path) -> Result<Vec<Config>> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("the push configuration {} cannot be read", path.display()))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    parse(&text, folder).map_err(|(at, message)| {
        let line = text[..at.start.min(text.len())].matches('\n').count() + 1;
        anyhow!("the push configuration cannot be used: {}:{line}: {message}", path.display())
    })
}

fn parse(text: &str, folder: &Path) -> Result<Vec<Config>, Fault> {
    let file: File = toml::from_str(text)
        .map_err(|error| (error.span().unwrap_or(0..0), error.message().to_owned()))?;
    let (mut names, mut queues) = (BTreeSet::new(), BTreeSet::new());
    let mut configs = Vec::new();
    let protocols = [(Table::RemoteWrite, file.remote_write), (Table::Otlp, file.otlp)];
    for (table, receivers) in protocols {
        for receiver in receivers {
            let at = receiver.span();
            let receiver = receiver.into_inner();
            let queue =
                receiver.queue.as_ref().map(|queue| (queue.span(), queue.get_ref().clone()));
            let config = config(table, receiver, at.clone(), folder)?;
            let name = config.target();
            if !names.insert(name.clone()) {
                let message = format!(
                    "found a second receiver {name:?}; give it a `name` of its own, which its metrics have \
                     as the label target"
                );
                return Err((at, message));
            }
            if let Some((at, queue)) = queue
                && !queues.insert(queue.clone())
            {
                let message = format!(
                    "found a second queue in {}; expected a folder for each receiver",
                    queue.display()
                );
                return Err((at, message));
            }
            configs.push(config);
        }
    }
    if configs.is_empty() {
        let expected =
            "found no receiver; expected at least one [[remote_write]] or [[otlp]] with a url";
        return Err((0..0, expected.to_owned()));
    }
    Ok(configs)
}

fn config(
    table: Table,
    receiver: Receiver,
    at: Range<usize>,
    folder: &Path,
) -> Result<Config, Fault> {
    // The regions go on when the agent stops.
    let mut config = new(table, &receiver)?.end_series_at_stop(false);
    if let Some(temporality) = &receiver.temporality {
        config = config.temporality(match temporality.get_ref() {
            OtlpTemporality::Cumulative => Temporality::Cumulative,
            OtlpTemporality::Delta => Temporality::Delta,
        });
        config.check().map_err(|error| fault(temporality, error))?;
    }
    if let Some(name) = receiver.name {
        config = config.name(name);
    }
    for (name, value) in receiver.labels {
        config = config.label(name.get_ref(), value);
        config.check().map_err(|error| fault(&name, error))?;
    }
    for relabel in receiver.relabel {
        let at = relabel.span();
        let rule = rule(relabel.into_inner())?;
        config = config.relabel(rule).map_err(|error| (at, error.to_string()))?;
    }
    for (name, value) in receiver.headers {
        config = config.header(name.get_ref(), &value).map_err(|error| fault(&name, error))?;
    }
    if let Some(interval) = &receiver.interval {
        config = config.interval(time(interval)?);
    }
    if let Some(timeout) = &receiver.timeout {
        config = config.timeout(time(timeout)?);
    }
    if let Some([first, longest]) = &receiver.backoff {
        config = config.backoff(time(first)?, time(longest)?);
    }
    if let Some(max_age) = &receiver.max_age {
        config = config.max_age(time(max_age)?);
    }
    if let Some(samples) = &receiver.max_samples {
        config = config.max_samples(positive(samples)?);
    }
    if let Some(queue) = receiver.queue {
        config = config.queue_in(folder.join(queue.get_ref()));
    }
    if let Some(mib) = &receiver.max_queue_mib {
        let bytes = positive(mib)?.saturating_mul(1 << 20);
        config = config.max_queue_bytes(usize::try_from(bytes).unwrap_or(usize::MAX));
    }
    match (receiver.bearer_token_file, receiver.basic_auth) {
        (Some(_), Some(_)) => {
            let message = "found bearer_token_file and basic_auth; expected one of the two";
            return Err((at, message.to_owned()));
        }
        (Some(token), None) => config = config.bearer_token_file(folder.join(token)),
        (None, Some(BasicAuth { username, password_file })) => {
            config = config.basic_auth(username, folder.join(password_file));
        }
        (None, None) => {}
    }
    if let Some(ca) = receiver.ca_file {
        config = config.ca_file(folder.join(ca));
    }
    match (receiver.cert_file, receiver.key_file) {
        (Some(certificate), Some(key)) => {
            config = config.client_certificate(folder.join(certificate), folder.join(key));
        }
        (None, None) => {}
        _ => {
            let message = "found one of cert_file and key_file; expected both, or neither";
            return Err((at, message.to_owned()));
        }
    }
    if let Some(sends) = receiver.native_histograms {
        config = config.native_histograms(sends);
    }
    if let Some(sends) = receiver.classic_beside_native {
        config = config.classic_beside_native(sends);
    }
    Ok(config)
}

fn new(table: Table, receiver: &Receiver) -> Result<Config, Fault> {
    let url = receiver.url.get_ref();
    let config = match (table, &receiver.protocol) {
        (Table::RemoteWrite, None) => Config::remote_write(url),
        (Table::RemoteWrite, Some(protocol)) => {
            return Err(fault(
                protocol,
                "found protocol in [[remote_write]]; expected it in [[otlp]]",
            ));
        }
        (Table::Otlp, Some(protocol)) if *protocol.get_ref() == OtlpProtocol::Grpc => {
            Config::otlp_grpc(url)
        }
        (Table::Otlp, _) => Config::otlp(url),
    };
    config.map_err(|error| fault(&receiver.url, error))
}

fn rule(text: Relabel) -> Result<Rule, Fault> {
    let action = match text.action {
        Action::Replace => talea_push::Action::Replace,
        Action::Keep => talea_push::Action::Keep,
        Action::Drop => talea_push::Action::Drop,
        Action::LabelMap => talea_push::Action::LabelMap,
        Action::LabelDrop => talea_push::Action::LabelDrop,
        Action::LabelKeep => talea_push::Action::LabelKeep,
    };
    let mut rule = Rule::new(action).source_labels(text.source_labels);
    if let Some(separator) = text.separator {
        rule = rule.separator(separator);
    }
    if let Some(regex) = text.regex {
        rule = rule.regex(regex.get_ref()).map_err(|error| fault(&regex, error))?;
    }
    if let Some(target) = text.target_label {
        rule = rule.target_label(target);
    }
    if let Some(replacement) = text.replacement {
        rule = rule.replacement(replacement);
    }
    Ok(rule)
}

fn fault<T>(at: &Spanned<T>, error: impl Display) -> Fault {
    (at.span(), error.to_string())
}

fn time(text: &Spanned<String>) -> Result<Duration, Fault> {
    duration(text.get_ref())
        .map_err(|error| fault(text, format!("{:?} cannot be used: {error}", text.get_ref())))
}

fn positive(number: &Spanned<u64>) -> Result<u64, Fault> {
    match *number.get_ref() {
        0 => Err(fault(number, "found 0, expected at least 1")),
        positive => Ok(positive),
    }
}
