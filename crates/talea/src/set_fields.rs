//! The fields of a set while it is registered: the prefixes that they give, and which of them
//! defined which metric.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::registry::Registry;

/// The fields of one set, one after the other.
#[derive(Debug)]
pub struct SetFields {
    registry: Registry,
    set: &'static str,
    owners: Arc<Owners>,
}

/// Which field of a set has which metric, by the metric's name: a path, as `read.conns` where the
/// field `read` is a set too.
type Owners = Mutex<HashMap<String, String>>;

impl SetFields {
    /// Those of a set of this type that is registered there.
    pub fn new(registry: &Registry, set: &'static str) -> Self {
        Self { registry: registry.clone(), set, owners: Arc::default() }
    }

    /// The registry for one field, which has its metrics begin with a prefix, or with none.
    pub fn field(&self, field: &'static str, prefix: &'static str) -> Registry {
        let outer = self.registry.field.clone();
        let owners = Arc::clone(&self.owners);
        let field = Field { set: self.set, field, prefix, owners, outer };
        Registry { field: Some(Arc::new(field)), ..self.registry.clone() }
    }
}

/// The field that a registry was made for, in the fields that it lies in.
#[derive(Debug)]
pub(crate) struct Field {
    set: &'static str,
    field: &'static str,
    prefix: &'static str,
    owners: Arc<Owners>,
    outer: Option<Arc<Field>>,
}

impl Field {
    /// The field itself, the one around it, and so on.
    fn outwards(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |field| field.outer.as_deref())
    }

    /// A metric's name with the prefixes of all fields.
    pub(crate) fn prefixed(&self, name: &str) -> String {
        let with = |name: String, field: &Self| match (field.prefix, name.as_str()) {
            // An empty name stays one, so that it is refused.
            ("", _) | (_, "") => name,
            (prefix, name) => format!("{prefix}_{name}"),
        };
        self.outwards().fold(name.to_owned(), with)
    }

    /// Notes that the field defines a metric; where another one of its set does, or of a set
    /// around it, both in words.
    pub(crate) fn define(&self, metric: &str) -> Result<(), String> {
        let mut path = String::new();
        for Self { set, field, owners, .. } in self.outwards() {
            path = if path.is_empty() { (*field).to_owned() } else { format!("{field}.{path}") };
            let mut owners = owners.lock().unwrap_or_else(PoisonError::into_inner);
            let owner = owners.entry(metric.to_owned()).or_insert_with(|| path.clone());
            if *owner != path {
                return Err(format!(
                    "`{owner}` and `{path}` of `{set}` would both be it; give a set's field a \
                     prefix by #[metrics(prefix = \"…\")], or a metric another name"
                ));
            }
        }
        Ok(())
    }
}
