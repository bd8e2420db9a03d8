//! Planes that a thread borrows, for plain adds of another language.

use talea::LentPlane;

use crate::boundary::{guarded, place, required};
use crate::family::Series;
use crate::fork;
use crate::registry::Registry;
use crate::status::Status;

/// A part of a region that one thread alone writes, until it returns it or the process ends.
pub struct Plane {
    plane: LentPlane,
}

/// Borrows a plane of a registry's region for the calling thread, so that it adds to counters by plain loads and
/// stores. What it adds stays when it returns the plane, ends or is killed; the next borrower goes on from there.
///
/// TALEA_STATUS_NULL; _NO_ROOM if all planes are borrowed, or the region was made without any (`lent_planes` of
/// talea_open_options): then record by calls.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_plane_borrow(
    registry: *const Registry,
    plane: *mut *mut Plane,
) -> Status {
    // SAFETY: the header demands valid pointers.
    guarded(|| unsafe {
        let (registry, place) = (required(registry)?, place(plane)?);
        let _inside = fork::enter();
        let borrowed = registry.registry.lend_plane().ok_or(Status::NoRoom)?;
        place.write(Box::into_raw(Box::new(Plane { plane: borrowed })));
        Ok(())
    })
}

/// Returns a plane. Its words must not be written any more. A child made by fork may call this for a plane of
/// its parent, which keeps it; the child must write to none of its words. Null is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_plane_return(plane: *mut Plane) {
    guarded(|| {
        if !plane.is_null() {
            // SAFETY: the header demands a pointer of talea_plane_borrow, and one call for each.
            drop(unsafe { Box::from_raw(plane) });
        }
        Ok(())
    });
}

/// Writes the address of a kept series' word in a plane. The thread that borrowed the plane, and no other, adds
/// to it by a plain load and a store of 64 aligned bits: a whole number for a counter, a double for a float counter.
/// The word does not hold the value, but what was added in this plane. It is valid until the series is released
/// or the plane returned.
///
/// A double does not count by one from 2^53 on, so record by calls then.
///
/// TALEA_STATUS_NULL; _WRONG_KIND of metrics that are no counters, and of series without copies: a counter has them
/// without labels or with TALEA_FAMILY_STRIPED, as long as the region has room for them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_plane_word(
    plane: *const Plane,
    series: *const Series,
    word: *mut *mut u64,
) -> Status {
    // SAFETY: the header demands valid pointers.
    guarded(|| unsafe {
        let (plane, series, place) = (required(plane)?, required(series)?, place(word)?);
        let found = series.metric.word_in(&plane.plane).ok_or(Status::WrongKind)?;
        place.write(found.as_ptr());
        Ok(())
    })
}
