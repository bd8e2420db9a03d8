//! A process, as browsers get it.

use serde::Serialize;

/// A process that has a region open, or had.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Process {
    pub(crate) region: String,
    pub(crate) pid: u64,
    /// Since the machine booted: it says which process it is, whatever the wall clock says.
    #[serde(skip)]
    pub(crate) started_boot_nanos: u64,
    /// In milliseconds since 1970.
    #[serde(rename = "started")]
    pub(crate) started_unix_millis: i64,
    pub(crate) alive: bool,
    #[serde(rename = "died")]
    pub(crate) died_unix_millis: Option<i64>,
    /// How it ended, in words.
    pub(crate) reason: Option<String>,
}

impl Process {
    pub(crate) fn is(&self, other: &Self) -> bool {
        let key = |of: &Self| (of.pid, of.started_boot_nanos);
        self.region == other.region && key(self) == key(other)
    }
}
