//! Trust in files: a file that others could write to, or that is not a regular file, is neither read
//! nor mapped.

use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::error::OpenError;

/// Why a file is not open.
pub(crate) enum NotOpened {
    /// It may not be opened.
    Untrusted(Distrust),
    /// Another file was put in its place meanwhile.
    Replaced,
    /// It is trusted, but this process has no right to open it.
    Denied {
        /// Its owner and its mode, in words.
        found: String,
        source: io::Error,
    },
    /// The system failed otherwise.
    System(io::Error),
}

impl NotOpened {
    /// The error for a caller that was doing something with the file.
    pub(crate) fn into_error(self, doing: &'static str, path: &Path) -> OpenError {
        let reason = match self {
            Self::Untrusted(distrust) => distrust.reason,
            Self::Replaced => {
                "another file was put in its place while it was opened; try again".to_owned()
            }
            Self::Denied { source, .. } | Self::System(source) => {
                return OpenError::system(doing, path)(source);
            }
        };
        OpenError::Untrusted { path: path.to_owned(), reason }
    }
}

/// The reason why a file is not trusted.
pub(crate) struct Distrust {
    /// The state that was found and the one that was expected.
    pub(crate) reason: String,
    /// Whether a trusted user put something other than a regular file there.
    pub(crate) is_mistake: bool,
}

/// Opens a file if it is a regular one of one of `owners` (user ids) that nobody else may write to.
/// It is checked before it is opened and again when it is open; no symbolic link is followed, and
/// no FIFO, device or socket is opened. If another file is put in its place meanwhile, that one is opened.
pub(crate) fn open(
    path: &Path,
    owners: &[u32],
    options: &mut OpenOptions,
) -> Result<File, NotOpened> {
    /// Nobody has a reason to replace it as often.
    const ATTEMPTS: usize = 10;
    for _ in 1..ATTEMPTS {
        match open_once(path, owners, options) {
            Err(NotOpened::Replaced) => {}
            result => return result,
        }
    }
    open_once(path, owners, options)
}

fn open_once(path: &Path, owners: &[u32], options: &mut OpenOptions) -> Result<File, NotOpened> {
    let named = fs::symlink_metadata(path).map_err(NotOpened::System)?;
    trusted(&named, owners).map_err(NotOpened::Untrusted)?;
    let opened = options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path);
    let file = opened.map_err(|source| match source.kind() {
        io::ErrorKind::PermissionDenied => {
            NotOpened::Denied { found: owner_and_mode(&named), source }
        }
        _ => NotOpened::System(source),
    })?;
    let opened = file.metadata().map_err(NotOpened::System)?;
    if identity_of(&named) != identity_of(&opened) {
        return Err(NotOpened::Replaced);
    }
    // Its owner and its mode may have changed between.
    trusted(&opened, owners).map_err(NotOpened::Untrusted)?;
    Ok(file)
}

/// Whether a path names a file that is open.
pub(crate) fn names(path: &Path, file: &File) -> bool {
    let named = identity_at(path);
    named.is_some() && named == file.metadata().ok().as_ref().map(identity_of)
}

/// The users whose files this process maps: its own user, root, and a named one.
pub(crate) fn trusted_users(named: Option<u32>) -> Vec<u32> {
    // SAFETY: a call without arguments that only returns a number.
    let own = unsafe { libc::geteuid() };
    let mut users = vec![own];
    users.extend([0].into_iter().chain(named).filter(|&user| user != own));
    users
}

/// The device and the inode of the file at a path; a symbolic link is not followed.
pub(crate) fn identity_at(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().as_ref().map(identity_of)
}

pub(crate) fn identity_of(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

fn owner_and_mode(found: &Metadata) -> String {
    format!("it belongs to user {} and has mode {:04o}", found.uid(), found.mode() & 0o7777)
}

/// Checks that a file may be opened; otherwise the reason.
pub(crate) fn trusted(found: &Metadata, owners: &[u32]) -> Result<(), Distrust> {
    let is_mistake = !found.is_file() && owners.contains(&found.uid());
    reason_against(found, owners).map_or(Ok(()), |reason| Err(Distrust { reason, is_mistake }))
}

fn reason_against(found: &Metadata, owners: &[u32]) -> Option<String> {
    let user = found.uid();
    if !found.is_file() {
        let kind = kind_of(found.file_type());
        let not_followed =
            if found.file_type().is_symlink() { ", which is not followed" } else { "" };
        return Some(format!("{kind} of user {user}{not_followed}; expected a regular file"));
    }
    if !owners.contains(&user) {
        let expected: Vec<String> = owners.iter().map(u32::to_string).collect();
        let expected = match expected.is_empty() {
            true => "no owner is allowed".to_owned(),
            false => format!("expected user {}", expected.join(" or ")),
        };
        return Some(format!("{}; {expected}", owner_and_mode(found)));
    }
    let mode = found.mode() & 0o7777;
    match mode & 0o022 {
        0 => None,
        others => Some(format!(
            "its mode is {mode:04o}, so that {} could write nonsense to it; expected 0600 or 0640, \
             as chmod go-w makes it",
            if others & 0o002 != 0 { "any user" } else { "any user of its group" }
        )),
    }
}

/// The kind of something that is not a regular file.
pub(crate) fn kind_of(found: FileType) -> &'static str {
    match found {
        found if found.is_dir() => "a directory",
        found if found.is_fifo() => "a FIFO",
        found if found.is_socket() => "a socket",
        found if found.is_symlink() => "a symbolic link",
        _ => "a device",
    }
}
