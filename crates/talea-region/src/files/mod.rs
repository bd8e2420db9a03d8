//! Files that hold regions: trust in them, access to a new one, how one is made and replaced.

pub(crate) mod access;
pub(crate) mod beside;
pub(crate) mod descriptors;
pub(crate) mod tmpfs;
pub(crate) mod trust;
