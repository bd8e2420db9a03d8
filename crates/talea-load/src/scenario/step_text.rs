//! A step of a scenario as it stands in a file.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, TE};
use hyper::{Method, StatusCode};
use serde::Deserialize;
use toml::Spanned;

use super::check::{Check, CheckKind};
use super::definition::{
    Body, BodyPart, Capture, ExpectedStatus, Flow, NumberOfResponses, Step, WebSocket,
};
use super::fault::{Fault, at};
use super::grpc::{self, GrpcMessage, GrpcMethod};
use super::template::{Form, Template};
use super::think::Think;
use super::value::Variable;
use crate::duration::parse_duration;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StepText {
    name: Option<String>,
    flow: Option<Spanned<String>>,
    method: Option<Spanned<String>>,
    grpc: Option<Spanned<GrpcText>>,
    websocket: Option<Spanned<WebSocketText>>,
    path: Option<Spanned<String>>,
    #[serde(default)]
    headers: BTreeMap<Spanned<String>, Spanned<String>>,
    json: Option<Spanned<serde_json::Value>>,
    body: Option<Spanned<String>>,
    body_file: Option<Spanned<String>>,
    multipart: Option<Spanned<BTreeMap<String, Spanned<PartText>>>>,
    expect: Option<Spanned<ExpectText>>,
    #[serde(default)]
    check: CheckText,
    #[serde(default)]
    pub(super) capture: BTreeMap<Spanned<String>, Spanned<String>>,
    #[serde(default)]
    measure: BTreeMap<String, Spanned<String>>,
    events: Option<Spanned<u64>>,
    think: Option<Spanned<ThinkText>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GrpcText {
    descriptors: Spanned<String>,
    method: Spanned<String>,
    message: Option<Spanned<serde_json::Value>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WebSocketText {
    #[serde(default)]
    send: Vec<Spanned<String>>,
    messages: Option<Spanned<u64>>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a status such as 200, or several, such as [200, 204]")]
enum ExpectText {
    One(u16),
    Some(Vec<u16>),
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckText {
    #[serde(default)]
    headers: BTreeMap<Spanned<String>, Spanned<String>>,
    contains: Option<Spanned<Texts>>,
    lacks: Option<Spanned<Texts>>,
    #[serde(default)]
    json: BTreeMap<Spanned<String>, Spanned<serde_json::Value>>,
    size: Option<Spanned<SizeText>>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a text, or several, such as [\"a\", \"b\"]")]
enum Texts {
    One(String),
    Some(Vec<String>),
}

impl Texts {
    fn all(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Some(texts) => texts,
        }
    }
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected a number of bytes, or the least and the most, such as [1, 4096]"
)]
enum SizeText {
    Exact(u64),
    Between([u64; 2]),
}

#[derive(Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "expected a text, or a file such as { file = \"a.png\", type = \"image/png\" }"
)]
enum PartText {
    Text(String),
    File { file: String, r#type: Option<String> },
}

#[derive(Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "expected a duration such as \"100ms\", two as [\"50ms\", \"2s\"], or { mean = \"1s\" }, with a \
                 deviation if it is normal"
)]
enum ThinkText {
    One(String),
    Between([String; 2]),
    Drawn { mean: String, deviation: Option<String> },
}

/// The methods that a request can have: those of HTTP, of WebDAV, and one that caches take.
const METHODS: [&str; 19] = [
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "OPTIONS",
    "QUERY",
    "TRACE",
    "PROPFIND",
    "PROPPATCH",
    "MKCOL",
    "COPY",
    "MOVE",
    "LOCK",
    "UNLOCK",
    "REPORT",
    "SEARCH",
    "PURGE",
];

/// The method of this name.
///
/// # Errors
/// It is none that is known; the error has them.
pub fn method(name: &str) -> Result<Method, String> {
    if !METHODS.contains(&name) {
        return Err(format!(
            "found the method {name:?}, expected one such as GET, in capitals: {}",
            METHODS.join(", ")
        ));
    }
    Method::from_bytes(name.as_bytes()).map_err(|error| error.to_string())
}

/// What a step refers to.
pub(super) struct Context<'a> {
    pub(super) variables: &'a [Variable],
    pub(super) flows: &'a [Flow],
    /// The flow of steps that name none.
    pub(super) flow: Option<usize>,
    /// The folder of the file, in which the files are that it names.
    pub(super) folder: &'a Path,
}

impl Context<'_> {
    fn place(&self, name: &str) -> Result<usize, String> {
        self.variables.iter().position(|variable| variable.name == name).ok_or_else(|| {
            let known: Vec<&str> = self.variables.iter().map(|known| known.name.as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            format!(
                "found {{{name}}}, which is neither a variable nor captured; known are: {known}"
            )
        })
    }

    fn template(&self, text: &Spanned<String>, form: Form) -> Result<Template, Fault> {
        self.template_of(text.as_ref(), form).map_err(at(text))
    }

    fn template_of(&self, text: &str, form: Form) -> Result<Template, String> {
        let mut template = Template::default();
        template.push(text, form, &mut |name: &str| self.place(name)).map(|()| template)
    }

    fn file(&self, path: &str) -> Result<Bytes, String> {
        let path = self.folder.join(path);
        let read = std::fs::read(&path).map(Bytes::from);
        read.map_err(|error| format!("{} cannot be read: {error}", path.display()))
    }
}

impl StepText {
    pub(super) fn step(
        self,
        fault: impl FnOnce(String) -> Fault,
        context: &Context<'_>,
    ) -> Result<Step, Fault> {
        self.refuse_beside_calls()?;
        let method = match (&self.method, &self.grpc, &self.websocket) {
            (Some(name), ..) => method(name.as_ref()).map_err(at(name))?,
            (None, Some(_), _) => Method::POST,
            (None, None, Some(_)) => Method::GET,
            (None, None, None) => {
                let words = "found no method, expected one such as method = \"GET\", or grpc = { … }, \
                             or websocket = { … }";
                return Err(fault(words.to_owned()));
            }
        };
        let grpc = self.grpc(context)?;
        let websocket = self.websocket(context)?;
        let flow = match &self.flow {
            None => context.flow,
            Some(name) => Some(flow(name.as_ref(), context.flows).map_err(at(name))?),
        };
        let path = match (&grpc, &self.path) {
            (Some((method, _)), _) => {
                let mut path = Template::default();
                path.push_text(&method.path());
                path
            }
            (None, Some(path)) => {
                check_path(path)?;
                context.template(path, Form::Path)?
            }
            (None, None) => Template::default(),
        };
        let mut headers = HeaderMap::new();
        let mut filled_headers = Vec::new();
        for (name, value) in &self.headers {
            let header = header_name(name)?;
            let filled = context.template(value, Form::Plain)?;
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
        let (grpc, body) = match grpc {
            Some((method, message)) => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
                headers.insert(TE, HeaderValue::from_static("trailers"));
                (Some(method), Some(Body(vec![BodyPart::Message(message)])))
            }
            None => (None, self.body(context, &mut headers)?),
        };
        let captures = self.capture.iter().map(|(name, pointer)| {
            check_pointer(pointer)?;
            let variable = context.place(name.as_ref()).map_err(at(name))?;
            Ok(Capture { variable, pointer: pointer.as_ref().clone() })
        });
        let captures = captures.collect::<Result<_, _>>()?;
        let measures = self.measure.iter().map(|(name, pointer)| {
            check_pointer(pointer)?;
            Ok(NumberOfResponses { name: name.clone(), pointer: pointer.as_ref().clone() })
        });
        let measures = measures.collect::<Result<_, _>>()?;
        if let Some(none) = self.events.as_ref().filter(|events| *events.as_ref() == 0) {
            return Err(at(none)("found 0 events, expected at least 1".to_owned()));
        }
        let default_name = match &self.grpc {
            Some(call) => call.as_ref().method.as_ref().clone(),
            None => {
                let path = self.path.as_ref().map_or("", |path| path.as_ref());
                format!("{method} {path}").trim_end().to_owned()
            }
        };
        let expected = match (&grpc, &websocket) {
            (Some(_), _) => ExpectedStatus::OneOf(vec![StatusCode::OK]),
            (None, Some(_)) => ExpectedStatus::OneOf(vec![StatusCode::SWITCHING_PROTOCOLS]),
            (None, None) => expected(self.expect)?,
        };
        let step = Step {
            name: self.name.unwrap_or(default_name),
            path,
            headers,
            filled_headers,
            body,
            expected,
            checks: self.check.checks(context)?,
            captures,
            measures,
            events: self.events.map(Spanned::into_inner),
            think: think(self.think)?,
            flow,
            method,
            grpc,
            websocket,
        };
        if step.name.is_empty() {
            return Err(fault("found an empty name, expected a name, or no key `name`".to_owned()));
        }
        Ok(step)
    }

    /// Fails if a step that calls a method of gRPC or opens a WebSocket says what only other requests have.
    fn refuse_beside_calls(&self) -> Result<(), Fault> {
        let call = match (&self.grpc, &self.websocket) {
            (None, None) => return Ok(()),
            (Some(_), _) => "grpc",
            (None, Some(_)) => "websocket",
        };
        let path = self.path.as_ref().map(Spanned::span).filter(|_| self.grpc.is_some());
        let websocket = self.websocket.as_ref().map(Spanned::span).filter(|_| self.grpc.is_some());
        for (place, name) in [
            (websocket, "websocket"),
            (path, "path"),
            (self.method.as_ref().map(Spanned::span), "method"),
            (self.json.as_ref().map(Spanned::span), "json"),
            (self.body.as_ref().map(Spanned::span), "body"),
            (self.body_file.as_ref().map(Spanned::span), "body_file"),
            (self.multipart.as_ref().map(Spanned::span), "multipart"),
            (self.expect.as_ref().map(Spanned::span), "expect"),
            (self.events.as_ref().map(Spanned::span), "events"),
        ] {
            if let Some(place) = place {
                let words = format!("found {name} beside {call}, which has none; remove {name}");
                return Err((place, words));
            }
        }
        Ok(())
    }

    /// The WebSocket that the step opens.
    fn websocket(&self, context: &Context<'_>) -> Result<Option<WebSocket>, Fault> {
        let Some(text) = &self.websocket else { return Ok(None) };
        let WebSocketText { send, messages } = text.as_ref();
        if let Some(none) = messages.as_ref().filter(|messages| *messages.as_ref() == 0) {
            return Err(at(none)("found 0 messages, expected at least 1".to_owned()));
        }
        let usual = send.len().max(1) as u64;
        let send = send.iter().map(|text| context.template(text, Form::Plain));
        let messages = messages.as_ref().map_or(usual, |messages| *messages.as_ref());
        Ok(Some(WebSocket { send: send.collect::<Result<_, _>>()?, messages }))
    }

    /// The method of gRPC that the step calls, and its message.
    fn grpc(&self, context: &Context<'_>) -> Result<Option<(GrpcMethod, GrpcMessage)>, Fault> {
        let Some(call) = &self.grpc else { return Ok(None) };
        let GrpcText { descriptors, method: name, message } = call.as_ref();
        let file = context.file(descriptors.as_ref()).map_err(at(descriptors))?;
        let pool = grpc::pool(&file)
            .map_err(|error| at(descriptors)(format!("{}: {error}", descriptors.as_ref())))?;
        let method = GrpcMethod::find(&pool, name.as_ref()).map_err(at(name))?;
        let mut place = |name: &str| context.place(name);
        let message = match message {
            Some(json) => method.message(json.as_ref(), &mut place).map_err(at(json))?,
            None => method.message(&serde_json::json!({}), &mut place).map_err(at(call))?,
        };
        Ok(Some((method, message)))
    }

    fn body(&self, context: &Context<'_>, headers: &mut HeaderMap) -> Result<Option<Body>, Fault> {
        let places = [
            self.json.as_ref().map(Spanned::span),
            self.body.as_ref().map(Spanned::span),
            self.body_file.as_ref().map(Spanned::span),
            self.multipart.as_ref().map(Spanned::span),
        ];
        let mut places = places.into_iter().flatten();
        if let (Some(_), Some(second)) = (places.next(), places.next()) {
            let words = "found two bodies, expected one of json, body, body_file and multipart";
            return Err((second, words.to_owned()));
        }
        if let Some(text) = &self.body {
            return Ok(Some(context.template(text, Form::Plain)?.into()));
        }
        if let Some(path) = &self.body_file {
            let bytes = context.file(path.as_ref()).map_err(at(path))?;
            return Ok(Some(Body(vec![BodyPart::Bytes(bytes)])));
        }
        if let Some(json) = &self.json {
            let kind = HeaderValue::from_static("application/json");
            headers.entry(CONTENT_TYPE).or_insert(kind);
            let mut body = Template::default();
            let mut place = |name: &str| context.place(name);
            body.push_json(json.as_ref(), &mut place).map_err(at(json))?;
            return Ok(Some(body.into()));
        }
        let Some(parts) = &self.multipart else { return Ok(None) };
        let kind = format!("multipart/form-data; boundary={BOUNDARY}");
        let kind = HeaderValue::try_from(kind).map_err(|error| at(parts)(error.to_string()))?;
        headers.insert(CONTENT_TYPE, kind);
        multipart(parts.as_ref(), context).map(Some)
    }
}

/// The boundary between the parts of a form (RFC 7578). No text of a person has it.
const BOUNDARY: &str = "talea-part-5f0c9e7d21b84a36";

fn multipart(
    parts: &BTreeMap<String, Spanned<PartText>>,
    context: &Context<'_>,
) -> Result<Body, Fault> {
    let mut body = Body::default();
    let push_text = |body: &mut Body, text: &str| {
        let mut template = Template::default();
        template.push_text(text);
        body.0.push(BodyPart::Text(template));
    };
    for (name, part) in parts {
        let name = in_disposition(name);
        let head = format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"");
        match part.as_ref() {
            PartText::Text(text) => {
                push_text(&mut body, &format!("{head}\r\n\r\n"));
                let text = context.template_of(text, Form::Plain).map_err(at(part))?;
                body.0.push(BodyPart::Text(text));
            }
            PartText::File { file, r#type } => {
                let bytes = context.file(file).map_err(at(part))?;
                let kind = r#type.as_deref().unwrap_or("application/octet-stream");
                if HeaderValue::from_str(kind).is_err() {
                    return Err(at(part)(format!(
                        "found the type {kind:?}, expected a media type"
                    )));
                }
                let file = Path::new(file).file_name().unwrap_or_default().to_string_lossy();
                let file = in_disposition(&file);
                let head = format!("{head}; filename=\"{file}\"\r\nContent-Type: {kind}\r\n\r\n");
                push_text(&mut body, &head);
                body.0.push(BodyPart::Bytes(bytes));
            }
        }
        push_text(&mut body, "\r\n");
    }
    push_text(&mut body, &format!("--{BOUNDARY}--\r\n"));
    Ok(body)
}

/// A name between quotes, as browsers write it.
fn in_disposition(name: &str) -> String {
    name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")
}

impl CheckText {
    fn checks(&self, context: &Context<'_>) -> Result<Vec<Check>, Fault> {
        let mut checks = Vec::new();
        let mut push = |words: String, kind| checks.push(Check { words, kind });
        for (name, value) in &self.headers {
            let header = header_name(name)?;
            let words = format!("the header {header} is {:?}", value.as_ref());
            push(words, CheckKind::Header(header, context.template(value, Form::Plain)?));
        }
        for (texts, verb) in [(&self.contains, "contains"), (&self.lacks, "lacks")] {
            let Some(texts) = texts else { continue };
            for text in texts.as_ref().all() {
                let template = context.template_of(text, Form::Plain).map_err(at(texts))?;
                let kind = match verb {
                    "contains" => CheckKind::Contains(template),
                    _ => CheckKind::Lacks(template),
                };
                push(format!("the body {verb} {text:?}"), kind);
            }
        }
        for (pointer, value) in &self.json {
            check_pointer(pointer)?;
            let expected = match value.as_ref() {
                serde_json::Value::String(text) => text.clone(),
                scalar @ (serde_json::Value::Number(_) | serde_json::Value::Bool(_)) => {
                    scalar.to_string()
                }
                other => {
                    let words = format!("found {other}, expected a text, a number, true or false");
                    return Err(at(value)(words));
                }
            };
            let words = format!("{} is {expected:?}", pointer.as_ref());
            let expected = context.template_of(&expected, Form::Plain).map_err(at(value))?;
            push(words, CheckKind::Json(pointer.as_ref().clone(), expected));
        }
        if let Some(size) = &self.size {
            let (range, words) = match size.as_ref() {
                SizeText::Exact(bytes) => (*bytes..=*bytes, format!("the body has {bytes} bytes")),
                SizeText::Between([least, most]) => {
                    (*least..=*most, format!("the body has {least} to {most} bytes"))
                }
            };
            if range.is_empty() {
                let words = "found the larger size first, expected the smaller one";
                return Err(at(size)(words.to_owned()));
            }
            push(words, CheckKind::Size(range));
        }
        Ok(checks)
    }
}

/// The flow of this name, by its place.
pub(super) fn flow(name: &str, flows: &[Flow]) -> Result<usize, String> {
    flows.iter().position(|flow| flow.name == name).ok_or_else(|| {
        let known: Vec<&str> = flows.iter().map(|flow| flow.name.as_str()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        format!("found the flow {name:?}, expected one of the table [flows], which has: {known}")
    })
}

fn header_name(name: &Spanned<String>) -> Result<HeaderName, Fault> {
    name.as_ref().parse().map_err(|_| {
        at(name)(format!("found the header name {:?}, expected a valid one", name.as_ref()))
    })
}

fn check_pointer(pointer: &Spanned<String>) -> Result<(), Fault> {
    if pointer.as_ref().is_empty() || pointer.as_ref().starts_with('/') {
        return Ok(());
    }
    let found = pointer.as_ref();
    Err(at(pointer)(format!("found {found:?}, expected a JSON pointer such as /data/id")))
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

fn think(text: Option<Spanned<ThinkText>>) -> Result<Option<Think>, Fault> {
    let Some(text) = text else { return Ok(None) };
    let fault = |words: String| (text.span(), words);
    let duration = |text: &str| -> Result<Duration, Fault> {
        let parsed = parse_duration(text);
        parsed.map_err(|error| fault(format!("{error}; expected a duration such as \"100ms\"")))
    };
    let range = match text.as_ref() {
        ThinkText::One(one) => duration(one)?..=duration(one)?,
        ThinkText::Between([least, most]) => duration(least)?..=duration(most)?,
        ThinkText::Drawn { mean, deviation: None } => {
            return Ok(Some(Think::Exponential(duration(mean)?)));
        }
        ThinkText::Drawn { mean, deviation: Some(deviation) } => {
            return Ok(Some(Think::Normal(duration(mean)?, duration(deviation)?)));
        }
    };
    if range.is_empty() {
        return Err(fault("found the longer time first, expected the shorter one".to_owned()));
    }
    Ok(Some(Think::Between(range)))
}
