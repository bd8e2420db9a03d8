//! Reading a region from outside the processes that use it, without mapping it.

#[allow(unsafe_code)]
mod copy;
mod holdings;
mod overview;
mod reader;
mod standing;

pub use overview::{FamilyUse, Overview, ProcessSlot};
pub use reader::Reader;
pub use standing::Standing;
