//! Files that hold regions: which are trusted, who may read a new one, how one is made and replaced.

pub(crate) mod access;
pub(crate) mod beside;
pub(crate) mod descriptors;
pub(crate) mod tmpfs;
pub(crate) mod trust;
