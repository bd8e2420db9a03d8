//! How much memory the system has given to this process.

use std::fs;
use std::os::unix::fs::MetadataExt;

use anyhow::{Context, Result};

/// Resident bytes of the process's own and the pages that back its regions, which
/// count from the moment they are backed, touched or not.
pub(crate) fn held() -> Result<u64> {
    Ok(resident()? + regions()?)
}

fn resident() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status").context("reading /proc/self/status")?;
    let kilobytes = status.lines().find_map(|line| {
        line.strip_prefix("RssAnon:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    });
    Ok(kilobytes.context("/proc/self/status has no line RssAnon")? * 1024)
}

fn regions() -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir("/proc/self/fd").context("reading /proc/self/fd")? {
        let path = entry?.path();
        // The descriptor that the directory was read through is closed by now.
        let Ok(target) = fs::read_link(&path) else { continue };
        if target.to_string_lossy().starts_with("/memfd:talea") {
            bytes += fs::metadata(&path)?.blocks() * 512;
        }
    }
    Ok(bytes)
}
