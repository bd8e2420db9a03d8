//! The bound families of a registry, by number: handles of one family point to one place. And the
//! names of labels that are in use.

use std::any::{Any, TypeId};
use std::collections::HashMap;

/// The bound families, each found by its number.
#[derive(Debug, Default)]
pub(crate) struct Bounds {
    /// Numbers are given out one after the other, from 0.
    first: Vec<Option<&'static BoundEntry>>,
    /// The labels of metrics, each with a metric that has it.
    labels: HashMap<String, String>,
    /// The labels that every series has.
    constant_labels: Vec<String>,
}

/// The data bound to a family for one type of metric and one type of labels.
#[derive(Debug)]
struct BoundEntry {
    labels: TypeId,
    bound: &'static (dyn Any + Send + Sync),
    next: Option<&'static Self>,
}

impl Bounds {
    /// A label of this name, with a metric that has it.
    pub(super) fn label_owner(&self, name: &str) -> Option<(&str, &str)> {
        self.labels.get_key_value(name).map(|(label, metric)| (label.as_str(), metric.as_str()))
    }

    /// Notes the labels of a metric.
    ///
    /// # Errors
    ///
    /// One of them is a constant label, in words.
    pub(super) fn use_labels<'a>(
        &mut self,
        metric: &str,
        labels: impl Iterator<Item = &'a str> + Clone,
    ) -> Result<(), String> {
        if let Some(label) =
            labels.clone().find(|label: &&str| self.constant_labels.iter().any(|it| it == label))
        {
            return Err(format!(
                "its label {label:?} is a constant label of the registry; rename one of the two"
            ));
        }
        for label in labels {
            if !self.labels.contains_key(label) {
                self.labels.insert(label.to_owned(), metric.to_owned());
            }
        }
        Ok(())
    }

    pub(super) fn set_constant_labels<'a>(&mut self, names: impl Iterator<Item = &'a str>) {
        self.constant_labels = names.map(str::to_owned).collect();
    }

    pub(crate) fn get<B: Any>(&self, family: u32, labels: TypeId) -> Option<&'static B> {
        let mut entry = self.first.get(family as usize).copied().flatten();
        while let Some(found) = entry {
            match found.bound.downcast_ref() {
                Some(bound) if found.labels == labels => return Some(bound),
                _ => entry = found.next,
            }
        }
        None
    }

    pub(crate) fn insert(
        &mut self,
        family: u32,
        labels: TypeId,
        bound: &'static (dyn Any + Send + Sync),
    ) {
        let family = family as usize;
        if self.first.len() <= family {
            self.first.resize(family + 1, None);
        }
        let next = self.first[family];
        self.first[family] = Some(Box::leak(Box::new(BoundEntry { labels, bound, next })));
    }
}
