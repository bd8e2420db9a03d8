//! The siblings of a path: `PATH.1`, `PATH.2`, and so on. A sibling is used if the file at the path
//! is used by others and cannot be shared. When no process uses the file at the path any more, it
//! is moved aside to `PATH.stale-N`, and the first sibling that can be used gets the path.
//!
//! A process that opens the path does that, and so does a living process that uses a sibling, when
//! it sweeps. A renamed file stays the same file for processes that have it open.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{AcqRel, Relaxed},
};

use super::candidate::{Candidate, inspect};
use crate::clock::boot_nanos;
use crate::files::beside::Beside;
use crate::files::tmpfs::alone_with;
use crate::files::trust::{self, NotOpened};
use crate::layout::{MAGIC, SLOT_COUNT};
use crate::memory::mapping::{checked, others_hold};
use crate::region::Region;

/// The number of siblings of a path. A stranger who takes so many names could take any.
pub(crate) const SIBLINGS: u32 = 100;

/// The siblings of a path, in the order in which they are tried.
pub(crate) fn siblings(path: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let path = path.to_owned();
    (1..=SIBLINGS).map(move |n| with_suffix(&path, &format!(".{n}")))
}

pub(crate) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Moves aside a file that cannot be used, and returns a notice. Services that start at once do
/// this one after the other, so the file is inspected again: the first may have replaced it.
///
/// # Errors
///
/// `ResourceBusy` if another process keeps the file locked; this process may not move it.
pub(crate) fn move_aside(path: &Path, users: &[u32]) -> io::Result<Option<String>> {
    alone_with(path, || {
        let Ok(Candidate::Unusable { reason, used: false }) = inspect(path, users) else {
            return Ok(None);
        };
        let aside = free_name(path);
        fs::rename(path, &aside)?;
        let (from, to) = (path.display(), aside.display());
        let mut said = format!("{from} could not be used: {reason}; it was moved to {to}");
        let removed = remove_older(path, &aside, users);
        if !removed.is_empty() {
            let removed = removed.iter().map(|one| one.display().to_string());
            let removed = removed.collect::<Vec<_>>().join(" and ");
            said += &format!("; {removed}, which were moved there before, were removed");
        }
        Ok(Some(said))
    })
    .and_then(|moved| moved.transpose())
    .map(Option::flatten)
}

/// Removes the regions that were moved aside from a path before the last one, so that rollouts do
/// not fill the memory. A region that is in use stays, and so does a file that is no region.
fn remove_older(path: &Path, last: &Path, users: &[u32]) -> Vec<PathBuf> {
    let prefix = [path.file_name().unwrap_or_default().as_bytes(), b".stale-"].concat();
    let mut older = Vec::new();
    for entry in fs::read_dir(directory_of(path)).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let digits = name.as_bytes().strip_prefix(prefix.as_slice()).unwrap_or_default();
        if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) {
            older.push(path.with_file_name(name));
        }
    }
    older.sort_unstable();
    older.retain(|one| one != last && is_unused_region(one, users) && fs::remove_file(one).is_ok());
    older
}

/// Removes the region in a file of one of these users (user ids), if no process uses it; whether it did. A process that
/// opens the path meanwhile either keeps the file or makes a new one.
///
/// # Errors
///
/// The system refuses to remove it, or another process keeps it locked.
pub fn remove_unused(path: impl AsRef<Path>, owners: &[u32]) -> io::Result<bool> {
    let path = path.as_ref();
    let removed = alone_with(path, || {
        if !is_unused_region(path, owners) {
            return Ok(false);
        }
        // A process that opens it locks a slot first, and then looks whether the path names the file. So either it
        // finds another name here, or this finds its slot.
        let aside = free_name(path);
        fs::rename(path, &aside)?;
        if is_unused_region(&aside, owners) {
            fs::remove_file(&aside)?;
            return Ok(true);
        }
        let mut places = std::iter::once(path.to_owned()).chain(siblings(path));
        places.find(|place| rename_new(&aside, place).is_ok());
        Ok(false)
    });
    removed?.unwrap_or(Ok(false))
}

/// Whether a file is a region, of whatever layout and boot, that no process uses.
fn is_unused_region(path: &Path, users: &[u32]) -> bool {
    let mut magic = [0; 8];
    trust::open(path, users, OpenOptions::new().read(true).write(true)).is_ok_and(|file| {
        file.read_exact_at(&mut magic, 0).is_ok()
            && u64::from_le_bytes(magic) == MAGIC
            && others_hold(&file, 0..SLOT_COUNT).is_ok_and(|used| !used)
    })
}

/// The result of giving a sibling a path at which there is no file.
pub(crate) enum Promotion {
    /// A sibling has the path now, or another file.
    Taken(Option<String>),
    /// This sibling can be used, and this process may not rename it.
    Left(PathBuf),
    /// There is no sibling that can be used.
    Nothing,
}

/// Gives the first sibling that can be used the path, if nothing is there.
pub(crate) fn promote(path: &Path, users: &[u32]) -> Promotion {
    let found = siblings(path).find(|sibling| {
        sibling.exists() && matches!(inspect(sibling, users), Ok(Candidate::Region(..)))
    });
    let Some(sibling) = found else { return Promotion::Nothing };
    match rename_new(&sibling, path) {
        Ok(()) => Promotion::Taken(Some(took_its_place(&sibling, path))),
        Err(error) if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound) => {
            Promotion::Taken(None)
        }
        Err(_) => Promotion::Left(sibling),
    }
}

fn took_its_place(sibling: &Path, path: &Path) -> String {
    format!("{} took its place: it is {} now", sibling.display(), path.display())
}

impl Region {
    /// Notes that this region is in a sibling of the path that was asked for.
    pub(crate) fn note_beside(&self, path: &Path, sibling: &Path, users: &[u32]) {
        // The working directory may be another later.
        let absolute = |path: &Path| std::path::absolute(path).ok();
        if let (Some(path), Some(sibling)) = (absolute(path), absolute(sibling)) {
            let users = users.to_owned();
            let [was_unused, is_over] = [false; 2].map(AtomicBool::new);
            let looked_at = AtomicU64::new(boot_nanos());
            let beside = Beside { path, sibling, users, was_unused, is_over, looked_at };
            let _ = self.beside.set(beside);
        }
    }

    pub(crate) fn claim_path_of(&self, beside: &Beside) -> Option<String> {
        let Beside { path, sibling, users, was_unused, is_over, .. } = beside;
        let file = self.memory.map.backing().file();
        if is_over.load(Relaxed) {
            return None;
        }
        // Another process did it, or the file is no sibling any more.
        if trust::names(path, file) || !trust::names(sibling, file) {
            is_over.store(true, Relaxed);
            return None;
        }
        let is_unused = match inspect(path, users) {
            Ok(Candidate::Unusable { used, .. }) => !used,
            Err(NotOpened::System(error)) => error.kind() == ErrorKind::NotFound,
            Ok(Candidate::Region(..) | Candidate::Foreign) | Err(_) => false,
        };
        // A process that restarts is not there for a moment.
        if !was_unused.swap(is_unused, AcqRel) || !is_unused {
            return None;
        }
        let moved = move_aside(path, users).ok()?;
        rename_new(sibling, path).ok()?;
        is_over.store(true, Relaxed);
        let took = took_its_place(sibling, path);
        Some(moved.into_iter().chain([took]).collect::<Vec<_>>().join("; "))
    }
}

/// Renames a file if nothing has the new name.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    let [from, to] = [from, to].map(|path| std::ffi::CString::new(path.as_os_str().as_bytes()));
    let (from, to) = (from?, to?);
    // SAFETY: both are NUL-terminated and live through the call. Not every C library has a function
    // for this call.
    let status = unsafe {
        let (here, flags) = (libc::AT_FDCWD, libc::RENAME_NOREPLACE);
        libc::syscall(libc::SYS_renameat2, here, from.as_ptr(), here, to.as_ptr(), flags)
    };
    checked(status as libc::c_int).map(|_| ())
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn free_name(path: &Path) -> PathBuf {
    let names = (1..).map(|n| with_suffix(path, &format!(".stale-{n}")));
    names.into_iter().find(|name| !name.exists()).unwrap_or_else(|| with_suffix(path, ".stale"))
}

#[cfg(all(test, not(miri)))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::clock::set::{pass, step_wall};
    use crate::config::Config;

    #[test]
    fn the_path_is_looked_at_once_a_minute_whichever_way_the_wall_clock_is_set() {
        let directory = PathBuf::from(format!("/dev/shm/talea-test-due-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("shop.talea");
        // A file that others may write to is not used.
        fs::write(&path, b"").unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o666)).unwrap();
        let region = Region::open(&path, Config::with_len(1 << 20)).unwrap().region;
        fs::remove_file(&path).unwrap();
        let due = |region: &Region| region.beside.get().unwrap().is_due();
        assert!(!due(region), "it was looked at when it was opened");
        for step in [-3_600, 0, 3_600] {
            pass(60);
            step_wall(step);
            assert!(due(region));
            assert!(!due(region));
        }
        pass(60);
        assert_eq!(region.claim_path_if_due(), None);
        assert_eq!(region.claim_path_if_due(), None);
        assert!(!path.exists(), "it was free at one look");
        pass(60);
        assert!(region.claim_path_if_due().unwrap().contains("took its place"));
        assert!(path.exists());
        fs::remove_dir_all(directory).unwrap();
    }
}
