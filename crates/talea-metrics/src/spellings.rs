//! Names that are written in several ways and shown as one.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

/// The most names whose spelling is noted. A program may make up names of labels.
const MOST: usize = 1000;

/// The first spelling of each name, by the name as it is shown.
#[derive(Default)]
pub(crate) struct Spellings(RwLock<HashMap<String, Spelling>>);

struct Spelling {
    first: String,
    /// Whether another spelling was met.
    has_other: bool,
}

impl Spellings {
    /// Notes that `name` is shown as `shown`. Returns the first spelling, if this is the first call with
    /// another one.
    pub(crate) fn note(&self, shown: &str, name: &str) -> Option<String> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let is_known = match known.get(shown) {
            Some(spelling) => spelling.has_other || spelling.first == name,
            None => known.len() >= MOST,
        };
        drop(known);
        if is_known {
            return None;
        }
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let spelling = known
            .entry(shown.to_owned())
            .or_insert_with(|| Spelling { first: name.to_owned(), has_other: false });
        if spelling.first == name || spelling.has_other {
            return None;
        }
        spelling.has_other = true;
        Some(spelling.first.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_spelling_is_reported_once() {
        let spellings = Spellings::default();
        for (name, first) in [
            ("a.b", None),
            ("a.b", None),
            ("a-b", Some("a.b")),
            ("a-b", None),
            ("a.b", None),
            ("a b", None),
        ] {
            assert_eq!(spellings.note("a_b", name).as_deref(), first, "{name}");
        }
    }

    #[test]
    fn spellings_are_bounded() {
        let spellings = Spellings::default();
        for n in 0..2 * MOST {
            assert_eq!(spellings.note(&n.to_string(), "x"), None);
        }
        assert_eq!(spellings.0.read().unwrap().len(), MOST);
        assert_eq!(spellings.note("0", "y").as_deref(), Some("x"));
    }
}
