//! One item.

use serde::Serialize;

/// An item, as stored and as shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Item {
    /// Given by the database, never given twice.
    pub id: i64,
    /// The value of the item.
    pub value: bool,
}
