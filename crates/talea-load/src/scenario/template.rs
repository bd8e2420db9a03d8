//! Texts with variables in braces.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value as Json;

use super::value::Values;

/// All but letters, digits and `-._~` (RFC 3986, 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A text with variables, by their places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Variable(usize, Form),
}

/// How a value is written where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Plain,
    /// As part of a path's segment or a query: other characters are percent-encoded.
    Path,
    /// Within a text of JSON: quotes and so on are escaped.
    InJsonText,
    /// In place of a text of JSON: a number stays a number.
    Json,
}

/// Why a step makes no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoRequest {
    /// The variable at this place has no value yet, or one that cannot stand in a path, which is empty, `.` or `..`.
    Unfilled(usize),
    /// With its values it is no request.
    Malformed,
}

impl Template {
    /// Appends text that stands as it is.
    pub fn push_text(&mut self, text: &str) {
        if let Some(Part::Text(last)) = self.parts.last_mut() {
            last.push_str(text);
        } else if !text.is_empty() {
            self.parts.push(Part::Text(text.to_owned()));
        }
    }

    pub(crate) fn push_variable(&mut self, variable: usize, form: Form) {
        self.parts.push(Part::Variable(variable, form));
    }

    /// Appends another one.
    pub(crate) fn append(&mut self, other: Self) {
        for part in other.parts {
            match part {
                Part::Text(text) => self.push_text(&text),
                variable @ Part::Variable(..) => self.parts.push(variable),
            }
        }
    }

    /// Takes a text apart. `place` finds a variable by its name; `{{` and `}}` are braces.
    /// Fails when a brace is not closed, or `place` finds none.
    pub fn push(
        &mut self,
        text: &str,
        form: Form,
        place: &mut impl FnMut(&str) -> Result<usize, String>,
    ) -> Result<(), String> {
        let mut rest = text;
        let plain = |text: &str| match form {
            Form::InJsonText => escaped(text),
            _ => text.to_owned(),
        };
        while let Some(at) = rest.find(['{', '}']) {
            let (before, brace) = rest.split_at(at);
            self.push_text(&plain(before));
            if let Some(behind) = brace.strip_prefix("{{").or(brace.strip_prefix("}}")) {
                self.push_text(&brace[..1]);
                rest = behind;
                continue;
            }
            let closed = brace.strip_prefix('{').and_then(|inside| inside.split_once('}'));
            let Some((name, behind)) = closed else {
                let fault = "a single brace; write {name} for a variable, {{ for a brace";
                return Err(format!("found {fault}"));
            };
            self.push_variable(place(name)?, form);
            rest = behind;
        }
        self.push_text(&plain(rest));
        Ok(())
    }

    /// Writes JSON whose texts may have variables.
    /// Fails as [`Template::push`] does.
    pub(crate) fn push_json(
        &mut self,
        json: &Json,
        place: &mut impl FnMut(&str) -> Result<usize, String>,
    ) -> Result<(), String> {
        match json {
            Json::String(text) => {
                let name = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
                match name.filter(|name| !name.contains(['{', '}'])) {
                    // It stands alone, so a number stays a number.
                    Some(name) => self.push_variable(place(name)?, Form::Json),
                    None => self.push_json_text(text, place)?,
                }
            }
            Json::Array(values) => {
                self.push_text("[");
                for (n, value) in values.iter().enumerate() {
                    self.push_text(if n == 0 { "" } else { "," });
                    self.push_json(value, place)?;
                }
                self.push_text("]");
            }
            Json::Object(fields) => {
                self.push_text("{");
                for (n, (name, value)) in fields.iter().enumerate() {
                    self.push_json_key(n, name);
                    self.push_json(value, place)?;
                }
                self.push_text("}");
            }
            plain => self.push_text(&plain.to_string()),
        }
        Ok(())
    }

    /// Writes a text of JSON, which stays one whatever its values are.
    pub(crate) fn push_json_text(
        &mut self,
        text: &str,
        place: &mut impl FnMut(&str) -> Result<usize, String>,
    ) -> Result<(), String> {
        self.push_text("\"");
        self.push(text, Form::InJsonText, place)?;
        self.push_text("\"");
        Ok(())
    }

    /// Begins the nth field of an object.
    pub(crate) fn push_json_key(&mut self, n: usize, name: &str) {
        self.push_text(if n == 0 { "" } else { "," });
        self.push_text(&quoted(name));
        self.push_text(":");
    }

    /// The text without variables, if it has none.
    pub fn constant(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Whether it begins with a slash, whatever its values are.
    pub fn begins_with_slash(&self) -> bool {
        matches!(self.parts.first(), Some(Part::Text(text)) if text.starts_with('/'))
    }

    /// Writes the text with the values filled in.
    /// Fails when a value is not there, or cannot stand where it should.
    pub fn fill(&self, values: &Values, into: &mut String) -> Result<(), NoRequest> {
        for part in &self.parts {
            let (variable, form) = match part {
                Part::Text(text) => {
                    into.push_str(text);
                    continue;
                }
                Part::Variable(variable, form) => (*variable, *form),
            };
            let value = values.get(variable).ok_or(NoRequest::Unfilled(variable))?;
            match form {
                Form::Path if matches!(value.text.as_str(), "" | "." | "..") => {
                    return Err(NoRequest::Unfilled(variable));
                }
                Form::Path => into.extend(utf8_percent_encode(&value.text, RESERVED)),
                Form::InJsonText => into.push_str(&escaped(&value.text)),
                Form::Json if value.is_text => into.push_str(&quoted(&value.text)),
                Form::Plain | Form::Json => into.push_str(&value.text),
            }
        }
        Ok(())
    }
}

/// A text as it stands between the quotes of JSON.
fn escaped(text: &str) -> String {
    let quoted = quoted(text);
    quoted[1..quoted.len() - 1].to_owned()
}

fn quoted(text: &str) -> String {
    Json::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::super::captured::CapturedValue;
    use super::super::value::{Source, Variable};
    use super::*;

    fn template(text: &str, form: Form) -> Result<Template, String> {
        let mut template = Template::default();
        template
            .push(text, form, &mut |name: &str| match name {
                "id" => Ok(0),
                other => Err(format!("no {other}")),
            })
            .map(|()| template)
    }

    fn filled(template: &Template, value: Option<CapturedValue>) -> Result<String, NoRequest> {
        let id = Variable { name: "id".to_owned(), source: Source::Captured };
        let mut values = Values::new(&[id], &[], 0);
        value.into_iter().for_each(|value| values.set(0, value));
        let mut text = String::new();
        template.fill(&values, &mut text).map(|()| text)
    }

    #[test]
    fn a_value_stands_as_its_place_asks_for() {
        let text = |text| Some(CapturedValue::text(text));
        let number = || Some(CapturedValue { text: "7".to_owned(), is_text: false });
        for (form, value, expected) in [
            (Form::Plain, text("a \"b\"/ü"), Ok("{<a \"b\"/ü>}")),
            (Form::Path, text("a \"b\"/ü"), Ok("{<a%20%22b%22%2F%C3%BC>}")),
            (Form::InJsonText, text("a \"b\"/ü"), Ok("{<a \\\"b\\\"/ü>}")),
            (Form::Json, text("a \"b\"/ü"), Ok("{<\"a \\\"b\\\"/ü\">}")),
            (Form::Json, number(), Ok("{<7>}")),
            (Form::Path, number(), Ok("{<7>}")),
            (Form::Path, text("..."), Ok("{<...>}")),
            (Form::Path, text(""), Err(NoRequest::Unfilled(0))),
            (Form::Path, text("."), Err(NoRequest::Unfilled(0))),
            (Form::Path, text(".."), Err(NoRequest::Unfilled(0))),
            (Form::Path, None, Err(NoRequest::Unfilled(0))),
        ] {
            let template = template("{{<{id}>}}", form).unwrap();
            let found = filled(&template, value);
            assert_eq!(found.as_deref().map_err(|error| *error), expected, "{form:?}");
        }
    }

    #[test]
    fn a_brace_alone_and_an_unknown_variable_are_refused() {
        for text in ["{", "a}b", "{id", "}"] {
            assert!(template(text, Form::Plain).unwrap_err().contains("a single brace"));
        }
        assert_eq!(template("{x}", Form::Plain).unwrap_err(), "no x");
        assert_eq!(template("plain", Form::Plain).unwrap().constant(), Some("plain"));
    }
}
