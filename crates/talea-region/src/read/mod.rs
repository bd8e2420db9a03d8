//! Reading a region from outside the processes that use it, without mapping it.

mod copy;
mod holdings;
mod overview;
mod reader;
mod standing;

pub use overview::{FamilyUse, Overview, ProcessSlot};
pub use reader::Reader;
pub use standing::Standing;
