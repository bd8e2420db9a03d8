//! The files that rules were made from, and whether they are still the same.

use std::fs::{self, File};
use std::io::{Error, ErrorKind, Read, Result as IoResult};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use ring::digest::{Digest, SHA256, digest};

/// Far above any list of certificates, far below what would hurt.
const MOST_BYTES: u64 = 1 << 20;

/// A writer may be in the midst of a file, or about to write the one that belongs to it: a
/// key after its certificate.
const SETTLED_AFTER: Duration = Duration::from_secs(1);

/// Each file that was read, with what it had.
#[derive(Default)]
pub(super) struct Sources(Vec<Source>);

struct Source {
    path: PathBuf,
    /// `None` where it could not be read.
    content: Option<Digest>,
}

impl Sources {
    /// The contents of a file. An error names the file.
    pub(super) fn read(&mut self, path: &Path) -> Result<Vec<u8>> {
        let bytes = content(path);
        let content = bytes.as_ref().ok().map(|bytes| digest(&SHA256, bytes));
        self.0.push(Source { path: path.to_owned(), content });
        bytes.with_context(|| format!("{} cannot be read", path.display()))
    }

    /// Whether files are others than when they were read, and none was written to within the last second. Contents
    /// are compared, not times: a file may change twice within the resolution of its time.
    pub(super) fn have_changed(&self) -> bool {
        !self.0.iter().any(|source| is_fresh(&source.path))
            && self.0.iter().any(|source| {
                let now = content(&source.path).ok().map(|bytes| digest(&SHA256, &bytes));
                now.as_ref().map(Digest::as_ref) != source.content.as_ref().map(Digest::as_ref)
            })
    }
}

fn is_fresh(path: &Path) -> bool {
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
    // A time in the future is one of another clock, and says nothing.
    let age = modified.ok().and_then(|modified| modified.elapsed().ok());
    age.is_some_and(|age| age < SETTLED_AFTER)
}

fn content(path: &Path) -> IoResult<Vec<u8>> {
    // A pipe would be waited for, and has nothing when it is read again.
    if !fs::metadata(path)?.is_file() {
        return Err(Error::new(ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        let error = "it has more than 1 MiB, expected a configuration or certificates";
        return Err(Error::new(ErrorKind::InvalidData, error));
    }
    Ok(bytes)
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::SystemTime;

    use tempfile::tempdir;

    use super::*;

    /// Writes a file with a modification time in the past.
    pub(in super::super) fn write(path: &Path, text: &str) {
        fs::write(path, text).unwrap();
        let file = File::options().write(true).open(path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap();
    }

    #[test]
    fn a_change_is_seen_whatever_the_time_of_the_file_says_once_it_has_settled() {
        let folder = tempdir().unwrap();
        let path = folder.path().join("web.yml");
        write(&path, "one");
        let mut sources = Sources::default();
        assert_eq!(sources.read(&path).unwrap(), b"one");
        assert!(!sources.have_changed());
        write(&path, "two");
        assert!(sources.have_changed());
        write(&path, "one");
        assert!(!sources.have_changed());
        fs::write(&path, "tw").unwrap();
        assert!(!sources.have_changed(), "it was just written, and may go on");
    }

    #[test]
    fn a_file_that_comes_or_goes_is_a_change() {
        let folder = tempdir().unwrap();
        let path = folder.path().join("web.yml");
        let mut sources = Sources::default();
        assert!(sources.read(&path).is_err());
        assert!(!sources.have_changed());
        write(&path, "one");
        assert!(sources.have_changed());
        let mut sources = Sources::default();
        sources.read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert!(sources.have_changed());
    }

    /// As secrets are mounted.
    #[cfg(unix)]
    #[test]
    fn a_link_that_is_turned_to_another_file_is_a_change() {
        let folder = tempdir().unwrap();
        let path = |name| folder.path().join(name);
        write(&path("one"), "one");
        write(&path("two"), "two");
        std::os::unix::fs::symlink("one", path("link")).unwrap();
        let mut sources = Sources::default();
        sources.read(&path("link")).unwrap();
        std::os::unix::fs::symlink("two", path("next")).unwrap();
        assert!(!sources.have_changed());
        fs::rename(path("next"), path("link")).unwrap();
        assert!(sources.have_changed());
    }

    #[test]
    fn a_directory_or_a_file_that_is_too_large_is_refused() {
        let folder = tempdir().unwrap();
        let error = |path: &Path| format!("{:#}", Sources::default().read(path).unwrap_err());
        assert!(error(folder.path()).ends_with("cannot be read: it is not a regular file"));
        let path = folder.path().join("large");
        File::create(&path).unwrap().set_len(MOST_BYTES + 1).unwrap();
        assert!(error(&path).contains("more than 1 MiB"), "{}", error(&path));
        File::create(&path).unwrap().set_len(MOST_BYTES).unwrap();
        assert!(Sources::default().read(&path).is_ok());
    }
}
