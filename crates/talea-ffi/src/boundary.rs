//! Pointers of C become references here, and panics become statuses.

use std::any::Any;
use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::status::{Failure, Status};

/// No version of a struct of options is longer.
const LONGEST: usize = 4096;

/// Runs the body of a call that has no message. No panic leaves it.
#[inline]
pub(crate) fn guarded(body: impl FnOnce() -> Result<(), Status>) -> Status {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => Status::Ok,
        Ok(Err(status)) => status,
        Err(payload) => panicked(payload),
    }
}

#[cold]
fn panicked(payload: Box<dyn Any + Send>) -> Status {
    // The payload's own drop may panic too.
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(again);
    }
    Status::Panic
}

/// Runs the body of a call that writes the reason of a failure to the caller's buffer.
///
/// # Safety
///
/// `message` is null, or points to `len` bytes that no other code uses meanwhile.
pub(crate) unsafe fn guarded_with_message(
    message: *mut c_char,
    len: usize,
    body: impl FnOnce() -> Result<(), Failure>,
) -> Status {
    let mut reason = String::new();
    let status = guarded(|| {
        body().map_err(|failure| {
            reason = failure.message;
            failure.status
        })
    });
    if status == Status::Panic {
        reason = status.text().to_string_lossy().into_owned();
    }
    // SAFETY: as the caller promises.
    unsafe { write_message(&reason, message, len) };
    status
}

/// Writes a text with a zero at its end, cut between characters if it does not fit.
///
/// # Safety
///
/// As `guarded_with_message`.
unsafe fn write_message(text: &str, message: *mut c_char, len: usize) {
    let Some(room) = len.checked_sub(1).filter(|_| !message.is_null()) else { return };
    let end = (0..=room.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    let text = &text.as_bytes()[..end.unwrap_or(0)];
    // SAFETY: the text and its zero are no longer than the buffer, which no other code uses.
    unsafe {
        message.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), text.len());
        message.add(text.len()).write(0);
    }
}

/// The object that a pointer points to.
///
/// # Safety
///
/// It is null, or points to a `T` that stays for `'a` and is only read.
#[inline]
pub(crate) unsafe fn required<'a, T>(pointer: *const T) -> Result<&'a T, Status> {
    // SAFETY: as the caller promises.
    unsafe { pointer.as_ref() }.ok_or(Status::Null)
}

/// A place for a result. It need not be initialized.
///
/// # Safety
///
/// It is null, or points to room for a `T` that no other code uses for `'a`.
#[inline]
pub(crate) unsafe fn place<'a, T>(pointer: *mut T) -> Result<&'a mut MaybeUninit<T>, Status> {
    // SAFETY: as the caller promises; the memory need not hold a `T`.
    unsafe { pointer.cast::<MaybeUninit<T>>().as_mut() }.ok_or(Status::Null)
}

/// An array; null if it has no elements.
///
/// # Safety
///
/// `first` is null, or points to `count` elements that stay as they are for `'a`.
#[inline]
pub(crate) unsafe fn slice<'a, T>(first: *const T, count: usize) -> Result<&'a [T], Status> {
    if count == 0 {
        return Ok(&[]);
    }
    if count > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(Status::WrongLength);
    }
    if first.is_null() {
        return Err(Status::Null);
    }
    if !first.is_aligned() {
        return Err(Status::WrongLength);
    }
    // SAFETY: it is not null, is aligned and not too long; the rest is as the caller promises.
    Ok(unsafe { std::slice::from_raw_parts(first, count) })
}

/// A struct of options: its first field is its size.
///
/// # Safety
///
/// Any bytes are a `Self`, and its first field is a `usize`.
pub(crate) unsafe trait Options: Copy {}

/// Reads options that may have been compiled with a later header: fields that this library does
/// not know must be zero.
///
/// # Safety
///
/// It is null, or points to a `usize` that is the number of bytes there, itself included.
pub(crate) unsafe fn options<T: Options>(pointer: *const T) -> Result<T, Status> {
    if pointer.is_null() {
        return Err(Status::Null);
    }
    // SAFETY: options begin with their size, as the caller promises.
    let size = unsafe { pointer.cast::<usize>().read_unaligned() };
    if !(size_of::<T>()..=LONGEST).contains(&size) {
        return Err(Status::WrongSize);
    }
    // SAFETY: the options have `size` bytes, as the caller promises.
    let bytes = unsafe { std::slice::from_raw_parts(pointer.cast::<u8>(), size) };
    if bytes[size_of::<T>()..].iter().any(|&byte| byte != 0) {
        return Err(Status::WrongSize);
    }
    // SAFETY: there are at least the bytes of a `T`, and any are one.
    Ok(unsafe { pointer.read_unaligned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct PanicsWhenDropped;

    impl Drop for PanicsWhenDropped {
        fn drop(&mut self) {
            panic!("for a test, again");
        }
    }

    #[test]
    fn a_panic_becomes_a_status_with_its_text() {
        assert_eq!(guarded(|| panic!("for a test")), Status::Panic);
        assert_eq!(guarded(|| std::panic::panic_any(PanicsWhenDropped)), Status::Panic);
        let mut buffer = [b'x' as c_char; 64];
        // SAFETY: the buffer is as long as it says.
        let status =
            unsafe { guarded_with_message(buffer.as_mut_ptr(), 64, || panic!("for a test")) };
        assert_eq!(status, Status::Panic);
        // SAFETY: the message ends with a zero.
        let text = unsafe { std::ffi::CStr::from_ptr(buffer.as_ptr()) };
        assert_eq!(text, Status::Panic.text());
    }

    #[test]
    fn a_message_is_cut_between_characters_and_never_goes_beyond_its_buffer() {
        for len in 0..12 {
            let mut buffer = [b'x' as c_char; 12];
            // SAFETY: the buffer is longer than that.
            let status = unsafe {
                guarded_with_message(buffer.as_mut_ptr(), len, || {
                    Err(Failure::new(Status::CannotOpen, "aüöb💡"))
                })
            };
            assert_eq!(status, Status::CannotOpen);
            let beyond = &buffer[len..];
            assert!(beyond.iter().all(|&byte| byte == b'x' as c_char), "{len}");
            let written: Vec<u8> = buffer[..len].iter().map(|&byte| byte as u8).collect();
            let Some(end) = written.iter().position(|&byte| byte == 0) else {
                assert_eq!(len, 0);
                continue;
            };
            assert!("aüöb💡".starts_with(std::str::from_utf8(&written[..end]).unwrap()));
            assert!(end + 4 >= len, "{end} of {len}");
        }
        // SAFETY: null is no buffer.
        let status =
            unsafe { guarded_with_message(std::ptr::null_mut(), 12, || Err(Status::Null.into())) };
        assert_eq!(status, Status::Null);
    }

    #[test]
    fn options_of_a_later_header_are_read_if_their_new_fields_are_zero() {
        #[derive(Clone, Copy)]
        #[repr(C)]
        struct Two {
            size: usize,
            number: u64,
        }
        // SAFETY: it is two numbers, the first a `usize`.
        unsafe impl Options for Two {}
        let read = |words: &[u64]| {
            let options = words.as_ptr().cast::<Two>();
            // SAFETY: a size that is not refused is no more than the bytes there are.
            unsafe { self::options(options) }.map(|options| (options.size, options.number))
        };
        assert_eq!(read(&[16, 7]), Ok((16, 7)));
        assert_eq!(read(&[24, 7, 0]), Ok((24, 7)));
        assert_eq!(read(&[24, 7, 1]), Err(Status::WrongSize));
        assert_eq!(read(&[8, 7]), Err(Status::WrongSize));
        assert_eq!(read(&[0, 7]), Err(Status::WrongSize));
        assert_eq!(read(&[u64::MAX, 7]), Err(Status::WrongSize));
    }
}
