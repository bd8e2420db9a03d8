//! The names of runtimes that are in use.
//!
//! A runtime has at least one worker, so where this process set `tokio_workers` of a name
//! the name is taken in that registry. A process beyond the 256th shares its value with
//! others, so this list says too whether the process ever took the name at all.

use std::collections::HashSet;
use std::process;
use std::sync::{Mutex, PoisonError};
use talea::{Error, Gauge};

/// By process: a child made by `fork` has taken none, whatever its copy of this says.
static TAKEN: Mutex<Option<HashSet<(u32, String)>>> = Mutex::new(None);

/// Takes a name, whose gauge is `workers`, or returns that it is taken. `set` sets the gauge.
pub(super) fn take(name: &str, workers: &Gauge, set: impl FnOnce()) -> Result<(), Error> {
    // Held until the gauge is set: else two threads could take one name.
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    let is_new = taken.get_or_insert_default().insert((process::id(), name.to_owned()));
    if !is_new && workers.get() != 0 {
        return Err(Error::Register {
            name: "tokio_workers".to_owned(),
            reason: format!(
                "this process shows a runtime {name:?} in this registry already; give each \
                 runtime a name of its own"
            ),
        });
    }
    set();
    Ok(())
}
