//! Reclamation: series that are idle or removed go, and their memory is used again; families are wiped.

mod base;
mod expire;
pub(crate) mod sweep;
mod wipe;
