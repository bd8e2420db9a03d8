//! Access to a region's file: its owner may read it, and a group if one is named.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use crate::config::Config;
use crate::memory::mapping::checked;

/// The mode of a file that its owner alone may read and write.
const OWNER: u32 = 0o600;
/// The mode of one that a group may read too. The group may not write: a writer can store any
/// value.
const GROUP: u32 = 0o640;

/// Gives a file that has no name yet the group and the mode that it is to have.
pub(crate) fn grant(file: &File, group: Option<u32>) -> io::Result<()> {
    let mode = match group {
        // The call below would take this number for no group.
        Some(u32::MAX) => {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no group has this number"));
        }
        Some(group) => {
            // SAFETY: a call on an open descriptor with integers only; -1 leaves the owner.
            checked(unsafe { libc::fchown(file.as_raw_fd(), libc::uid_t::MAX, group) })?;
            GROUP
        }
        None => OWNER,
    };
    // Set on the file itself, so no umask applies.
    file.set_permissions(std::fs::Permissions::from_mode(mode))
}

/// A notice if a file that existed already does not have the requested group and mode.
pub(crate) fn difference(file: &File, path: &Path, config: Config) -> Option<String> {
    let group = config.group?;
    let found = file.metadata().ok()?;
    let mode = found.mode() & 0o7777;
    (found.gid() != group || mode != GROUP).then(|| {
        format!(
            "{} has group {} and mode {mode:04o}, where group {group} and mode {GROUP:04o} were \
             asked for; a file that is there keeps what it has: change it with chgrp and chmod, \
             or remove it while no process uses it",
            path.display(),
            found.gid()
        )
    })
}
