//! A reader's file after it was opened: it may have gone from its path meanwhile.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

use super::reader::{DOING, Reader};
use crate::error::OpenError;
use crate::files::trust::{identity_of, open, trusted};

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
    /// At its path, and no longer trusted: it has another owner, or others may write to it.
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
    /// ids) that nobody else may write to. It is checked before it is opened, so that a FIFO, a
    /// device or a socket never is, and again when it is open, so that it cannot be replaced in
    /// between. No symbolic link is followed at the end of the path; its directories are the
    /// caller's to trust.
    ///
    /// # Errors
    ///
    /// [`OpenError::Untrusted`], with the state that was found and the one that was expected; the
    /// file cannot be read, or is not a region of this boot and layout.
    pub fn open_owned_by(path: impl AsRef<Path>, owners: &[u32]) -> Result<Self, OpenError> {
        let path = path.as_ref();
        let file = open(path, owners, OpenOptions::new().read(true))
            .map_err(|why| why.into_error(DOING, path))?;
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
