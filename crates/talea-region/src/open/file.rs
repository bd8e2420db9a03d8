//! Regions in files, for processes that do not fork from one parent: `attach.rs` opens them on Linux.

use std::path::PathBuf;

use crate::region::Region;

/// A region that was opened by path, and a notice for the caller to log.
#[derive(Debug)]
pub struct Opened {
    /// The region.
    pub region: &'static Region,
    /// The file that holds it: the path that was asked for, or a sibling.
    pub path: PathBuf,
    /// The reason why the file at the path was not used, and the action that was taken; or that its
    /// group is not the requested one.
    pub notice: Option<String>,
}

impl Region {
    /// Gives a sibling the path for which it stands. A region [opens](Self::open) a sibling if the
    /// file at the path cannot be shared. When no process used that file at two calls in a row, it
    /// is moved aside as by `open`, and the sibling is renamed. Returns a notice for the caller to
    /// log.
    ///
    /// Cost: some system calls; none for a region that is not in a sibling.
    pub fn claim_path(&self) -> Option<String> {
        #[cfg(all(target_os = "linux", not(loom)))]
        return self.claim_path_of(self.beside.get()?);
        #[cfg(not(all(target_os = "linux", not(loom))))]
        None
    }

    /// Calls [`claim_path`](Self::claim_path) if the last call was a minute ago or more.
    pub fn claim_path_if_due(&self) -> Option<String> {
        #[cfg(all(target_os = "linux", not(loom)))]
        return self.beside.get()?.is_due().then(|| self.claim_path())?;
        #[cfg(not(all(target_os = "linux", not(loom))))]
        None
    }
}

/// Elsewhere no file and no memory can be shared: these always return [`OpenError::Unsupported`].
#[cfg(not(all(target_os = "linux", not(loom))))]
#[allow(missing_docs)]
mod unsupported {
    use std::path::Path;

    use super::{Opened, Region};
    use crate::config::Config;
    use crate::error::OpenError;

    type Attached = Result<&'static Region, OpenError>;

    impl Region {
        pub fn open(_: impl AsRef<Path>, _: Config) -> Result<Opened, OpenError> {
            Err(OpenError::Unsupported)
        }

        pub fn attach(_: impl AsRef<Path>) -> Attached {
            Err(OpenError::Unsupported)
        }

        pub fn attach_owned_by(_: impl AsRef<Path>, _: &[u32]) -> Attached {
            Err(OpenError::Unsupported)
        }

        pub fn attach_to_process(_: u32) -> Attached {
            Err(OpenError::Unsupported)
        }
    }
}
