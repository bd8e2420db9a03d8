//! Which files are opened: a region that others could write to, or that is no file at all, is
//! neither read nor mapped; and a file that is open may have gone from its path meanwhile.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::error::OpenError;
use crate::reader::{Reader, kind_of};

/// Where the file is that a [`Reader`] reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standing {
    /// At its path, and as long as it was.
    Same,
    /// Nothing is at its path: it was removed or moved away.
    Gone,
    /// Another file is at its path.
    Replaced,
    /// At its path, and not to be trusted any more: of another owner, or others may write to it.
    Untrusted,
    /// At its path, and of another length, so that no copy of it can be whole.
    Resized {
        /// How long it is, in bytes.
        found: u64,
        /// How long it was when it was opened.
        expected: u64,
    },
}

impl Reader {
    /// Opens the region in a file for reading, if it is a regular file of one of `owners` (user
    /// ids) that nobody else may write to. It is looked at before it is opened, so that a FIFO, a
    /// device or a socket never is, and once more when it is open, so that nobody can put another
    /// file in its place between. No symbolic link is followed at the end of the path; its
    /// directories are the caller's to trust.
    ///
    /// # Errors
    ///
    /// [`OpenError::Untrusted`], with what was found and what was expected; the file cannot be
    /// read, or is not a region of this boot and layout.
    pub fn open_owned_by(path: impl AsRef<Path>, owners: &[u32]) -> Result<Self, OpenError> {
        let path = path.as_ref();
        let untrusted = |reason| OpenError::Untrusted { path: path.to_owned(), reason };
        let file = open(path, owners, OpenOptions::new().read(true)).map_err(|why| match why {
            NotOpened::Untrusted(distrust) => untrusted(distrust.reason),
            NotOpened::Replaced => untrusted(NotOpened::REPLACED.to_owned()),
            NotOpened::Denied { source, .. } | NotOpened::System(source) => {
                OpenError::System { doing: "read the region", path: Some(path.to_owned()), source }
            }
        })?;
        let mut reader = Self::of_file(path, file)?;
        reader.owners = Some(owners.into());
        Ok(reader)
    }

    /// The device and the number (inode) of the file, which no other file has as long as this
    /// one is open.
    ///
    /// # Errors
    ///
    /// The system refuses to look at it.
    pub fn identity(&self) -> io::Result<(u64, u64)> {
        Ok(identity_of(&self.file().metadata()?))
    }

    /// Whether `path`, under which the file was opened, still names it, and whether it is as long
    /// as it was; of one that was opened by its owner, also whether it would still be. Cost: two
    /// system calls.
    ///
    /// # Errors
    ///
    /// The system refuses to look at the path.
    pub fn standing(&self, path: impl AsRef<Path>) -> io::Result<Standing> {
        let named = match fs::symlink_metadata(path) {
            Ok(named) => named,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Standing::Gone),
            Err(error) => return Err(error),
        };
        if identity_of(&named) != self.identity()? {
            return Ok(Standing::Replaced);
        }
        if self.owners.as_deref().is_some_and(|owners| trusted(&named, owners).is_err()) {
            return Ok(Standing::Untrusted);
        }
        let (found, expected) = (named.len(), self.len());
        Ok(if found == expected { Standing::Same } else { Standing::Resized { found, expected } })
    }
}

/// Why a file is not open.
pub(crate) enum NotOpened {
    /// It is not what may be opened.
    Untrusted(Distrust),
    /// Another file was put in its place meanwhile.
    Replaced,
    /// It may be opened as far as it is trusted, but this process has no right to.
    Denied {
        /// Who owns it and its mode, in words.
        found: String,
        /// What the system said.
        source: io::Error,
    },
    /// The system failed otherwise.
    System(io::Error),
}

impl NotOpened {
    pub(crate) const REPLACED: &str =
        "another file was put in its place while it was opened; try again";
}

/// What keeps a file from being trusted.
pub(crate) struct Distrust {
    /// What was found and what was expected.
    pub(crate) reason: String,
    /// Whether a user who is trusted put there what is no file at all.
    pub(crate) is_mistake: bool,
}

/// Opens a file if it is a regular one of one of `owners` (user ids) that nobody else may write to.
/// It is looked at before it is opened and once more when it is open; no symbolic link is followed,
/// and no FIFO, device or socket is opened.
pub(crate) fn open(
    path: &Path,
    owners: &[u32],
    options: &mut OpenOptions,
) -> Result<File, NotOpened> {
    let named = fs::symlink_metadata(path).map_err(NotOpened::System)?;
    trusted(&named, owners).map_err(NotOpened::Untrusted)?;
    let opened = options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path);
    let file = opened.map_err(|source| match source.kind() {
        io::ErrorKind::PermissionDenied => NotOpened::Denied { found: whose(&named), source },
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

/// The users whose files this process maps: its own, root, and one that is named.
pub(crate) fn trusted_users(named: Option<u32>) -> Vec<u32> {
    // SAFETY: a call without arguments that only returns a number.
    let own = unsafe { libc::geteuid() };
    let mut users = vec![own];
    users.extend([0].into_iter().chain(named).filter(|&user| user != own));
    users
}

/// The device and the inode of what stands at a path; a link is not followed.
pub(crate) fn identity_at(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().as_ref().map(identity_of)
}

fn identity_of(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// Who owns a file, and its mode.
fn whose(found: &Metadata) -> String {
    format!("it belongs to user {} and has mode {:04o}", found.uid(), found.mode() & 0o7777)
}

/// Whether a file is what may be opened, or what it is instead.
fn trusted(found: &Metadata, owners: &[u32]) -> Result<(), Distrust> {
    let is_mistake = !found.is_file() && owners.contains(&found.uid());
    reason_against(found, owners).map_or(Ok(()), |reason| Err(Distrust { reason, is_mistake }))
}

fn reason_against(found: &Metadata, owners: &[u32]) -> Option<String> {
    let user = found.uid();
    if found.file_type().is_symlink() {
        return Some(format!(
            "a symbolic link of user {user}, which is not followed; expected a regular file"
        ));
    }
    if !found.is_file() {
        let kind = kind_of(found.file_type());
        return Some(format!("{kind} of user {user}; expected a regular file"));
    }
    if !owners.contains(&user) {
        let expected: Vec<String> = owners.iter().map(u32::to_string).collect();
        let expected = match expected.is_empty() {
            true => "no owner is allowed".to_owned(),
            false => format!("expected user {}", expected.join(" or ")),
        };
        return Some(format!("{}; {expected}", whose(found)));
    }
    let mode = found.mode() & 0o7777;
    match mode & 0o022 {
        0 => None,
        others => Some(format!(
            "its mode is {mode:04o}, so that {} could write nonsense to it; expected 0600 or 0640, \
             as chmod go-w makes it",
            if others & 0o002 != 0 { "anybody" } else { "anybody of its group" }
        )),
    }
}
