//! Errors of opening a region and of registering a family.

use std::fmt;
use std::io;
#[cfg(all(target_os = "linux", not(loom)))]
use std::path::Path;
use std::path::PathBuf;

/// Why a region could not be opened. Its `Debug` form is its text, as `main` shows an error that it
/// returns.
#[non_exhaustive]
pub enum OpenError {
    /// The limits that were asked for do not fit each other.
    Limits(String),
    /// The system refused memory or a file.
    System {
        /// The operation that failed.
        doing: &'static str,
        /// The file, where there is one.
        path: Option<PathBuf>,
        /// The system's error.
        source: io::Error,
    },
    /// A new file could not be given to the group that may read it.
    Group {
        /// The group's number.
        group: u32,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is not opened, since not only those that are trusted could write to it.
    Untrusted {
        /// The file.
        path: PathBuf,
        /// The state that was found, the one that was expected, and a remedy.
        reason: String,
    },
    /// The file is not on tmpfs, where writing back pages could stall writers.
    NotTmpfs(PathBuf),
    /// The file is no region, of whatever layout. It stays as it is.
    Foreign(PathBuf),
    /// The file or memory is not a region of this boot and layout.
    Damaged {
        /// The file.
        path: PathBuf,
        /// The state that was found.
        reason: String,
    },
    /// The environment variable `TALEA_PLANES` has an unknown value.
    AddPath(String),
    /// Files can be shared on Linux only.
    Unsupported,
}

#[cfg(all(target_os = "linux", not(loom)))]
impl OpenError {
    /// Makes an error of the system's about a file.
    pub(crate) fn system(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> Self {
        move |source| Self::System { doing, path: Some(path.to_owned()), source }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AddPath(found) => write!(
                f,
                "TALEA_PLANES is {found:?}, where restartable, atomic or single was expected; unset \
                 it for the default"
            ),
            Self::Limits(fault) => write!(f, "a region cannot be laid out with {fault}"),
            Self::System { doing, path: Some(path), source } => {
                write!(f, "cannot {doing} {}: {source}", path.display())?;
                remedy(source.kind()).map_or(Ok(()), |remedy| write!(f, "; {remedy}"))
            }
            Self::System { doing, path: None, source } => write!(f, "cannot {doing}: {source}"),
            Self::Group { group, path, source } => write!(
                f,
                "cannot give {} to group {group}: {source}; who makes the file must be in the \
                 group, or root: add its user to it, or name another group",
                path.display()
            ),
            Self::Untrusted { path, reason } => {
                write!(f, "{} is not opened: {reason}", path.display())
            }
            Self::NotTmpfs(path) => write!(
                f,
                "{} is not on tmpfs, and a disk that writes pages back can stall or kill writers; use a path under /dev/shm or another tmpfs",
                path.display()
            ),
            Self::Foreign(path) => write!(
                f,
                "{} is a file of something else: it does not begin as a region does, and stays as it is; \
                 use another path, or remove the file",
                path.display()
            ),
            Self::Damaged { path, reason } => {
                write!(f, "{} is no region that can be read: {reason}", path.display())
            }
            Self::Unsupported => write!(
                f,
                "a region in a file needs Linux; on this platform use a region of the process's own memory"
            ),
        }
    }
}

/// The remedy for a file that the system refused.
fn remedy(refusal: io::ErrorKind) -> Option<&'static str> {
    Some(match refusal {
        io::ErrorKind::NotFound => "make the directory first, or use a path under /dev/shm",
        io::ErrorKind::PermissionDenied => {
            "run as the user that owns it, or use a path that this user may write to"
        }
        io::ErrorKind::StorageFull => {
            "make room there, or make the tmpfs larger (of a container, by --shm-size)"
        }
        io::ErrorKind::ReadOnlyFilesystem => "use a tmpfs that is mounted writable",
        _ => return None,
    })
}

impl fmt::Debug for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Without a source, since the text has the cause.
impl std::error::Error for OpenError {}

/// Why a family could not be registered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FamilyError {
    /// This process registered a family of this name with another definition.
    Conflict,
    /// The family table, the index or the arena is full.
    Full,
    /// The name or the definition is longer than 16 MiB, or a series would have
    /// more cells than 65,535.
    TooLong,
}

impl fmt::Display for FamilyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Conflict => "a family of this name is registered with another definition",
            Self::Full => "the region is full; create it with more bytes",
            Self::TooLong => "the name, the definition or the number of cells is too large",
        })
    }
}

impl std::error::Error for FamilyError {}

/// The reason for which a new series was not made. The caller uses the family's overflow series
/// instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Overflow {
    /// The family has as many series as its limit allows.
    Limit,
    /// The region has no room for another record, text or cell.
    Full,
    /// The label text is longer than 16 MiB.
    TooLong,
}

impl fmt::Display for Overflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Limit => "the family has as many series as its limit allows",
            Self::Full => "the region has no room for another series",
            Self::TooLong => "the labels are longer than 16 MiB",
        })
    }
}

impl std::error::Error for Overflow {}
