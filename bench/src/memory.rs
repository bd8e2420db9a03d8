//! The memory that the system has given to a process.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::os::unix::fs::MetadataExt;

use anyhow::{Context, Result};

/// Resident bytes of this process's own and the pages that back its regions, which
/// count from the moment they are backed, touched or not.
pub(crate) fn held() -> Result<u64> {
    Ok(figure("self", "RssAnon:")? + regions()?)
}

/// A figure in `/proc/PROCESS/status`, in bytes.
pub(crate) fn figure(process: impl Display, name: &str) -> Result<u64> {
    let path = format!("/proc/{process}/status");
    let status = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    let kilobytes = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    Ok(kilobytes.with_context(|| format!("{path} has no {name}"))? * 1024)
}

fn regions() -> Result<u64> {
    // A process has several descriptors of a region.
    let mut regions = BTreeMap::new();
    for entry in fs::read_dir("/proc/self/fd").context("reading /proc/self/fd")? {
        let path = entry?.path();
        // The descriptor that the directory was read through is closed by now.
        let Ok(target) = fs::read_link(&path) else { continue };
        if target.to_string_lossy().starts_with("/memfd:talea") {
            let region = fs::metadata(&path)?;
            regions.insert(region.ino(), region.blocks() * 512);
        }
    }
    Ok(regions.into_values().sum())
}
