//! Series: their records, the families that they belong to, the index that finds both, and the cells
//! that they own.
//!
//! - `record`, `family`: the records; `index`: from a text to its record; `groups`: from families to
//!   their series
//! - `cell`: the cells of a series; `extension`: the part that only some series have: `segments`,
//!   `exemplars`, the values at the last wipe
//! - `lent`: a copy of the cells that one thread adds to by plain stores
//! - `pins`: the processes that keep a series; `holds`: how often this process does; `incarnation`: a series from its making to its removal

pub(crate) mod cell;
pub(crate) mod exemplars;
pub(crate) mod extension;
pub(crate) mod family;
pub(crate) mod groups;
pub(crate) mod hold_counts;
pub(crate) mod holds;
pub(crate) mod incarnation;
pub(crate) mod index;
pub(crate) mod lent;
pub(crate) mod pins;
pub(crate) mod record;
pub(crate) mod segment;
pub(crate) mod segments;
