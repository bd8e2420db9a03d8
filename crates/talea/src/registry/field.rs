//! The field of a set that a registry registers, with the fields around it: their prefixes, and
//! which of them defined which metric.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The field of a set that defines a metric, by the metric's name. The field is a path, as
/// `read.conns` if the field `read` is a set too.
pub(super) type Owners = Mutex<HashMap<String, String>>;

/// The field that a registry was made for, in the fields that it lies in.
#[derive(Debug)]
pub(crate) struct Field {
    pub(super) set: &'static str,
    pub(super) field: &'static str,
    pub(super) prefix: &'static str,
    pub(super) owners: Arc<Owners>,
    pub(super) outer: Option<Arc<Field>>,
}

impl Field {
    /// The field itself, the one around it, and so on.
    fn outwards(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |field| field.outer.as_deref())
    }

    /// A metric's name with the prefixes of all fields.
    pub(crate) fn prefixed(&self, name: &str) -> String {
        self.outwards().fold(name.to_owned(), |name: String, field: &Self| {
            match (field.prefix, name.as_str()) {
                // An empty name stays one, so that it is refused.
                ("", _) | (_, "") => name,
                (prefix, name) => format!("{prefix}_{name}"),
            }
        })
    }

    /// Notes that the field defines a metric. The error names both fields if another one of its
    /// set, or of a set around it, defines it already.
    pub(crate) fn define(&self, metric: &str) -> Result<(), String> {
        let mut path = String::new();
        for Self { set, field, owners, .. } in self.outwards() {
            path = if path.is_empty() { (*field).to_owned() } else { format!("{field}.{path}") };
            let mut owners = owners.lock().unwrap_or_else(PoisonError::into_inner);
            let owner = owners.entry(metric.to_owned()).or_insert_with(|| path.clone());
            if *owner != path {
                return Err(format!(
                    "`{owner}` and `{path}` of `{set}` both have this name; give a set's field a \
                     prefix by #[metrics(prefix = \"…\")], or a metric another name"
                ));
            }
        }
        Ok(())
    }
}
