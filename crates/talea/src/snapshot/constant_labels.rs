//! The labels of a region that each of its series is shown with.
//!
//! They are stored as the definition of a family of their own, which has no series. So every reader
//! has them, also one outside of the process and after it died; and of those of several processes
//! the newest are shown that a living process uses, as of the definitions of a metric.

use talea_region::Snapshot;

use super::newest::use_of;
use crate::definition::names::is_usable_as_part_label;
use crate::labels::{LabelText, pairs};

/// The kind of the family, which no metric has.
pub(crate) const KIND: u8 = 9;

/// Its name, which no metric can have.
pub(crate) const NAME: &str = " constant labels";

#[derive(Clone, Debug, Default)]
pub(crate) struct ConstantLabels {
    /// Their text in the region, which they were read from.
    raw: Vec<u8>,
    text: String,
    names: Vec<String>,
}

impl ConstantLabels {
    /// Reads the constant labels of a snapshot anew. A text that Talea did not write counts as no labels.
    pub(super) fn read(&mut self, raw: &Snapshot) {
        let found = raw.families().iter().filter(|family| family.kind == KIND);
        let text = found.max_by_key(|family| use_of(family)).map_or(&[][..], |it| &it.definition);
        // Mostly both are empty. To compare empty slices takes 130 ns: glibc loads no byte, by a mask,
        // from an address without memory, and on AMD the processor handles that in microcode.
        if self.raw.is_empty() && text.is_empty() || self.raw == text {
            return;
        }
        self.raw = text.to_vec();
        let labels = pairs(std::str::from_utf8(text).unwrap_or_default());
        let is_sound = fault(labels.iter().map(|(name, _)| *name)).is_none();
        let labels = if is_sound { labels } else { Vec::new() };
        self.text = text_of(labels.iter().map(|(name, value)| (*name, value.as_str())));
        self.names = labels.into_iter().map(|(name, _)| name.to_owned()).collect();
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    pub(crate) fn pairs(&self) -> Vec<(&str, String)> {
        pairs(&self.text)
    }
}

/// The text of labels that have no [fault].
pub(crate) fn text_of<'a>(labels: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = LabelText::new();
    labels.for_each(|(name, value)| text.label(name, value));
    String::from_utf8_lossy(text.as_bytes()).into_owned()
}

/// Why labels of these names cannot be constant; `None` if they can.
pub(crate) fn fault<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut seen: Vec<&str> = Vec::new();
    for name in names {
        if !is_usable_as_part_label(name) {
            return Some(format!(
                "the name {name:?} cannot be used: a name consists of letters, digits and '_', \
                 begins with a letter, and is not one that Talea writes itself"
            ));
        }
        if seen.contains(&name) {
            return Some(format!("the label {name:?} is given twice"));
        }
        seen.push(name);
    }
    None
}
