//! The labels of a key as Talea has them: text that finds a series.

use std::collections::BTreeMap;

use metrics::Key;
use talea::{LabelText, Labels};

use crate::names;
use crate::spellings::Spellings;

/// Labels that each call may name otherwise, as text that is escaped and in one order.
#[derive(Clone, Copy)]
pub(crate) struct Free<'a>(pub(crate) &'a str);

impl Labels for Free<'_> {
    type Static = Free<'static>;

    /// A family declares its label names once, but each call may have others. So it declares only
    /// the label of the overflow series, and its definition does not depend on the first call.
    const NAMES: &'static [&'static str] = &["otel_metric_overflow"];

    #[inline]
    fn write(&self, out: &mut LabelText) {
        out.push_raw(self.0);
    }
}

/// The most labels of a series; readers refuse a region that has one of more than 1,024.
const MOST_LABELS: usize = 1000;

/// The text of a key's labels and of those that all keys have, unless they have them
/// themselves. Labels beyond a thousand are left out. The spellings are the spellings of its metric's labels.
pub(crate) fn text(key: &Key, common: &[(String, String)], spellings: &Spellings) -> String {
    let common = common.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let own = key.labels().map(|label| (label.key(), label.value()));
    // Keys are equal whatever their order, so their texts are too.
    let mut all = BTreeMap::new();
    for (name, value) in common.chain(own) {
        let shown = names::label(name);
        if let Some(first) = spellings.note(&shown, name) {
            talea::notice(format_args!(
                "the labels {first:?} and {name:?} of {:?} are both shown as {shown:?}: of one call, the \
                 latter counts. Rename one of them",
                key.name()
            ));
        }
        all.insert(shown, value);
    }
    let mut text = LabelText::new();
    let shown = all.iter().filter(|(_, value)| !value.is_empty());
    for (name, value) in shown.take(MOST_LABELS) {
        text.label(name, *value);
    }
    String::from_utf8_lossy(text.as_bytes()).into_owned()
}

#[cfg(test)]
mod tests {
    use metrics::Label;

    use super::*;

    fn text_of(labels: &[(&'static str, &'static str)]) -> String {
        let labels: Vec<Label> = labels.iter().map(|&(k, v)| Label::new(k, v)).collect();
        let common = [("zone".to_owned(), "a".to_owned())];
        text(&Key::from_parts("x", labels), &common, &Spellings::default())
    }

    #[test]
    fn a_label_has_one_value_and_an_empty_one_is_none() {
        assert_eq!(text_of(&[("a.b", "1"), ("a-b", "2"), ("zone", "")]), r#"a_b="2""#);
        assert_eq!(text_of(&[("zone", "b")]), r#"zone="b""#);
    }
}
