//! Files that are written whole or not at all.

use std::fs;
use std::io::Write;
use std::path::Path;

use tempfile::{Builder, NamedTempFile};

/// Writes a file, or leaves the former one as it was. A pipe or a device is written to, and stays.
///
/// # Errors
/// When it cannot be written; the former content is there then.
pub fn write_whole(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let place = match fs::metadata(path) {
        Ok(there) if !there.is_file() => return fs::write(path, content),
        // A link stays too.
        Ok(_) => fs::canonicalize(path)?,
        Err(_) => path.to_owned(),
    };
    let folder = place.parent().unwrap_or(Path::new(""));
    complete_in(folder, content)?.persist(place)?;
    Ok(())
}

/// A complete file under a temporary name.
///
/// # Errors
/// When the folder cannot be written to.
pub fn complete_in(folder: &Path, content: &[u8]) -> std::io::Result<NamedTempFile> {
    let mut file = temporary_in(folder)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    Ok(file)
}

/// A new file in a folder, which is removed unless it is persisted.
///
/// # Errors
/// When the folder cannot be written to.
pub fn temporary_in(folder: &Path) -> std::io::Result<NamedTempFile> {
    let mut builder = Builder::new();
    builder.prefix(".report-").suffix(".tmp");
    // As any file that the user makes: the mask takes away what it takes away.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder)
}
