//! A scenario as TOML.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use anyhow::{Context, anyhow};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, StatusCode};
use serde::Deserialize;
use toml::Spanned;

use super::definition::{Capture, ExpectedStatus, Metrics, Scenario, Step};
use super::names::Names;
use super::template::{Form, Template};
use super::value::{Source, Variable};
use crate::duration::parse_duration;

impl Scenario {
    /// The built-in one: create, list, get, update and delete an item of a collection.
    pub fn crud() -> Self {
        match Self::parse("crud", include_str!("crud.toml")) {
            Ok(scenario) => scenario,
            Err(error) => unreachable!("the built-in scenario is tested: {error}"),
        }
    }

    /// One request of the target's URL as it is; its answer is expected to have a status of 200 to 299.
    pub fn request(method: Method, headers: HeaderMap, body: Option<&str>) -> Self {
        let body = body.map(|text| {
            let mut body = Template::default();
            body.push_text(text);
            body
        });
        let step = Step {
            name: method.to_string(),
            method,
            path: Template::default(),
            headers,
            filled_headers: Vec::new(),
            body,
            expected: ExpectedStatus::AnySuccess,
            captures: Vec::new(),
            think: None,
        };
        Self {
            name: step.name.clone(),
            variables: Vec::new(),
            steps: vec![step],
            metrics: Metrics::default(),
        }
    }

    /// Reads one from a text; errors call it by a name.
    /// Fails when the text is no scenario: the error has the line, the text found and the text
    /// expected.
    pub fn parse(name: &str, text: &str) -> Result<Self, String> {
        let fail = |(at, message): Fault| {
            let line = text[..at.start.min(text.len())].matches('\n').count() + 1;
            format!("{name}:{line}: {message}")
        };
        let file: File = toml::from_str(text)
            .map_err(|error| fail((error.span().unwrap_or(0..0), error.message().to_owned())))?;
        scenario(name, file).map_err(fail)
    }

    /// The built-in one of this name, or the one in a file.
    /// Fails when the file cannot be read, or is no scenario.
    pub fn of(name_or_path: &str) -> anyhow::Result<Self> {
        if name_or_path == "crud" {
            return Ok(Self::crud());
        }
        let text = std::fs::read_to_string(name_or_path).with_context(|| {
            format!("the scenario {name_or_path} cannot be read (the built-in one is crud)")
        })?;
        Self::parse(name_or_path, &text).map_err(|error| anyhow!(error))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: Option<String>,
    #[serde(default)]
    variables: BTreeMap<String, Spanned<VariableText>>,
    #[serde(default)]
    step: Vec<Spanned<StepText>>,
    #[serde(default)]
    metrics: BTreeMap<Spanned<String>, Spanned<MetricText>>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a text, or true or false")]
enum MetricText {
    Text(String),
    Flag(bool),
}

impl MetricText {
    fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Flag(flag) => flag.to_string(),
        }
    }
}

#[derive(Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "expected a text, a whole number, { random = [FROM, TO] } or { choice = [TEXT, …] }"
)]
enum VariableText {
    Text(String),
    Whole(i64),
    Random { random: [i64; 2] },
    Choice { choice: Vec<String> },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepText {
    name: Option<String>,
    method: Spanned<String>,
    path: Option<Spanned<String>>,
    #[serde(default)]
    headers: BTreeMap<Spanned<String>, Spanned<String>>,
    json: Option<Spanned<serde_json::Value>>,
    body: Option<Spanned<String>>,
    expect: Option<Spanned<ExpectText>>,
    #[serde(default)]
    capture: BTreeMap<Spanned<String>, Spanned<String>>,
    think: Option<Spanned<ThinkText>>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a status such as 200, or several, such as [200, 204]")]
enum ExpectText {
    One(u16),
    Some(Vec<u16>),
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected a duration such as \"100ms\", or two as [\"50ms\", \"2s\"]"
)]
enum ThinkText {
    One(String),
    Between([String; 2]),
}

/// An error, and its place in the text.
type Fault = (Range<usize>, String);

fn scenario(name: &str, file: File) -> Result<Scenario, Fault> {
    if file.step.is_empty() {
        return Err((0..0, "found no step, expected at least one [[step]]".to_owned()));
    }
    let mut variables = Vec::new();
    for (name, source) in file.variables {
        check_name(&name).map_err(at(&source))?;
        let fault = at(&source);
        let source = source_of(source.into_inner()).map_err(fault)?;
        variables.push(Variable { name, source });
    }
    // A captured variable can be named anywhere: whether it is there shows when it runs.
    for step in &file.step {
        for captured in step.as_ref().capture.keys() {
            let name = captured.as_ref();
            check_name(name).map_err(at(captured))?;
            match variables.iter().find(|known| known.name == *name) {
                None => variables.push(Variable { name: name.clone(), source: Source::Captured }),
                Some(Variable { source: Source::Captured, .. }) => {}
                Some(_) => {
                    let message =
                        format!("{name} is among the variables too; capture another name");
                    return Err(at(captured)(message));
                }
            }
        }
    }
    let metrics = metrics(&file.metrics)?;
    let steps = file.step.into_iter().map(|text| step(text, &variables));
    let steps = steps.collect::<Result<Vec<_>, _>>()?;
    Ok(Scenario { name: file.name.unwrap_or_else(|| name.to_owned()), variables, steps, metrics })
}

fn metrics(text: &BTreeMap<Spanned<String>, Spanned<MetricText>>) -> Result<Metrics, Fault> {
    let mut metrics = Metrics::default();
    let (base, overrides): (Vec<_>, Vec<_>) =
        text.iter().partition(|(key, _)| key.as_ref() == "names");
    if let [(_, base)] = base[..] {
        metrics.base = base.as_ref().text();
        Names::built_in(&metrics.base).map_err(at(base))?;
    }
    // Whether the names are good is seen one by one, so that the error has its line.
    for (key, value) in overrides {
        metrics.overrides.push((key.as_ref().clone(), value.as_ref().text()));
        metrics.names(None).map_err(at(key))?;
    }
    Ok(metrics)
}

/// Adds the place of a text to a message about it.
fn at<T>(text: &Spanned<T>) -> impl FnOnce(String) -> Fault + use<T> {
    let place = text.span();
    move |message| (place, message)
}

fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err(format!("found the variable {name:?}, expected letters, digits and _"));
    }
    Ok(())
}

fn source_of(text: VariableText) -> Result<Source, String> {
    match text {
        VariableText::Text(text) => Ok(Source::Fixed(text)),
        VariableText::Whole(number) => Ok(Source::Fixed(number.to_string())),
        VariableText::Random { random: [from, to] } if from <= to => Ok(Source::Random(from..=to)),
        VariableText::Random { random: [from, to] } => {
            Err(format!("found random = [{from}, {to}], expected the smaller number first"))
        }
        VariableText::Choice { choice } if choice.is_empty() => {
            Err("found an empty choice, expected at least one text".to_owned())
        }
        VariableText::Choice { choice } => Ok(Source::Choice(choice)),
    }
}

fn step(text: Spanned<StepText>, variables: &[Variable]) -> Result<Step, Fault> {
    let fault = at(&text);
    let text = text.into_inner();
    let mut place = |name: &str| {
        variables.iter().position(|variable| variable.name == name).ok_or_else(|| {
            let known: Vec<&str> = variables.iter().map(|known| known.name.as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            format!(
                "found {{{name}}}, which is neither a variable nor captured; known are: {known}"
            )
        })
    };
    let mut template = |text: &Spanned<String>, form| {
        let mut template = Template::default();
        let pushed = template.push(text.as_ref(), form, &mut place);
        pushed.map(|()| template).map_err(at(text))
    };

    let method = method(&text.method)?;
    let path = match &text.path {
        Some(path) => {
            check_path(path)?;
            template(path, Form::Path)?
        }
        None => Template::default(),
    };
    let mut headers = HeaderMap::new();
    let mut filled_headers = Vec::new();
    for (name, value) in &text.headers {
        let header: HeaderName = name.as_ref().parse().map_err(|_| {
            at(name)(format!("found the header name {:?}, expected a valid one", name.as_ref()))
        })?;
        let filled = template(value, Form::Plain)?;
        match filled.constant() {
            Some(text) => {
                let value = HeaderValue::from_str(text).map_err(|_| {
                    at(value)(format!("found {text:?}, which is not valid in a header"))
                });
                headers.insert(header, value?);
            }
            None => filled_headers.push((header, filled)),
        }
    }
    let body = match (&text.json, &text.body) {
        (Some(_), Some(body)) => {
            return Err(at(body)("found json and body, expected one of them".to_owned()));
        }
        (None, None) => None,
        (None, Some(body)) => Some(template(body, Form::Plain)?),
        (Some(json), None) => {
            headers
                .entry(CONTENT_TYPE)
                .or_insert_with(|| HeaderValue::from_static("application/json"));
            let mut body = Template::default();
            push_json(json.as_ref(), &mut body, &mut place).map_err(at(json))?;
            Some(body)
        }
    };
    let captures = text.capture.iter().map(|(name, pointer)| {
        if !pointer.as_ref().is_empty() && !pointer.as_ref().starts_with('/') {
            let message =
                format!("found {:?}, expected a JSON pointer such as /data/id", pointer.as_ref());
            return Err(at(pointer)(message));
        }
        let variable = place(name.as_ref()).map_err(at(name))?;
        Ok(Capture { variable, pointer: pointer.as_ref().clone() })
    });
    let captures = captures.collect::<Result<_, _>>()?;
    let path_text = text.path.as_ref().map_or("", |path| path.as_ref());
    let default_name = format!("{method} {path_text}").trim_end().to_owned();
    let step = Step {
        name: text.name.clone().unwrap_or(default_name),
        path,
        headers,
        filled_headers,
        body,
        expected: expected(text.expect)?,
        captures,
        think: think(text.think)?,
        method,
    };
    if step.name.is_empty() {
        return Err(fault("found an empty name, expected a name, or no key `name`".to_owned()));
    }
    Ok(step)
}

fn method(text: &Spanned<String>) -> Result<Method, Fault> {
    let name = text.as_ref();
    let known = Method::from_bytes(name.as_bytes()).ok();
    let known =
        known.filter(|_| name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-'));
    known.ok_or_else(|| {
        (text.span(), format!("found the method {name:?}, expected one such as GET, in capitals"))
    })
}

fn check_path(text: &Spanned<String>) -> Result<(), Fault> {
    let path = text.as_ref();
    let message = if !path.is_empty() && !path.starts_with(['/', '?']) {
        "expected one that begins with / (it is appended to the target's path)"
    } else if path.contains(|c: char| c.is_ascii_whitespace() || c.is_ascii_control() || c == '#') {
        "expected no blanks and no # in it; percent-encode them"
    } else if !path.is_ascii() {
        "expected ASCII; percent-encode the rest"
    } else {
        return Ok(());
    };
    Err((text.span(), format!("found the path {path:?}, {message}")))
}

/// Writes JSON whose texts may have variables.
fn push_json(
    json: &serde_json::Value,
    into: &mut Template,
    place: &mut impl FnMut(&str) -> Result<usize, String>,
) -> Result<(), String> {
    use serde_json::Value;
    match json {
        Value::String(text) => {
            let name = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
            match name.filter(|name| !name.contains(['{', '}'])) {
                // It stands alone, so a number stays a number.
                Some(name) => into.push_variable(place(name)?, Form::Json),
                None => {
                    into.push_text("\"");
                    into.push(text, Form::InJsonText, place)?;
                    into.push_text("\"");
                }
            }
        }
        Value::Array(values) => {
            into.push_text("[");
            for (n, value) in values.iter().enumerate() {
                into.push_text(if n == 0 { "" } else { "," });
                push_json(value, into, place)?;
            }
            into.push_text("]");
        }
        Value::Object(fields) => {
            into.push_text("{");
            for (n, (name, value)) in fields.iter().enumerate() {
                into.push_text(if n == 0 { "" } else { "," });
                into.push_text(&Value::from(name.as_str()).to_string());
                into.push_text(":");
                push_json(value, into, place)?;
            }
            into.push_text("}");
        }
        plain => into.push_text(&plain.to_string()),
    }
    Ok(())
}

fn expected(text: Option<Spanned<ExpectText>>) -> Result<ExpectedStatus, Fault> {
    let Some(text) = text else { return Ok(ExpectedStatus::AnySuccess) };
    let at = text.span();
    let codes = match text.into_inner() {
        ExpectText::One(code) => vec![code],
        ExpectText::Some(codes) => codes,
    };
    if codes.is_empty() {
        return Err((at, "found no status, expected at least one".to_owned()));
    }
    Ok(ExpectedStatus::OneOf(
        codes
            .into_iter()
            .map(|code| {
                let found = StatusCode::from_u16(code).ok().filter(|_| code < 600);
                found.ok_or_else(|| {
                    (at.clone(), format!("found the status {code}, expected 100 to 599"))
                })
            })
            .collect::<Result<_, _>>()?,
    ))
}

fn think(text: Option<Spanned<ThinkText>>) -> Result<Option<RangeInclusive<Duration>>, Fault> {
    let Some(text) = text else { return Ok(None) };
    let at = text.span();
    let duration = |text: &str| {
        parse_duration(text).map_err(|error| {
            (at.clone(), format!("{error}; expected a duration such as \"100ms\""))
        })
    };
    let range = match text.as_ref() {
        ThinkText::One(one) => duration(one)?..=duration(one)?,
        ThinkText::Between([least, most]) => duration(least)?..=duration(most)?,
    };
    if range.is_empty() {
        return Err((at, "found the longer time first, expected the shorter one".to_owned()));
    }
    Ok(Some(range))
}

#[cfg(test)]
mod tests {
    use super::super::Values;
    use super::*;

    fn step_names(scenario: &Scenario) -> Vec<&str> {
        scenario.steps.iter().map(|step| step.name.as_str()).collect()
    }

    #[test]
    fn the_built_in_scenario_is_the_references() {
        let crud = Scenario::crud();
        assert_eq!(step_names(&crud), ["create", "list", "get", "update", "delete"]);
        let create = &crud.steps[0];
        let body = create.body.as_ref().unwrap().constant();
        assert_eq!(body, Some(r#"{"item":{"value":true}}"#));
        assert_eq!(create.headers[CONTENT_TYPE], "application/json");
        assert_eq!(create.expected.to_string(), "201 Created");
        assert_eq!(create.captures[0].pointer, "/data/id");
    }

    #[test]
    fn the_one_in_the_docs_is_one() {
        let docs = include_str!("../../../../docs/how-to/load.md");
        let text = docs.split("```toml").nth(1).and_then(|rest| rest.split("```").next());
        let scenario = Scenario::parse("docs/how-to/load.md", text.unwrap()).unwrap();
        assert_eq!(step_names(&scenario), ["order", "GET /orders/{order}", "PUT /notes/{order}"]);
        let body = scenario.steps[2].body.as_ref().and_then(Template::constant);
        assert_eq!(body, Some("as text, {not a variable}"));
    }

    #[test]
    fn a_step_has_all_that_a_request_can_have() {
        let text = r#"
            name = "shop"
            [variables]
            tenant = "acme"
            many = { random = [2, 2] }
            [[step]]
            method = "POST"
            path = "/orders?tenant={tenant}"
            headers = { "X-Tenant" = "{tenant}", Accept = "application/json" }
            json = { count = "{many}", note = "for {tenant}", tags = ["a", 1, true], n = { x = 1.5 } }
            expect = [200, 201]
            think = ["50ms", "1s"]
            capture = { order = "/id" }
            [[step]]
            name = "look"
            method = "GET"
            path = "/orders/{order}"
        "#;
        let scenario = Scenario::parse("shop.toml", text).unwrap();
        assert_eq!(scenario.name, "shop");
        let step = &scenario.steps[0];
        assert_eq!(step.name, "POST /orders?tenant={tenant}");
        let mut values = Values::new(&scenario.variables, 1);
        values.begin(&scenario.variables);
        let filled = |template: &Template| {
            let mut text = String::new();
            template.fill(&values, &mut text).map(|()| text)
        };
        assert_eq!(filled(&step.path).unwrap(), "/orders?tenant=acme");
        let body: serde_json::Value =
            serde_json::from_str(&filled(step.body.as_ref().unwrap()).unwrap()).unwrap();
        let expected = serde_json::json!({
            "count": 2, "note": "for acme", "tags": ["a", 1, true], "n": {"x": 1.5}
        });
        assert_eq!(body, expected);
        assert_eq!(step.headers["accept"], "application/json");
        assert_eq!(filled(&step.filled_headers[0].1).unwrap(), "acme");
        assert_eq!(step.expected.to_string(), "200 OK or 201 Created");
        assert_eq!(step.think, Some(Duration::from_millis(50)..=Duration::from_secs(1)));
        assert!(filled(&scenario.steps[1].path).is_err(), "nothing is captured yet");
        assert_eq!(scenario.steps[1].expected, ExpectedStatus::AnySuccess);
    }

    /// In each text `STEP` stands for the two lines of a step that asks for nothing more.
    #[test]
    fn an_error_has_its_line_and_the_expected_text() {
        for (text, line, message) in [
            ("name = 'x'\n", 1, "found no step, expected at least one [[step]]"),
            ("[[step]]\nmethod = 'get'", 2, "found the method \"get\", expected one such as GET"),
            ("[[step]]\npath = '/'", 1, "missing field `method`"),
            ("\n\n[[step]\n", 3, "unclosed array table"),
            ("STEP\nstatus = 200", 3, "unknown field `status`, expected one of"),
            ("STEP\npath = 'x'", 3, "expected one that begins with /"),
            ("STEP\npath = '/a b'", 3, "percent-encode"),
            ("STEP\npath = '/{'", 3, "a single brace"),
            ("STEP\nexpect = 700", 3, "expected 100 to 599"),
            ("STEP\nexpect = 'ok'", 3, "expected a status such as 200"),
            ("STEP\nthink = '1'", 3, "expected a duration such as"),
            ("STEP\nthink = ['2s', '1s']", 3, "the shorter one"),
            ("STEP\nbody = ''\njson = 1", 3, "expected one of them"),
            ("STEP\nheaders = { 'a b' = '' }", 3, "expected a valid one"),
            ("STEP\nheaders = { a = \"\\n\" }", 3, "which is not valid in a header"),
            ("STEP\ncapture = { id = 'data' }", 3, "a JSON pointer such as"),
            ("STEP\njson = { a = '{b}' }", 3, "known are: none"),
            ("[variables]\na = { random = [2, 1] }", 1, "found no step"),
            ("[variables]\na = { random = [2, 1] }\nSTEP", 2, "smaller number"),
            ("[variables]\na = { choice = [] }\nSTEP", 2, "at least one text"),
            ("[variables]\na = { choice = ['b'], c = 1 }\nSTEP", 2, "{ choice = [TEXT, …] }"),
            ("[variables]\na = 1.5\nSTEP", 2, "expected a text, a whole number"),
            ("[variables]\n'a-b' = 1\nSTEP", 2, "letters, digits and _"),
            ("[variables]\na = 1\nSTEP\npath = '/{idd}'", 5, "nor captured; known are: a"),
            ("[variables]\nid = 1\nSTEP\ncapture = { id = '/id' }", 5, "capture another name"),
            ("STEP\n[metrics]\nnames = 'x'", 4, "expected one of talea"),
            ("STEP\n[metrics]\nrequets = 'x'", 4, "one of requests"),
            ("STEP\n[metrics]\ntasks = 'a b'", 4, "expected a name"),
            ("STEP\n[metrics]\ntasks = 7", 4, "expected a text, or true or false"),
            ("STEP\n[metrics]\ncounts_scrapes = 'x'", 4, "expected true or false"),
            ("STEP\n[metrics]\nrequests = true\nx = 1", 5, "expected"),
        ] {
            let text = text.replace("STEP", "[[step]]\nmethod = 'GET'");
            let error = Scenario::parse("x.toml", &text).unwrap_err();
            assert!(error.starts_with(&format!("x.toml:{line}: ")), "{text}: {error}");
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
