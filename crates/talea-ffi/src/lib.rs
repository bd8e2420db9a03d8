//! The C ABI of Talea, for bindings of other languages. `include/talea.h` is its header,
//! docs/reference/bindings.md its guide.
//!
//! Every function checks its arguments as far as C allows, and no panic leaves it. Pointers become
//! references in `boundary`; it and the header state their preconditions.

// The boundary to C: each function has a name that the linker sees, and takes pointers.
#![allow(unsafe_code)]
// The preconditions are the same for all functions, and stand at the head of the header.
#![allow(clippy::missing_safety_doc)]

mod boundary;
mod definition;
mod family;
mod fork;
mod kept;
mod kinds;
mod number;
mod open;
mod pin;
mod plane;
mod read;
mod record;
mod registry;
mod render;
mod status;
mod text;
mod updates;

pub use definition::*;
pub use family::*;
pub use number::*;
pub use open::*;
pub use plane::*;
pub use read::*;
pub use record::*;
pub use registry::*;
pub use render::*;
pub use status::*;
pub use text::*;
pub use updates::Operation;

/// The version of the ABI that this header describes. It changes if a program that was compiled
/// with an older header could break.
pub const TALEA_ABI_VERSION: u32 = 3;

/// The version of the library's ABI. If it is not TALEA_ABI_VERSION, the header belongs to another
/// library: call nothing else.
#[unsafe(no_mangle)]
pub extern "C" fn talea_abi_version() -> u32 {
    TALEA_ABI_VERSION
}
