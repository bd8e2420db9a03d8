//! Regions in the memory of other processes, reached through their descriptors.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::error::OpenError;
use crate::memory::mapping::SEALS;

/// The first region in memory among the descriptors of a process, as a path.
pub(crate) fn descriptor_of_process(pid: u32) -> Result<PathBuf, OpenError> {
    let descriptors = Path::new("/proc").join(pid.to_string()).join("fd");
    let failed = OpenError::system("look for a region among the descriptors in", &descriptors);
    for entry in std::fs::read_dir(&descriptors).map_err(&failed)? {
        let path = entry.map_err(&failed)?.path();
        let is_region = std::fs::read_link(&path)
            .is_ok_and(|target| target.to_string_lossy().starts_with("/memfd:talea"));
        if is_region {
            return Ok(path);
        }
    }
    Err(failed(io::Error::new(io::ErrorKind::NotFound, "the process has no region in memory")))
}

/// The memory that a descriptor of a process refers to, which is a link in `/proc`. Nobody can
/// cut it under our eyes, if it is a region's.
pub(crate) fn memory_of_descriptor(path: &Path) -> io::Result<File> {
    let options = &mut OpenOptions::new();
    let file = options.read(true).write(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    // SAFETY: a call on an open descriptor with integers only.
    let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
    if seals < 0 || seals & SEALS != SEALS {
        let found = "memory that can be cut, which no region is";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, found));
    }
    Ok(file)
}
