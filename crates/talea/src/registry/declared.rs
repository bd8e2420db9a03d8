//! Statics that are declared as metrics by `#[register]`, and the default registry, which has them.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::Registry;
#[cfg(feature = "derive")]
use super::set_fields::SetFields;
use crate::error::Error;

/// A declared static. All of a program are a linked list, which is complete before `main` begins.
#[cfg(feature = "derive")]
#[derive(Debug)]
pub struct DeclaredStatic {
    /// Its path in the program.
    pub path: &'static str,
    /// Registers it.
    pub register: fn(&Registry) -> Result<(), Error>,
}

#[cfg(feature = "derive")]
inventory::collect!(DeclaredStatic);

/// Whether the program declares statics and no registry has them yet.
pub(crate) fn are_waiting() -> bool {
    #[cfg(feature = "derive")]
    let are_any = inventory::iter::<DeclaredStatic>().next().is_some();
    #[cfg(not(feature = "derive"))]
    let are_any = false;
    are_any && !ARE_INSTALLED.load(Relaxed)
}

static ARE_INSTALLED: AtomicBool = AtomicBool::new(false);

#[cfg(feature = "derive")]
impl Registry {
    /// Registers all statics that [`#[register]`](macro@crate::register) declares, in a registry of
    /// your own: one with another [`Config`](crate::Config), say. Doing it again changes nothing.
    ///
    /// # Errors
    ///
    /// Two of them have one name; or as [`install`](crate::install). Those that can be registered are.
    pub fn install_statics(&self) -> Result<(), Error> {
        // The linker orders them as it likes.
        let mut declared: Vec<&DeclaredStatic> = inventory::iter::<DeclaredStatic>().collect();
        declared.sort_unstable_by_key(|declared| declared.path);
        ARE_INSTALLED.store(true, Relaxed);
        let set = SetFields::new(self, "statics");
        let mut outcome = Ok(());
        for DeclaredStatic { path, register } in declared {
            outcome = outcome.and(register(&set.field(path, "")));
        }
        outcome
    }
}

/// The program's default registry, with all statics that `#[talea::register]` declares. The first call
/// opens it by [`Registry::from_env`]: in the file that `TALEA_REGION` names, or in memory of its own.
/// Until then, updates of those statics are discarded, so call it first in `main`; any thread may call
/// it.
///
/// # Errors
///
/// As [`Registry::from_env`] and [`Registry::install_statics`]. The next call tries again.
pub fn default_registry() -> Result<&'static Registry, Error> {
    static DEFAULT: OnceLock<Registry> = OnceLock::new();
    static INSTALLED: OnceLock<&Registry> = OnceLock::new();
    static FIRST: Mutex<()> = Mutex::new(());
    if let Some(registry) = INSTALLED.get() {
        return Ok(registry);
    }
    let _first = FIRST.lock().unwrap_or_else(PoisonError::into_inner);
    let registry = match DEFAULT.get() {
        Some(registry) => registry,
        None => DEFAULT.get_or_init({
            let opened = Registry::from_env()?;
            || opened
        }),
    };
    #[cfg(feature = "derive")]
    registry.install_statics()?;
    Ok(INSTALLED.get_or_init(|| registry))
}
