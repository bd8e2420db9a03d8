//! From arguments to what is studied.

use std::env::consts::EXE_SUFFIX;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use talea_load::Target;

use super::variant::Variant;
use crate::arguments::StudyArguments;
use crate::arguments::connection::Tls;
use talea_study::study::{
    AddressSource, Addresses, Design, Program, PrometheusSource, STUDY_ARGUMENTS, Service,
};

pub(super) fn design(arguments: &StudyArguments, service: Service) -> Result<Design> {
    let scenario = match &service {
        // The items API has records to create.
        Service::Program(Program { addresses: AddressSource::ByItself, .. }) => {
            arguments.requests.scenario_or_crud()?
        }
        _ => arguments.requests.scenario()?,
    };
    let names = scenario.metrics.names(arguments.names.as_deref());
    let names = names.map_err(|error| anyhow!("--names: {error}"))?;
    Ok(Design {
        service,
        cases: arguments.chosen_cases().0,
        scenario: Arc::new(scenario),
        names,
        protocol: arguments.connection.protocol(),
        timeout: arguments.connection.timeout,
        seed: arguments.seed,
        warm_up: arguments.warm_up,
        before_case: arguments.before_case.clone(),
        prometheus: prometheus(arguments)?,
        must_count: arguments.ab.is_empty(),
        quiet: arguments.output.quiet,
        command: as_typed(std::env::args_os()),
    })
}

fn prometheus(arguments: &StudyArguments) -> Result<Option<PrometheusSource>> {
    if let Some(url) = &arguments.prometheus {
        let target = arguments.connection.tls.to(url, "http/1.1")?;
        return Ok(Some(PrometheusSource::Running(
            Box::new(target),
            arguments.prometheus_labels.clone(),
        )));
    }
    let Some(program) = arguments.with_prometheus.clone() else { return Ok(None) };
    let Tls { ca, insecure } = &arguments.connection.tls;
    // From the folder of its configuration another file would have a relative name.
    let ca = ca.as_ref().map(std::path::absolute).transpose()?;
    let ca = ca.as_ref().map(|path| path.to_string_lossy());
    // YAML includes JSON.
    let tls = serde_json::json!({ "ca_file": ca, "insecure_skip_verify": insecure });
    Ok(Some(PrometheusSource::Started(program, tls.to_string())))
}

pub(super) fn service(arguments: &StudyArguments) -> Result<Service> {
    let Some(url) = &arguments.url else {
        return Ok(Service::Program(Program {
            path: api(arguments.api.as_deref())?,
            arguments: STUDY_ARGUMENTS.map(str::to_owned).to_vec(),
            environment: Vec::new(),
            addresses: AddressSource::ByItself,
        }));
    };
    let connection = &arguments.connection;
    let metrics = arguments.metrics_url.as_ref();
    Ok(Service::Running(Box::new(Addresses {
        items: connection.tls.to(url, connection.protocol().alpn())?,
        metrics: metrics.map(|metrics| connection.tls.to(metrics, "http/1.1")).transpose()?,
    })))
}

pub(super) fn variant(arguments: &StudyArguments, text: &str) -> Result<Service> {
    match (Variant::parse(text)?, service(arguments)?) {
        (Variant::Urls(..), _) if arguments.metrics_url.is_some() => bail!(
            "--ab {text:?} is a URL, after which the URL of its metrics stands; --metrics-url is \
             for variants that are command lines"
        ),
        (Variant::Urls(items, metrics), _) => {
            let connection = &arguments.connection;
            let target = |url: &str, target: Result<Target, String>, alpn| -> Result<Target> {
                connection.tls.to(&target.map_err(|error| anyhow!("--ab {url:?}: {error}"))?, alpn)
            };
            let metrics = metrics.map(|url| target(&url, Target::page(&url), "http/1.1"));
            Ok(Service::Running(Box::new(Addresses {
                items: target(&items, items.parse(), connection.protocol().alpn())?,
                metrics: metrics.transpose()?,
            })))
        }
        (Variant::Started { environment, program, arguments }, Service::Program(usual)) => {
            let mut all = usual.arguments;
            all.extend(arguments);
            let path = program.unwrap_or(usual.path);
            Ok(Service::Program(Program { path, arguments: all, environment, ..usual }))
        }
        (Variant::Started { environment, program, arguments }, Service::Running(addresses)) => {
            let path = program.with_context(|| {
                format!(
                    "--ab {text:?} names no program; with --url a variant is a command line, \
                     which the study starts and which serves at that URL"
                )
            })?;
            let addresses = AddressSource::Beforehand(addresses);
            Ok(Service::Program(Program { path, arguments, environment, addresses }))
        }
    }
}

/// The program to study: the one that was named, else the one beside this program.
fn api(named: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = named {
        if !path.is_file() {
            bail!("--api names {}, which is not a program", path.display());
        }
        return Ok(path.to_owned());
    }
    let this = std::env::current_exe().context("cannot tell where this program is")?;
    let beside = this.with_file_name(format!("items-api{EXE_SUFFIX}"));
    if !beside.is_file() {
        bail!(
            "no items-api at {}: build it (`cargo build --release -p items-api`), name it with \
             --api PATH, or name a service that runs with --url URL",
            beside.display()
        );
    }
    Ok(beside)
}

/// The command line as it would be typed; bytes that are no text are replaced.
pub(super) fn as_typed(arguments: impl Iterator<Item = OsString>) -> String {
    let words = arguments.skip(1).map(|word| {
        let word = word.to_string_lossy().into_owned();
        if !word.is_empty()
            && word
                .bytes()
                .all(|byte: u8| byte.is_ascii_alphanumeric() || b"-_./,:=+%@".contains(&byte))
        {
            word
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    std::iter::once("talea".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_typed_again() {
        let words = ["/x/talea", "study", "--cases", "A,10x20", "--out", "my report's"];
        assert_eq!(
            as_typed(words.map(OsString::from).into_iter()),
            r"talea study --cases A,10x20 --out 'my report'\''s'"
        );
    }

    #[cfg(unix)]
    #[test]
    fn an_argument_need_not_be_utf_8() {
        use std::os::unix::ffi::OsStringExt;

        let words = [OsString::from("talea"), OsString::from_vec(b"\xFF".to_vec())];
        assert_eq!(as_typed(words.into_iter()), "talea '\u{FFFD}'");
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = api(Some(Path::new("/nowhere/items-api"))).unwrap_err().to_string();
        assert!(error.contains("/nowhere/items-api"), "{error}");
    }
}
