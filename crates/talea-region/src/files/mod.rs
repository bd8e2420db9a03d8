//! Files that hold regions: trust in them, access to a new one, how one is made and replaced.

#[allow(unsafe_code)]
pub(crate) mod access;
pub(crate) mod beside;
#[allow(unsafe_code)]
pub(crate) mod descriptors;
#[allow(unsafe_code)]
pub(crate) mod tmpfs;
#[allow(unsafe_code)]
pub(crate) mod trust;
