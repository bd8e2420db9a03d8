//! Where a region is, and opening it.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt;
use std::io::ErrorKind;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use talea::outside::{Look, Reader};
use talea::{OpenError, Registry};

/// Where a region is: in a file, or in the memory of a process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RegionPlace {
    File(PathBuf),
    Process(u32),
}

impl RegionPlace {
    /// Opens the region for reading, without taking part.
    pub fn open(&self) -> Result<Reader> {
        match self {
            Self::File(path) => Reader::open(path).map_err(region_error),
            Self::Process(pid) => {
                Reader::of_process(*pid).map_err(region_error).with_context(|| self.expected())
            }
        }
    }

    /// The content of the region, and its state.
    pub fn look(&self) -> Result<Look> {
        self.open()?.look().map_err(region_error)
    }

    /// Takes part, as long as this process lives. A file belongs to one of these users, if any are named.
    pub fn attach(&self, owners: &[u32]) -> Result<Registry> {
        match self {
            Self::File(path) if owners.is_empty() => Registry::attach(path).map_err(region_error),
            Self::File(path) => Registry::attach_owned_by(path, owners).map_err(region_error),
            Self::Process(pid) => Registry::attach_to_process(*pid)
                .map_err(region_error)
                .with_context(|| self.expected()),
        }
    }

    fn expected(&self) -> String {
        format!(
            "{self}: expected one of yours that has a region in memory; if it has one in a file, \
             name that"
        )
    }
}

impl fmt::Display for RegionPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => f.write_str(&text_of(path.as_os_str())),
            Self::Process(pid) => write!(f, "process {pid}"),
        }
    }
}

/// A name as text. Names that differ do so as text too, also those that are no UTF-8.
pub(crate) fn text_of(name: &OsStr) -> Cow<'_, str> {
    match name.to_str() {
        Some(text) => Cow::Borrowed(text),
        None => Cow::Owned(name.as_encoded_bytes().escape_ascii().to_string()),
    }
}

/// An error of a region, which states all of its cause itself.
pub fn region_error(error: talea::Error) -> anyhow::Error {
    anyhow!(region_reason(&error))
}

/// Why a region cannot be read. The remedies of some errors are those for a region that is to be made.
pub(crate) fn region_reason(error: &talea::Error) -> String {
    match error {
        talea::Error::Open(OpenError::System { doing, path: Some(path), source }) => {
            let remedy = match source.kind() {
                ErrorKind::NotFound => "",
                ErrorKind::PermissionDenied => "; run it as the user that the service runs as",
                _ => return error.to_string(),
            };
            format!("cannot {doing} {}: {source}{remedy}", text_of(path.as_os_str()))
        }
        talea::Error::Open(OpenError::Untrusted { reason, .. })
            if reason.contains("belongs to") =>
        {
            format!("{error}; if you trust the user that it belongs to, name that with --owner")
        }
        _ => error.to_string(),
    }
}
