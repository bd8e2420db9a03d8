//! A registry, and the families in it.

use std::collections::BTreeMap;
use std::ffi::c_char;
use std::sync::{Mutex, PoisonError};

use talea::{Scraper, Snapshot};

use crate::boundary::{self, guarded, guarded_with_message, place, required};
use crate::definition::{Definition, FamilyOptions, Kind, Unit};
use crate::family::Family;
use crate::fork::{self, WithoutSignals};
use crate::kept::Kept;
use crate::kinds::AnyFamily;
use crate::status::{Failure, Status};
use crate::text::Text;

/// A registry: a region of shared memory, and what was registered in it. It stays until the
/// process ends, so there is nothing to free. Any number of threads may use one.
pub struct Registry {
    pub(crate) registry: talea::Registry,
    /// By their numbers in the region, kinds and units.
    families: Mutex<BTreeMap<(u32, Kind, Unit), &'static Family>>,
    /// The memory of the last scrape, with a piece of its page, for the next one.
    pub(crate) kept_scrape: Kept<(Scraper, Vec<u8>)>,
    pub(crate) kept_reading: Kept<Snapshot>,
}

impl Registry {
    pub(crate) fn new(registry: talea::Registry) -> Self {
        let (families, kept_scrape, kept_reading) = Default::default();
        Self { registry, families, kept_scrape, kept_reading }
    }

    fn register(&self, definition: Definition<'_>) -> Result<&'static Family, Failure> {
        let _inside = fork::enter();
        let _blocked = definition.is_windowed().then(WithoutSignals::new);
        // Talea looks each time: another process may have ended the family meanwhile.
        let found = AnyFamily::register(&self.registry, &definition).map_err(|error| {
            let is_full = matches!(error, talea::Error::Full { .. });
            let status = if is_full { Status::NoRoom } else { Status::CannotRegister };
            Failure::new(status, definition.message(&error))
        })?;
        let key = (found.number().unwrap_or(0), definition.kind, definition.unit);
        let mut families = self.families.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(*families
            .entry(key)
            .or_insert_with(|| Box::leak(Box::new(Family::new(found, definition.labels.len())))))
    }
}

/// Registers a family, or finds the one that is registered alike: the same options give the
/// same pointer. Keep it for as long as the process lives. Children made by fork use it too.
///
/// TALEA_STATUS_CANNOT_REGISTER with a message if the name, a label or the buckets cannot be
/// used, or the name has another definition (the message says in what they differ);
/// TALEA_STATUS_NO_ROOM if the region is full; or TALEA_STATUS_NULL, _WRONG_SIZE, _WRONG_LENGTH,
/// _WRONG_OPTION, _NOT_UTF8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_register(
    registry: *const Registry,
    options: *const FamilyOptions,
    family: *mut *const Family,
    message: *mut c_char,
    message_len: usize,
) -> Status {
    // SAFETY: the header demands valid pointers.
    unsafe {
        guarded_with_message(message, message_len, || {
            let (registry, place) = (required(registry)?, place(family)?);
            let definition = Definition::of(boundary::options(options)?)?;
            place.write(registry.register(definition)?);
            Ok(())
        })
    }
}

/// Resets the family of a name to 0, or all families if the name is empty, for all processes:
/// series with labels are removed, and kept ones count from 0. Things in flight, and values that
/// each process set for itself, stay. The name is as samples have it (a counter's with `_total`).
///
/// TALEA_STATUS_NULL, _WRONG_LENGTH, _NOT_UTF8, _NO_ROOM.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_wipe(registry: *const Registry, name: Text) -> Status {
    // SAFETY: the header demands valid pointers.
    guarded(|| unsafe {
        let (registry, name) = (required(registry)?, name.as_str()?);
        let is_wiped = registry.registry.wipe(|found| name.is_empty() || found == name);
        if is_wiped { Ok(()) } else { Err(Status::NoRoom) }
    })
}

/// Ends the family of a name, or all families if the name is empty, for all processes: scrapes no
/// longer show it, and its updates are discarded until a process registers it again with the same
/// options. The name is as samples have it (a counter's with `_total`). `ended`, which may be null,
/// receives the number of families that were ended.
///
/// TALEA_STATUS_NULL, _WRONG_LENGTH, _NOT_UTF8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_unregister(
    registry: *const Registry,
    name: Text,
    ended: *mut usize,
) -> Status {
    // SAFETY: the header demands valid pointers.
    guarded(|| unsafe {
        let (registry, name) = (&required(registry)?.registry, name.as_str()?);
        let count = match name {
            "" => registry.unregister_where(|_| true),
            name => usize::from(registry.unregister(name)),
        };
        place(ended).map(|place| place.write(count)).ok();
        Ok(())
    })
}
