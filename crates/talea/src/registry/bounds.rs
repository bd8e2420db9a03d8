//! The bound families of a registry, by number: handles of one family point to one place.

use std::any::{Any, TypeId};

/// The bound families, each found by its number.
#[derive(Debug, Default)]
pub(crate) struct Bounds {
    /// Numbers are given out one after the other, from 0.
    first: Vec<Option<&'static BoundEntry>>,
}

/// The data bound to a family for one type of metric and one type of labels.
#[derive(Debug)]
struct BoundEntry {
    labels: TypeId,
    bound: &'static (dyn Any + Send + Sync),
    next: Option<&'static Self>,
}

impl Bounds {
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
