//! Where regions may be: files, directories, processes.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use crate::region_place::{RegionPlace, text_of};

/// The files, directories and processes that the user named.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Files, each of which should be there.
    pub files: Vec<PathBuf>,
    /// Directories, where regions come and go.
    pub directories: Vec<PathBuf>,
    /// Processes that have a region in memory.
    pub processes: Vec<u32>,
}

/// A directory that cannot be listed, and why.
pub(super) type Unlisted = (PathBuf, io::Error);

impl Sources {
    /// The regions that are served, in a few words: the names of regions, or how many places there are.
    pub fn title(&self) -> String {
        let files = self.files.iter().map(|path| region_name_of(path));
        let processes = self.processes.iter().map(|pid| format!("process {pid}"));
        let directories =
            self.directories.iter().map(|path| text_of(path.as_os_str()).into_owned());
        let all: Vec<String> = files.chain(processes).chain(directories).collect();
        match &all[..] {
            [first, .., _] if all.len() > 3 => format!("{first} and {} others", all.len() - 1),
            _ => all.join(", "),
        }
    }

    /// Whether there is only one region, which needs no label to distinguish it.
    pub fn is_one(&self) -> bool {
        self.directories.is_empty() && self.files.len() + self.processes.len() == 1
    }

    /// All that there are now, by the names that they go by, and directories that cannot be
    /// listed. Files that were named are among them whether they are there or not; so are the
    /// `known` files of a directory that cannot be listed.
    pub(super) fn look(
        &self,
        known: &[RegionPlace],
    ) -> (BTreeMap<String, RegionPlace>, Vec<Unlisted>) {
        let mut found: Vec<RegionPlace> =
            self.files.iter().cloned().map(RegionPlace::File).collect();
        found.extend(self.processes.iter().copied().map(RegionPlace::Process));
        let mut unlisted = Vec::new();
        for directory in &self.directories {
            match regions_in(directory) {
                Ok(paths) => found.extend(paths.into_iter().map(RegionPlace::File)),
                Err(error) => {
                    found.extend(
                        known
                            .iter()
                            .filter(|place| match place {
                                RegionPlace::File(path) => path.parent() == Some(directory),
                                RegionPlace::Process(_) => false,
                            })
                            .cloned(),
                    );
                    unlisted.push((directory.clone(), error));
                }
            }
        }
        found.sort();
        found.dedup();
        (named(found), unlisted)
    }
}

/// The files of a directory that are called as regions are.
fn regions_in(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| region_name(name).is_some()) {
            paths.push(path);
        }
    }
    Ok(paths)
}

/// The name of a region by its file: `shop` for `shop.talea`, `shop.1` for
/// `shop.talea.1`, which stands in for a file that cannot be shared. `None` of any other
/// name, that of a file which was moved aside among them.
fn region_name(file: &OsStr) -> Option<String> {
    let file = text_of(file);
    if let Some(name) = file.strip_suffix(".talea") {
        return (!name.is_empty()).then(|| name.to_owned());
    }
    let (rest, number) = file.rsplit_once('.')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let name = rest.strip_suffix(".talea").filter(|name| is_number && !name.is_empty())?;
    Some(format!("{name}.{number}"))
}

/// The name that a file's region goes by, where no other has it too.
pub fn region_name_of(path: &Path) -> String {
    let file = path.file_name().unwrap_or(path.as_os_str());
    region_name(file).unwrap_or_else(|| text_of(file).into_owned())
}

/// Each by the name of its file; those that share one by their whole path.
fn named(found: Vec<RegionPlace>) -> BTreeMap<String, RegionPlace> {
    let short = |source: &RegionPlace| match source {
        RegionPlace::Process(pid) => pid.to_string(),
        RegionPlace::File(path) => region_name_of(path),
    };
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    for source in &found {
        *names.entry(short(source)).or_default() += 1;
    }
    found
        .into_iter()
        .map(|source| {
            let name = short(&source);
            match names.get(&name) {
                Some(1) => (name, source),
                _ => (source.to_string(), source),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn a_region_goes_by_the_name_of_its_file() {
        for (file, expected) in [
            ("shop.talea", Some("shop")),
            ("shop.talea.1", Some("shop.1")),
            ("shop.v2.talea", Some("shop.v2")),
            ("shop.talea.stale-1", None),
            ("shop.talea.x", None),
            ("shop.talea.", None),
            (".talea", None),
            (".talea.1", None),
            ("sem.shop", None),
            ("shop", None),
        ] {
            assert_eq!(region_name(OsStr::new(file)).as_deref(), expected, "{file}");
        }
    }

    #[test]
    fn a_directory_that_cannot_be_listed_has_the_files_that_are_known() {
        let directories = ["/no/such/directory/".into(), "/nor/this".into()].to_vec();
        let sources = Sources { directories, ..Sources::default() };
        let file = |path: &str| RegionPlace::File(path.into());
        let [of_it, other] = [file("/no/such/directory/shop.talea"), file("/other/shop.talea")];
        let known = [of_it.clone(), other, RegionPlace::Process(7)];
        let (found, unlisted) = sources.look(&known);
        assert_eq!(found.into_values().collect::<Vec<_>>(), [of_it]);
        assert_eq!(unlisted.len(), 2);
    }

    #[test]
    fn those_that_share_a_name_go_by_their_paths() {
        let files = ["/a/shop.talea", "/b/shop.talea", "/a/bar.talea", "/a/any"];
        let mut found: Vec<RegionPlace> = files.map(|path| RegionPlace::File(path.into())).to_vec();
        found.push(RegionPlace::Process(7));
        let names: Vec<String> = named(found).into_keys().collect();
        assert_eq!(names, ["/a/shop.talea", "/b/shop.talea", "7", "any", "bar"]);
    }

    #[test]
    fn names_that_are_no_text_stay_distinct() {
        let files: [&[u8]; 4] =
            [b"/a/x\xFE.talea", b"/a/x\xFF.talea", b"/b/x\xFF.talea", b"/c/x.talea"];
        let names: Vec<String> = named(
            files.map(|name| RegionPlace::File(PathBuf::from(OsStr::from_bytes(name)))).to_vec(),
        )
        .into_keys()
        .collect();
        assert_eq!(names, [r"/a/x\xff.talea", r"/b/x\xff.talea", "x", r"x\xfe"]);
    }
}
