//! Checks of responses, beside the status.

use std::fmt;
use std::ops::RangeInclusive;

use hyper::header::HeaderName;
use serde_json::Value as Json;

use super::captured::CapturedValue;
use super::template::Template;
use super::value::Values;
use crate::session::Answer;

/// What a response must have.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// It in words, for reports.
    pub(super) words: String,
    pub(super) kind: CheckKind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum CheckKind {
    /// A header with this value.
    Header(HeaderName, Template),
    /// A text in the body.
    Contains(Template),
    /// No such text in the body.
    Lacks(Template),
    /// This text, number or truth value at a JSON pointer.
    Json(String, Template),
    /// As many bytes of body.
    Size(RangeInclusive<u64>),
}

impl Check {
    /// Whether the body is needed.
    pub(crate) fn reads_body(&self) -> bool {
        !matches!(self.kind, CheckKind::Header(..) | CheckKind::Size(_))
    }

    /// Whether a response has it, whose body is read as this one. It has not if a variable of the check has no value.
    pub(crate) fn passes(&self, answer: &Answer, body: &[u8], values: &Values) -> bool {
        let filled = |template: &Template| {
            let mut text = String::new();
            template.fill(values, &mut text).ok().map(|()| text)
        };
        match &self.kind {
            CheckKind::Header(name, expected) => filled(expected).is_some_and(|expected| {
                let mut found = answer.headers.get_all(name).iter();
                found.any(|found| found.as_bytes() == expected.as_bytes())
            }),
            CheckKind::Contains(text) => {
                filled(text).is_some_and(|text| contains(body, text.as_bytes()))
            }
            CheckKind::Lacks(text) => {
                filled(text).is_some_and(|text| !contains(body, text.as_bytes()))
            }
            CheckKind::Json(pointer, expected) => {
                let body = serde_json::from_slice::<Json>(body).ok();
                let found = body.as_ref().and_then(|body| body.pointer(pointer));
                let found = found.and_then(CapturedValue::of);
                found.zip(filled(expected)).is_some_and(|(found, text)| found.text == text)
            }
            CheckKind::Size(bytes) => bytes.contains(&answer.bytes),
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

fn contains(body: &[u8], text: &[u8]) -> bool {
    text.is_empty() || body.windows(text.len()).any(|window| window == text)
}
