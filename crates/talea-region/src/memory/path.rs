//! The path of striped adds: how a process adds to cells that have a copy for each CPU.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::restartable;
use crate::error::OpenError;

/// The path of a process's striped adds. All paths can be used in one region at the same time, and no
/// add is lost: planes that get plain adds get no atomic ones.
///
/// Default: [`Restartable`](Self::Restartable) if the C library has registered restartable sequences, or
/// leaves that to its users and the system permits it; otherwise [`Atomic`](Self::Atomic). The environment variable `TALEA_PLANES` with `restartable`,
/// `atomic` or `single` chooses another one when a region is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum AddPath {
    /// Plain adds to the running CPU's plane in restartable sequences (`rseq(2)`): on Linux on x86-64 and
    /// aarch64. A CPU without a plane is added to as by `Atomic`.
    #[default]
    Restartable = 0,
    /// Atomic adds to the plane of the CPU on which the thread was last seen.
    Atomic = 1,
    /// Atomic adds to the one plane that all share. For measurements, and for emergencies.
    Single = 2,
}

impl AddPath {
    const ALL: [(&'static str, Self); 3] =
        [("restartable", Self::Restartable), ("atomic", Self::Atomic), ("single", Self::Single)];

    /// Its name, as `TALEA_PLANES` takes it.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].0
    }

    /// All paths.
    pub fn all() -> [Self; 3] {
        Self::ALL.map(|(_, path)| path)
    }

    pub(crate) fn from_u64(n: u64) -> Self {
        Self::ALL.get(n as usize).map_or(Self::Single, |(_, path)| *path)
    }
}

/// The path that was chosen. `Restartable` uses sequences only if they are available.
static CHOSEN: AtomicU64 = AtomicU64::new(AddPath::Restartable as u64);

/// Chooses the path of this process.
pub(crate) fn choose(path: AddPath) {
    CHOSEN.store(path as u64, Relaxed);
    match path {
        AddPath::Restartable => restartable::detect(),
        AddPath::Atomic | AddPath::Single => restartable::disable(),
    }
}

/// Chooses the path that `TALEA_PLANES` names, or the default one, when the process first opens a
/// region.
///
/// # Errors
///
/// [`OpenError::AddPath`] if the variable has another value.
pub(crate) fn choose_by_environment() -> Result<(), OpenError> {
    static CHOICE: OnceLock<Result<(), String>> = OnceLock::new();
    let choice = CHOICE.get_or_init(|| {
        let name = std::env::var_os("TALEA_PLANES").unwrap_or_default();
        let named = AddPath::ALL.into_iter().find(|(known, _)| name == **known);
        match named {
            Some((_, path)) => choose(path),
            None if name.is_empty() => choose(AddPath::default()),
            None => return Err(name.to_string_lossy().into_owned()),
        }
        Ok(())
    });
    choice.clone().map_err(OpenError::AddPath)
}

/// The path of this process's striped adds.
pub(crate) fn current() -> AddPath {
    match CHOSEN.load(Relaxed) {
        _ if restartable::enabled() => AddPath::Restartable,
        n if n == AddPath::Single as u64 => AddPath::Single,
        _ => AddPath::Atomic,
    }
}

/// Whether all atomic adds go to the shared plane.
#[inline]
pub(super) fn is_single() -> bool {
    CHOSEN.load(Relaxed) == AddPath::Single as u64
}
