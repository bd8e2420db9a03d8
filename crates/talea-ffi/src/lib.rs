//! The C ABI of Talea: what bindings of other languages stand on. `include/talea.h` is its
//! header, docs/bindings.md says how to use it.
//!
//! Every function checks what it is given as far as C allows, and lets no panic out. Pointers
//! become references in `boundary` alone; what they must be is said there and in the header.

// The boundary to C: each function has a name that the linker sees, and takes pointers.
#![allow(unsafe_code)]
// What a caller must see to is the same for all: it stands at the head of the header.
#![allow(clippy::missing_safety_doc)]

mod boundary;
mod definition;
mod family;
mod fork;
mod kept;
mod metric;
mod number;
mod open;
mod pin;
mod read;
mod record;
mod registry;
mod render;
mod status;
mod text;

pub use definition::*;
pub use family::*;
pub use metric::Operation;
pub use number::*;
pub use open::*;
pub use read::*;
pub use record::*;
pub use registry::*;
pub use render::*;
pub use status::*;
pub use text::*;

/// The version of the ABI that this header describes. It changes when a program that was
/// compiled with an older header could break.
pub const TALEA_ABI_VERSION: u32 = 3;

/// The version of the ABI that the library has: where it is not TALEA_ABI_VERSION, the header
/// belongs to another library, and nothing else should be called.
#[unsafe(no_mangle)]
pub extern "C" fn talea_abi_version() -> u32 {
    TALEA_ABI_VERSION
}
