//! The plane of an environment, as JavaScript sees it: an array buffer over its words.

use std::sync::Arc;

use napi::bindgen_prelude::{ArrayBuffer, Env, Result};
use talea::LentPlane;

/// An array buffer over the words of a plane, which keeps it borrowed until the environment ends. `None` where
/// the engine refuses memory that it has not allocated, as in Electron.
pub(crate) fn buffer<'env>(
    env: &'env Env,
    plane: &Arc<LentPlane>,
) -> Result<Option<ArrayBuffer<'env>>> {
    let words = plane.words();
    let (first, len) = (words.as_ptr().cast::<u8>().cast_mut(), size_of_val(words));
    if len == 0 {
        return Ok(None);
    }
    let held = Arc::clone(plane);
    // SAFETY: the words are mapped for as long as the process lives, and may be written through a shared
    // reference, since they are atomics. Node calls the closure when no JavaScript can reach the buffer any more;
    // until then `held` keeps the plane this environment's, whose only thread is its only writer.
    let buffer =
        unsafe { ArrayBuffer::from_external(env, first, len, held, |_, held| drop(held)) }?;
    // Where external memory is refused, there is a copy instead.
    Ok(std::ptr::eq(buffer.as_ptr(), first).then_some(buffer))
}
