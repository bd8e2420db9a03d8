//! What a command requests.

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use clap::Args;
use talea_load::scenario::{self, Scenario};

use crate::openapi;

/// What is requested: the URL itself, or the steps of a scenario.
#[derive(Debug, Args)]
pub(crate) struct Requests {
    /// Run a scenario: a file, or the built-in crud (create, list, get, update, delete), the default for a
    /// study of the items API
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["method", "headers", "data", "data_file", "basic", "bearer_file"]
    )]
    pub scenario: Option<String>,
    /// Request each GET and HEAD operation of an OpenAPI document (3.0 or 3.1, YAML or JSON), with its examples or
    /// values that its schemas allow; paths are appended to the URL
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["scenario", "method", "headers", "data", "data_file", "basic", "bearer_file"]
    )]
    pub openapi: Option<PathBuf>,
    /// With --openapi, request POST, PUT, PATCH and DELETE operations too
    #[arg(long, requires = "openapi")]
    pub unsafe_methods: bool,
    /// The method of each request [default: GET, with --data POST]
    #[arg(long, short = 'X', value_name = "METHOD", value_parser = method)]
    pub method: Option<Method>,
    /// A header of each request; may be given more than once
    #[arg(long = "header", short = 'H', value_name = "NAME: VALUE", value_parser = header)]
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The body of each request
    #[arg(long, short = 'd', value_name = "TEXT")]
    pub data: Option<String>,
    /// A UTF-8 file with the body of each request
    #[arg(long, value_name = "FILE", conflicts_with = "data")]
    pub data_file: Option<PathBuf>,
    /// Authenticate with a name and a password; other users of the machine may see them
    #[arg(long, value_name = "NAME:PASSWORD", value_parser = basic)]
    pub basic: Option<HeaderValue>,
    /// Authenticate with the bearer token in a file
    #[arg(long, value_name = "FILE", conflicts_with = "basic")]
    pub bearer_file: Option<PathBuf>,
}

impl Requests {
    /// The scenario that is asked for; otherwise a request of the URL itself.
    ///
    /// # Errors
    /// If a file cannot be read or is not valid.
    pub(crate) fn scenario(&self) -> Result<Scenario> {
        if let Some(scenario) = &self.scenario {
            return Scenario::of(scenario);
        }
        if let Some(document) = &self.openapi {
            return openapi::scenario(document, self.unsafe_methods);
        }
        let mut headers: HeaderMap = self.headers.iter().cloned().collect();
        if let Some(authorization) = self.authorization()? {
            headers.insert(AUTHORIZATION, authorization);
        }
        let body = match &self.data_file {
            None => self.data.clone(),
            Some(path) => {
                let read = std::fs::read_to_string(path);
                Some(read.with_context(|| format!("--data-file {}", path.display()))?)
            }
        };
        if body.is_some() && !headers.contains_key(CONTENT_TYPE) {
            let form = HeaderValue::from_static("application/x-www-form-urlencoded");
            headers.insert(CONTENT_TYPE, form);
        }
        let usual = if body.is_some() { Method::POST } else { Method::GET };
        let method = self.method.clone().unwrap_or(usual);
        Ok(Scenario::request(method, headers, body.as_deref()))
    }

    /// As [`scenario`](Self::scenario), but the built-in one if nothing is asked for.
    pub(crate) fn scenario_or_crud(&self) -> Result<Scenario> {
        let is_asked = self.openapi.is_some()
            || self.method.is_some()
            || !self.headers.is_empty()
            || self.data.is_some()
            || self.data_file.is_some()
            || self.basic.is_some()
            || self.bearer_file.is_some();
        match &self.scenario {
            None if !is_asked => Ok(Scenario::crud()),
            _ => self.scenario(),
        }
    }

    fn authorization(&self) -> Result<Option<HeaderValue>> {
        let Some(path) = &self.bearer_file else { return Ok(self.basic.clone()) };
        let token = std::fs::read_to_string(path)
            .with_context(|| format!("--bearer-file {}", path.display()))?;
        let token = token.trim();
        if token.is_empty() {
            bail!("--bearer-file {}: found no token", path.display());
        }
        let value = HeaderValue::from_str(&format!("Bearer {token}"));
        value.map(secret).map(Some).map_err(|_| {
            anyhow!(
                "--bearer-file {}: expected one line with a token that is valid in a header",
                path.display()
            )
        })
    }
}

fn method(text: &str) -> Result<Method, String> {
    scenario::method(&text.to_ascii_uppercase())
}

fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let expected = || format!("found {text:?}, expected NAME: VALUE");
    let (name, value) = text.split_once(':').ok_or_else(expected)?;
    let name = name.parse().map_err(|_| expected())?;
    let value = HeaderValue::from_str(value.trim()).map_err(|_| expected())?;
    Ok((name, value))
}

fn basic(text: &str) -> Result<HeaderValue, String> {
    if !text.contains(':') {
        return Err("found no colon, expected NAME:PASSWORD".to_owned());
    }
    let value = format!("Basic {}", BASE64_STANDARD.encode(text));
    HeaderValue::from_str(&value).map(secret).map_err(|error| error.to_string())
}

fn secret(mut value: HeaderValue) -> HeaderValue {
    value.set_sensitive(true);
    value
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        requests: Requests,
    }

    fn scenario(words: &[&str]) -> Result<Scenario, String> {
        let words = ["talea"].iter().chain(words);
        let command = Command::try_parse_from(words).map_err(|error| error.to_string())?;
        command.requests.scenario().map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn a_url_is_a_get_and_options_say_what_else() {
        let folder = tempfile::tempdir().unwrap();
        let [body, token] = ["body", "token"].map(|name| folder.path().join(name));
        std::fs::write(&body, "{\"a\":\"{b}\"}").unwrap();
        std::fs::write(&token, "abc\n").unwrap();
        let [body, token] = [&body, &token].map(|path| path.to_str().unwrap());
        let form = "content-type: application/x-www-form-urlencoded";
        let plain = ["-H", "Content-Type: text/plain", "-H", "x: 1", "-d", "a"];
        for (words, method, headers, body) in [
            (&[][..], "GET", "", None),
            (&["-X", "delete"], "DELETE", "", None),
            (&["-d", "{a}"], "POST", form, Some("{a}")),
            (&["-X", "PUT", "--data-file", body], "PUT", form, Some("{\"a\":\"{b}\"}")),
            (&plain, "POST", "content-type: text/plain, x: 1", Some("a")),
            (&["--basic", "ann:b:c"], "GET", "authorization: Basic YW5uOmI6Yw==", None),
            (&["--bearer-file", token], "GET", "authorization: Bearer abc", None),
        ] {
            let scenario = scenario(words).unwrap();
            let [step] = &scenario.steps[..] else { panic!("{words:?}") };
            let found: Vec<String> = step
                .headers
                .iter()
                .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
                .collect();
            let found = (step.method.as_str(), found.join(", "));
            assert_eq!(found, (method, headers.to_owned()), "{words:?}");
            let text = step.body.as_ref().map(|body| body.constant().unwrap());
            assert_eq!(text, body, "{words:?}");
        }
        assert_eq!(scenario(&["--scenario", "crud"]).unwrap().steps.len(), 5);
    }

    #[test]
    fn what_cannot_be_requested_is_refused_with_what_was_expected() {
        for (words, part) in [
            (&["-X", "GTE"][..], "expected one such as GET"),
            (&["-H", "x"], "expected NAME: VALUE"),
            (&["-H", "a b: c"], "expected NAME: VALUE"),
            (&["--basic", "ann"], "expected NAME:PASSWORD"),
            (&["--bearer-file", "/no/such"], "--bearer-file /no/such"),
            (&["--data-file", "/no/such"], "--data-file /no/such"),
            (&["--scenario", "crud", "-X", "PUT"], "cannot be used with"),
            (&["-d", "a", "--data-file", "b"], "cannot be used with"),
        ] {
            let error = scenario(words).map(|_| ()).unwrap_err();
            assert!(error.contains(part), "{words:?}: {error}");
        }
    }
}
