//! Reclamation: idle series are removed, memory of removed series is reused, and families are
//! wiped.

mod base;
mod expire;
mod retire;
pub(crate) mod sweep;
mod wipe;
