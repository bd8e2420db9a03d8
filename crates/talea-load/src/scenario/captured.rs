//! A value that was captured, or stands in a file, with its kind.

use serde_json::Value as Json;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CapturedValue {
    pub(crate) text: String,
    /// Whether it is a text in JSON too, rather than a number or a truth value.
    pub is_text: bool,
}

impl CapturedValue {
    pub(crate) fn text(text: &str) -> Self {
        Self { text: text.to_owned(), is_text: true }
    }

    /// A number, or a truth value.
    pub(crate) fn number(value: impl ToString) -> Self {
        Self { text: value.to_string(), is_text: false }
    }

    /// The value at a JSON pointer of an answer, if it is a text, a number or a truth value.
    pub(crate) fn at(answer: &[u8], pointer: &str) -> Option<Self> {
        let answer: Json = serde_json::from_slice(answer).ok()?;
        answer.pointer(pointer).and_then(Self::of)
    }

    /// A text, a number or a truth value of JSON.
    pub(crate) fn of(json: &Json) -> Option<Self> {
        match json {
            Json::String(text) => Some(Self::text(text)),
            found @ (Json::Number(_) | Json::Bool(_)) => Some(Self::number(found)),
            Json::Null | Json::Array(_) | Json::Object(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_at_a_pointer_is_captured_with_its_kind() {
        let answer = br#"{"data":{"id":7,"name":"a\"b","on":true,"none":null,"all":[{"x":1}]}}"#;
        let number = |text| Some(CapturedValue::number(text));
        for (pointer, expected) in [
            ("/data/id", number("7")),
            ("/data/name", Some(CapturedValue::text("a\"b"))),
            ("/data/on", number("true")),
            ("/data/all/0/x", number("1")),
            ("/data/none", None),
            ("/data/all", None),
            ("/data", None),
            ("/id", None),
        ] {
            assert_eq!(CapturedValue::at(answer, pointer), expected, "{pointer}");
        }
        assert_eq!(CapturedValue::at(b"no JSON", "/id"), None);
    }
}
