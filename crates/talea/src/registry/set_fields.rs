//! Registers the fields of a set, each with its prefix.

use std::sync::Arc;

use super::Registry;
use super::field::{Field, Owners};

/// The fields of one set, one after the other.
#[derive(Debug)]
pub struct SetFields {
    registry: Registry,
    set: &'static str,
    owners: Arc<Owners>,
}

impl SetFields {
    /// The fields of a set of this type, for a registration in this registry.
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
