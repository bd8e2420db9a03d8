//! Labels whose values are in the extensions of a request or a response.

use http::Extensions;
use talea::{LabelText, LabelValue};

/// A label with the value of type `T` that the extensions hold. Value 0 stands for an absent value, value
/// n + 1 for the n-th of the type.
#[derive(Clone, Debug)]
pub(crate) struct ExtensionLabel {
    pub(crate) name: String,
    cardinality: fn() -> Option<usize>,
    fault: fn() -> Option<String>,
    index: fn(&Extensions) -> Option<usize>,
    write: fn(usize, &mut LabelText),
}

impl ExtensionLabel {
    pub(crate) fn new<T: LabelValue + Send + Sync + 'static>(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            cardinality: T::cardinality,
            fault: T::fault,
            index: |extensions| extensions.get::<T>().map(LabelValue::index),
            write: T::write_nth,
        }
    }

    /// The reason for which the label cannot be used, if there is one.
    pub(crate) fn fault(&self) -> Option<String> {
        let open = "the values of its type are not fixed, and each would be a series; use an enum \
                    with `#[derive(LabelValue)]`, a bool or a label_set!";
        match (self.cardinality)() {
            Some(_) => (self.fault)(),
            None => Some((self.fault)().unwrap_or_else(|| open.to_owned())),
        }
    }

    /// The number of values, with the one for an absent value.
    pub(crate) fn count(&self) -> usize {
        (self.cardinality)().unwrap_or(0) + 1
    }

    /// The number of the value that the extensions hold.
    #[inline]
    pub(crate) fn value(&self, extensions: &Extensions) -> usize {
        (self.index)(extensions).map_or(0, |index| index + 1)
    }

    /// The text of a value, not escaped.
    pub(crate) fn text(&self, value: usize) -> String {
        let mut text = LabelText::new();
        if let Some(index) = value.checked_sub(1) {
            (self.write)(index, &mut text);
        }
        unescaped(&String::from_utf8_lossy(text.as_bytes()))
    }
}

/// The number of combinations of values; `usize::MAX` for any larger number.
pub(crate) fn combinations(labels: &[ExtensionLabel]) -> usize {
    labels.iter().map(ExtensionLabel::count).fold(1, usize::saturating_mul)
}

/// The value of the n-th label in a combination, which is a number with one digit for each label.
pub(crate) fn nth_value(labels: &[ExtensionLabel], n: usize, combination: usize) -> usize {
    combination / combinations(&labels[n + 1..]) % labels[n].count()
}

fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        plain.push(match c {
            '\\' => match rest.next() {
                Some('n') => '\n',
                Some(other) => other,
                None => '\\',
            },
            c => c,
        });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    talea::label_set! { struct Odd; }

    #[test]
    fn a_value_with_quotes_and_line_ends_is_unescaped() {
        let texts = ["a\"b\\c\nd", "\\n", ""];
        Odd::fix(texts).unwrap();
        let label = ExtensionLabel::new::<Odd>("odd");
        assert_eq!(label.count(), 4);
        for (n, text) in texts.into_iter().enumerate() {
            let mut extensions = Extensions::new();
            extensions.insert(Odd::find(text).unwrap());
            assert_eq!(label.value(&extensions), n + 1);
            assert_eq!(label.text(n + 1), text);
        }
        assert_eq!(label.value(&Extensions::new()), 0);
        assert_eq!(label.text(0), "");
    }
}
