//! Regions in files, for processes that do not fork from one parent.

use std::path::{Path, PathBuf};

#[cfg(all(target_os = "linux", not(loom)))]
use crate::access;
use crate::error::OpenError;
#[cfg(all(target_os = "linux", not(loom)))]
use crate::layout::{SLOT_COUNT, Sections};
#[cfg(all(target_os = "linux", not(loom)))]
use crate::mapping::{Mapping, alone_with, is_tmpfs, unnamed};
use crate::region::{Config, Region};

/// A region that was opened by path, and what the caller should log about it.
#[derive(Debug)]
pub struct Opened {
    /// The region.
    pub region: &'static Region,
    /// The file that holds it: the path that was asked for, or a sibling.
    pub path: PathBuf,
    /// Why the file that stood at the path was not used, and what was done; or that it
    /// is not the group's that was asked for.
    pub notice: Option<String>,
}

impl Region {
    /// Attaches to the region in a file, or creates it with `config`. The file
    /// must be on tmpfs, such as `/dev/shm`; a new one has mode 0600, or 0640 and the
    /// group that `config` names, whatever the umask. One that is there keeps its mode,
    /// its group and its limits.
    ///
    /// A file that cannot be used (of another boot or layout, or damaged) never
    /// keeps a service from starting: where no process uses it, it is moved
    /// aside to `PATH.stale-N`; where one does, it is left alone and `PATH.N` is
    /// opened. [`Opened::notice`] tells.
    ///
    /// # Errors
    ///
    /// The directory is missing, not writable or not on tmpfs; the path is not a
    /// regular file; limits that do not fit; no memory; the process is not in the
    /// group that a new file is to have.
    #[cfg(all(target_os = "linux", not(loom)))]
    pub fn open(path: impl AsRef<Path>, config: Config) -> Result<Opened, OpenError> {
        let path = path.as_ref();
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let failed = |doing, path: &Path| {
            let path = Some(path.to_owned());
            move |source| OpenError::System { doing, path, source }
        };
        if !is_tmpfs(directory).map_err(failed("look at the directory", directory))? {
            return Err(OpenError::NotTmpfs(path.to_owned()));
        }
        let limits = config.limits();
        let sections = Sections::new(limits).map_err(OpenError::Limits)?;
        let mut notice = None;
        let mut candidate = path.to_owned();
        for n in 1.. {
            match attach(&candidate)? {
                Found::Region(region) => {
                    let differs =
                        || access::difference(region.map.backing().file(), &candidate, config);
                    let notice = notice.or_else(differs);
                    return Ok(Opened { region, path: candidate, notice });
                }
                Found::Nothing => {
                    let file = unnamed(directory).map_err(failed("make a region in", directory))?;
                    access::grant(&file, config.group).map_err(|source| match config.group {
                        Some(group) => OpenError::Group { group, path: candidate.clone(), source },
                        None => failed("set the mode of", &candidate)(source),
                    })?;
                    let map = Mapping::fresh(file, limits.len)
                        .map_err(failed("make a region in", directory))?;
                    let region = Self::initialise(map, sections, limits)?;
                    match region.map.backing().publish(&candidate) {
                        Ok(()) => return Ok(Opened { region, path: candidate, notice }),
                        // Somebody else created it meanwhile: attach to theirs.
                        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                        Err(error) => return Err(failed("name the region", &candidate)(error)),
                    }
                }
                Found::Unusable { reason, used: true } => {
                    let sibling = with_suffix(path, &format!(".{n}"));
                    notice = Some(format!(
                        "{} is in use and cannot be shared: {reason}; using {} instead",
                        candidate.display(),
                        sibling.display()
                    ));
                    candidate = sibling;
                }
                Found::Unusable { used: false, .. } => {
                    let moved = alone_with(&candidate, || move_aside(&candidate))
                        .and_then(|moved| moved.transpose())
                        .map_err(failed("move aside the unusable region", &candidate))?;
                    notice = moved.flatten().or(notice);
                }
            }
        }
        unreachable!("the range above has no end")
    }

    /// Takes part in the region that is in a file, and neither creates nor moves one: for
    /// tools that see to a region that services count in. No symbolic link is followed.
    ///
    /// # Errors
    ///
    /// There is no file, or it may not be read and written; it is no region of this boot and
    /// layout, or damaged; as many processes as it has slots for have it open.
    #[cfg(all(target_os = "linux", not(loom)))]
    pub fn attach(path: impl AsRef<Path>) -> Result<&'static Self, OpenError> {
        let path = path.as_ref();
        Self::attach_alone(path, look(path))
    }

    /// The same with the region that a running process has in memory, the first that it made.
    /// It lasts as long as either of them.
    ///
    /// # Errors
    ///
    /// There is no such process, it may not be looked into, or it has no region in memory;
    /// and as [`attach`](Self::attach).
    #[cfg(all(target_os = "linux", not(loom)))]
    pub fn attach_to_process(pid: u32) -> Result<&'static Self, OpenError> {
        let path = crate::reader::descriptor_of_process(pid)?;
        Self::attach_alone(&path, Mapping::of_descriptor(&path).and_then(look_into))
    }

    /// With a slot of its own: who dies in the block that is shared holds up others for good.
    #[cfg(all(target_os = "linux", not(loom)))]
    fn attach_alone(
        path: &Path,
        looked: std::io::Result<Looked>,
    ) -> Result<&'static Self, OpenError> {
        let failed = |source| OpenError::System {
            doing: "take part in the region",
            path: Some(path.to_owned()),
            source,
        };
        let (map, sections) = match looked.map_err(failed)? {
            Looked::Region(map, sections) => (map, sections),
            Looked::Unusable { reason, .. } => {
                return Err(OpenError::Damaged { path: path.to_owned(), reason });
            }
        };
        let region = Self::leak(map, *sections);
        if region.own_slot() == SLOT_COUNT {
            let told = format!(
                "none of its {SLOT_COUNT} places for processes is free, or there is no memory for \
                 one; try again when fewer have it open"
            );
            return Err(failed(std::io::Error::new(std::io::ErrorKind::ResourceBusy, told)));
        }
        Ok(region)
    }

    /// Files can be shared on Linux only.
    ///
    /// # Errors
    ///
    /// Always [`OpenError::Unsupported`].
    #[cfg(not(all(target_os = "linux", not(loom))))]
    pub fn open(_path: impl AsRef<Path>, _config: Config) -> Result<Opened, OpenError> {
        Err(OpenError::Unsupported)
    }

    /// Files can be shared on Linux only.
    ///
    /// # Errors
    ///
    /// Always [`OpenError::Unsupported`].
    #[cfg(not(all(target_os = "linux", not(loom))))]
    pub fn attach(_path: impl AsRef<Path>) -> Result<&'static Self, OpenError> {
        Err(OpenError::Unsupported)
    }

    /// Memory can be shared on Linux only.
    ///
    /// # Errors
    ///
    /// Always [`OpenError::Unsupported`].
    #[cfg(not(all(target_os = "linux", not(loom))))]
    pub fn attach_to_process(_pid: u32) -> Result<&'static Self, OpenError> {
        Err(OpenError::Unsupported)
    }
}

#[cfg(all(target_os = "linux", not(loom)))]
enum Found {
    Region(&'static Region),
    Unusable { reason: String, used: bool },
    Nothing,
}

/// Attaches to what stands at a path, if it is a region.
#[cfg(all(target_os = "linux", not(loom)))]
fn attach(path: &Path) -> Result<Found, OpenError> {
    use std::io::ErrorKind;
    match look(path) {
        Ok(Looked::Region(map, sections)) => Ok(Found::Region(Region::leak(map, *sections))),
        Ok(Looked::Unusable { reason, used }) => Ok(Found::Unusable { reason, used }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Found::Nothing),
        Err(source) => {
            Err(OpenError::System { doing: "open the region", path: Some(path.to_owned()), source })
        }
    }
}

#[cfg(all(target_os = "linux", not(loom)))]
enum Looked {
    Region(Mapping, Box<Sections>),
    Unusable { reason: String, used: bool },
}

/// What stands at a path, without taking part in it.
#[cfg(all(target_os = "linux", not(loom)))]
fn look(path: &Path) -> std::io::Result<Looked> {
    match Mapping::existing(path) {
        Ok(map) => look_into(map),
        // A length that no region has: an empty or truncated file.
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            Ok(Looked::Unusable { reason: error.to_string(), used: false })
        }
        Err(error) => Err(error),
    }
}

#[cfg(all(target_os = "linux", not(loom)))]
fn look_into(map: Mapping) -> std::io::Result<Looked> {
    use std::sync::atomic::Ordering::Acquire;

    let word = |at| map.word(at).map_or(0, |word| word.load(Acquire));
    let sections = Region::validate(word, map.len())
        .and_then(|sections| Region::check_marks(word, &sections).map(|()| sections));
    Ok(match sections {
        Ok(sections) => Looked::Region(map, Box::new(sections)),
        Err(reason) => {
            let used = map.backing().others_hold(0..SLOT_COUNT).unwrap_or(true);
            Looked::Unusable { reason, used }
        }
    })
}

/// Moves aside what cannot be used, and says so. Services that start at once come
/// here one after the other, so it looks again: the first may have put a new
/// region in its place.
#[cfg(all(target_os = "linux", not(loom)))]
fn move_aside(path: &Path) -> std::io::Result<Option<String>> {
    let reason = match look(path) {
        Ok(Looked::Unusable { reason, used: false }) => reason,
        _ => return Ok(None),
    };
    let aside = free_name(path);
    std::fs::rename(path, &aside)?;
    Ok(Some(format!(
        "{} could not be used: {reason}; it was moved to {}",
        path.display(),
        aside.display()
    )))
}

#[cfg(all(target_os = "linux", not(loom)))]
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(all(target_os = "linux", not(loom)))]
fn free_name(path: &Path) -> PathBuf {
    let names = (1..).map(|n| with_suffix(path, &format!(".stale-{n}")));
    names.into_iter().find(|name| !name.exists()).unwrap_or_else(|| with_suffix(path, ".stale"))
}
