//! Regions in files are opened, or made if there are none.

use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use super::candidate::{Candidate, inspect, inspect_file};
use super::file::Opened;
use super::siblings::{Promotion, SIBLINGS, directory_of, move_aside, promote, siblings};
use crate::config::Config;
use crate::error::OpenError;
use crate::files::access;
use crate::files::descriptors::{descriptor_of_process, memory_of_descriptor};
use crate::files::tmpfs::{is_tmpfs, unnamed};
use crate::files::trust::{self, Distrust, NotOpened};
use crate::layout::{SLOT_COUNT, Sections};
use crate::memory::mapping::{Backing, Mapping};
use crate::memory::path;
use crate::region::Region;

impl Opened {
    fn new(region: &'static Region, path: PathBuf, notices: Vec<String>) -> Self {
        let notice = (!notices.is_empty()).then(|| notices.join("; "));
        Self { region, path, notice }
    }
}

impl Region {
    /// Attaches to the region in a file, or creates it with `config`. The file
    /// must be on tmpfs, such as `/dev/shm`; a new one has mode 0600, or 0640 and the
    /// group that `config` names, whatever the umask. One that is there keeps its mode,
    /// its group and its limits.
    ///
    /// A file that is there is mapped only if it is a regular file of this process's effective
    /// user, of root or of the user that `config` names, and neither its group nor others may write
    /// to it: such a user could end this process, or change its values. No symbolic link is
    /// followed at the end of the path; its directories are the caller's to trust.
    ///
    /// A region that cannot be used never keeps a service from starting. If it is damaged or of
    /// another boot or layout, and no process uses it, it is moved aside to `PATH.stale-N`; so is an
    /// empty file. A file that does not begin as a region does is somebody's, and an error. The
    /// region that was moved aside last stays; earlier ones that no process uses are removed. A
    /// file that is in use, that is not trusted, or that this process has no right to open or to
    /// move stays, and a sibling, `PATH.N`, is opened by the same rules. Once there is no file at
    /// the path, the first sibling that can be used gets it. [`Opened::notice`] reports all of
    /// this.
    ///
    /// # Errors
    ///
    /// The directory is missing, not writable or not on tmpfs; a file at the path that is no region;
    /// a trusted user put something other than a regular file there; a hundred siblings cannot be
    /// used either; no memory. For a new region: limits that do not fit, or a length beyond
    /// `ulimit -f`; the process is not in the group that the file is to have.
    pub fn open(path: impl AsRef<Path>, config: Config) -> Result<Opened, OpenError> {
        path::choose_by_environment()?;
        let path = path.as_ref();
        let directory = directory_of(path);
        let failed = OpenError::system;
        if !is_tmpfs(directory).map_err(failed("look at the directory", directory))? {
            return Err(OpenError::NotTmpfs(path.to_owned()));
        }
        let limits = config.limits();
        let sections = || Sections::new(limits).map_err(OpenError::Limits);
        let users = trust::trusted_users(config.owner);
        let mut notices = Vec::new();
        let mut candidates = siblings(path);
        let mut candidate = path.to_owned();
        let mut found_at_path = None;
        for _ in 0..TRIES {
            if candidate == path {
                found_at_path = trust::identity_at(path);
            }
            let found = attach(&candidate, path, &users)?;
            if matches!(found, Found::Unusable { .. }) {
                // Nothing is moved aside for a region that cannot be made.
                sections()?;
            }
            let reason = match found {
                Found::Region(region, place) => {
                    if place != path {
                        region.note_beside(path, &place, &users);
                    }
                    let differs =
                        access::difference(region.memory.map.backing().file(), &place, config);
                    if notices.is_empty() {
                        notices.extend(differs);
                    }
                    return Ok(Opened::new(region, place, notices));
                }
                // The sibling may have got the path.
                Found::Replaced | Found::Nothing
                    if candidate != path && trust::identity_at(path) != found_at_path =>
                {
                    (candidate, candidates) = (path.to_owned(), siblings(path));
                    notices.clear();
                    continue;
                }
                Found::Replaced => continue,
                Found::Nothing if candidate == path => match promote(path, &users) {
                    Promotion::Taken(notice) => {
                        notices.extend(notice);
                        continue;
                    }
                    Promotion::Left(sibling) => {
                        candidate = sibling;
                        continue;
                    }
                    Promotion::Nothing => None,
                },
                Found::Nothing => None,
                Found::Unusable { reason } => match move_aside(&candidate, &users) {
                    Ok(moved) => {
                        notices.extend(moved);
                        continue;
                    }
                    Err(error) if is_left(&error) => {
                        Some(format!("cannot be used, nor moved aside ({error}): {reason}"))
                    }
                    Err(error) => {
                        return Err(failed("move aside the unusable region", &candidate)(error));
                    }
                },
                Found::Left { reason } => Some(reason),
            };
            let Some(reason) = reason else {
                let sections = sections()?;
                let file = unnamed(directory).map_err(failed("make a region in", directory))?;
                access::grant(&file, config.group).map_err(|source| match config.group {
                    Some(group) => OpenError::Group { group, path: candidate.clone(), source },
                    None => failed("set the mode of", &candidate)(source),
                })?;
                let backing = Backing::fresh(file, limits.len)
                    .map_err(failed("make a region in", directory))?;
                let region = Self::initialise(backing, sections, limits, Some(directory))?;
                match region.memory.map.backing().publish(&candidate) {
                    Ok(()) => {
                        if candidate != path {
                            region.note_beside(path, &candidate, &users);
                        }
                        return Ok(Opened::new(region, candidate, notices));
                    }
                    // Another process created it meanwhile: attach to that one.
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                    Err(error) => {
                        return Err(failed("name the region", &candidate)(why_unnamed(error)));
                    }
                }
            };
            let left = candidate;
            candidate = candidates.next().ok_or_else(|| no_candidate(path, &left, &reason))?;
            notices =
                vec![format!("{} {reason}; using {} instead", left.display(), candidate.display())];
        }
        Err(no_candidate(path, &candidate, "is replaced all the while"))
    }

    /// Takes part in the region that is in a file, and neither creates nor moves one: for
    /// tools that see to a region that services count in. The file is trusted as by
    /// [`open`](Self::open).
    ///
    /// # Errors
    ///
    /// There is no file, or it may not be read and written; it is not trusted; it is no region of
    /// this boot and layout, or damaged; as many processes as it has slots for have it open.
    pub fn attach(path: impl AsRef<Path>) -> Result<&'static Self, OpenError> {
        Self::attach_owned_by(path, &trust::trusted_users(None))
    }

    /// Attaches to the region in a file that belongs to one of `owners` (user ids). Each of them
    /// can end this process by truncating the file.
    ///
    /// # Errors
    ///
    /// As [`attach`](Self::attach).
    pub fn attach_owned_by(
        path: impl AsRef<Path>,
        owners: &[u32],
    ) -> Result<&'static Self, OpenError> {
        let path = path.as_ref();
        let candidate = inspect(path, owners).map_err(|why| why.into_error(TAKE_PART, path))?;
        Self::attach_alone(path, candidate)
    }

    /// Attaches to the region that a running process has in memory, the first that it made. It
    /// lasts as long as either process.
    ///
    /// # Errors
    ///
    /// There is no such process, this process may not inspect it, or it has no region in memory;
    /// and as [`attach`](Self::attach).
    pub fn attach_to_process(pid: u32) -> Result<&'static Self, OpenError> {
        let path = descriptor_of_process(pid)?;
        let candidate = memory_of_descriptor(&path).and_then(inspect_file);
        Self::attach_alone(&path, candidate.map_err(OpenError::system(TAKE_PART, &path))?)
    }

    /// Attaches only with a slot of its own: a process that dies in the shared block blocks
    /// reclamation for good.
    fn attach_alone(path: &Path, candidate: Candidate) -> Result<&'static Self, OpenError> {
        path::choose_by_environment()?;
        let failed = OpenError::system(TAKE_PART, path);
        let (map, sections) = match candidate {
            Candidate::Region(file, sections) => {
                (Mapping::existing(file).map_err(&failed)?, sections)
            }
            Candidate::Unusable { reason, .. } => {
                return Err(OpenError::Damaged { path: path.to_owned(), reason });
            }
            Candidate::Foreign => return Err(OpenError::Foreign(path.to_owned())),
        };
        let region = Self::leak(map, *sections);
        if region.memory.own_slot() == SLOT_COUNT {
            let reason = format!(
                "none of its {} places for processes is free, or there is no memory for \
                 one; try again when fewer have it open",
                region.memory.sections.slots
            );
            return Err(failed(Error::new(ErrorKind::ResourceBusy, reason)));
        }
        Ok(region)
    }
}

/// The purpose of an attach, for errors.
const TAKE_PART: &str = "take part in the region";

/// How often one of them is looked at, all together: others may start and move files meanwhile.
const TRIES: u32 = 10 * SIBLINGS;

enum Found {
    /// Attached to, and where it is.
    Region(&'static Region, PathBuf),
    /// It may be moved aside.
    Unusable {
        reason: String,
    },
    /// It has to stay as it is.
    Left {
        reason: String,
    },
    /// Another file is there by now.
    Replaced,
    Nothing,
}

/// Attaches to the file at a candidate for a path, if it is a region.
fn attach(candidate: &Path, path: &Path, users: &[u32]) -> Result<Found, OpenError> {
    let failed = OpenError::system("open the region", candidate);
    Ok(match inspect(candidate, users) {
        Ok(Candidate::Region(file, sections)) => {
            let region = Region::leak(Mapping::existing(file).map_err(&failed)?, *sections);
            let file = region.memory.map.backing().file();
            // From now on a slot is locked, so no process takes the file for unused. It may have
            // been renamed to the path.
            match [candidate, path].into_iter().find(|place| trust::names(place, file)) {
                Some(place) => Found::Region(region, place.to_owned()),
                None => Found::Replaced,
            }
        }
        Ok(Candidate::Unusable { reason, used: true }) => {
            Found::Left { reason: format!("is in use and cannot be shared: {reason}") }
        }
        Ok(Candidate::Unusable { reason, used: false }) => Found::Unusable { reason },
        Ok(Candidate::Foreign) if candidate == path => {
            return Err(OpenError::Foreign(path.to_owned()));
        }
        Ok(Candidate::Foreign) => Found::Left { reason: "is no region".to_owned() },
        Err(NotOpened::Untrusted(Distrust { reason, is_mistake: true })) => {
            return Err(OpenError::Untrusted { path: candidate.to_owned(), reason });
        }
        Err(NotOpened::Untrusted(Distrust { reason, .. })) => {
            Found::Left { reason: format!("is not opened: {reason}; {WHAT_TO_DO}") }
        }
        Err(NotOpened::Denied { found, source }) => {
            Found::Left { reason: format!("cannot be opened ({source}): {found}; {WHAT_TO_DO}") }
        }
        Err(NotOpened::Replaced) => Found::Replaced,
        Err(NotOpened::System(error)) if error.kind() == ErrorKind::NotFound => Found::Nothing,
        Err(NotOpened::System(source)) => return Err(failed(source)),
    })
}

const WHAT_TO_DO: &str = "remove it, or use a directory that only the user of the service can \
    write to";

/// The reason that a new file could not get its name, which it gets by its path in `/proc`.
fn why_unnamed(error: Error) -> Error {
    match error.kind() {
        ErrorKind::NotFound if !Path::new("/proc/self/fd").exists() => {
            Error::other("/proc is not there; mount it, within the root of a chroot too")
        }
        _ => error,
    }
}

/// Whether a file that cannot be moved aside is left: another process holds it locked, or root owns
/// it.
fn is_left(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::ResourceBusy | ErrorKind::PermissionDenied)
}

/// The error if neither a path nor any of its siblings can be used.
fn no_candidate(path: &Path, last: &Path, reason: &str) -> OpenError {
    let reason = format!(
        "neither it nor any of its {SIBLINGS} siblings can be used; the last of them, {}, {reason}",
        last.display()
    );
    OpenError::Untrusted { path: path.to_owned(), reason }
}
