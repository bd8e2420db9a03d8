//! A file for the items: a temporary one, or the one that a URL names.

use anyhow::{Context, Result, bail};
use percent_encoding::percent_decode_str;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A file of SQLite's.
///
/// A temporary one is removed when this is dropped, so keep it while the
/// database is in use.
#[derive(Debug)]
pub struct SqliteFile {
    path: PathBuf,
    /// Whether it is an error if the file is not there.
    pub(crate) must_exist: bool,
    _folder: Option<TempDir>,
}

impl SqliteFile {
    /// A new file in a new folder among the system's temporary files.
    /// Fails when the folder cannot be made, and names it.
    pub(super) fn temporary() -> Result<SqliteFile> {
        let folder =
            tempfile::Builder::new().prefix("items-api-").tempdir().with_context(|| {
                format!(
                    "cannot make a folder for the database in {}: free some space there, \
                     set TMPDIR to another place, or name a database with DATABASE_URL",
                    std::env::temp_dir().display()
                )
            })?;
        let path = folder.path().join("items.sqlite");
        Ok(SqliteFile { path, must_exist: false, _folder: Some(folder) })
    }

    /// The file that `url` names: `sqlite:PATH` or `sqlite://PATH`. It is made
    /// when it is not there, unless the URL says `?mode=rw`.
    /// Fails when the URL has an option that is not known, or asks for a database in memory or
    /// for reading only.
    pub(super) fn at(url: &str) -> Result<SqliteFile> {
        let place = url.strip_prefix("sqlite:").unwrap_or(url);
        let place = place.strip_prefix("//").unwrap_or(place);
        let (path, parameters) = place.split_once('?').unwrap_or((place, ""));
        let mut must_exist = false;
        let mut in_memory = path.is_empty() || path == ":memory:";
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter {
                "mode=rwc" => must_exist = false,
                "mode=rw" => must_exist = true,
                "mode=memory" => in_memory = true,
                "mode=ro" | "immutable=1" | "immutable=true" => bail!(
                    "DATABASE_URL={url} asks for reading only, and the service writes: leave that \
                     out"
                ),
                _ => bail!(
                    "DATABASE_URL={url} has the option {parameter}, expected mode=rwc, which makes \
                     a file that is not there, or mode=rw"
                ),
            }
        }
        if in_memory {
            bail!(
                "DATABASE_URL={url} names no file, and the service needs one that several \
                 connections share: name it as sqlite:PATH, or leave DATABASE_URL out for a \
                 temporary database"
            );
        }
        let path = percent_decode_str(path).decode_utf8().with_context(|| {
            format!("DATABASE_URL={url} is not understood, expected sqlite:PATH in UTF-8")
        })?;
        let path = PathBuf::from(path.as_ref());
        Ok(SqliteFile { path, must_exist, _folder: None })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_file_with_or_without_slashes() {
        for (url, path) in [
            ("sqlite:items.db", "items.db"),
            ("sqlite://items.db", "items.db"),
            ("sqlite:///var/items.db", "/var/items.db"),
            ("sqlite:/var/items.db?mode=rwc", "/var/items.db"),
            ("sqlite:a%20b.db", "a b.db"),
        ] {
            assert_eq!(SqliteFile::at(url).unwrap().path(), Path::new(path), "{url}");
        }
    }

    #[test]
    fn a_database_that_cannot_serve_is_refused_with_the_reason() {
        for (url, reason) in [
            ("sqlite::memory:", "names no file"),
            ("sqlite://:memory:", "names no file"),
            ("sqlite:", "names no file"),
            ("sqlite:x?mode=memory", "names no file"),
            ("sqlite:x?mode=ro", "reading only"),
            ("sqlite:x?immutable=true", "reading only"),
            ("sqlite:x?colour=red", "the option colour=red"),
        ] {
            let refused = format!("{:#}", SqliteFile::at(url).unwrap_err());
            assert!(refused.contains(reason), "{url}: {refused}");
        }
    }
}
