//! Texts and label values, as C has them.

use std::ffi::{CStr, c_char};

use crate::boundary;
use crate::status::Status;

/// A text: `len` bytes of UTF-8, with or without a zero after them. Null with the length 0 is the
/// empty text.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Text {
    /// Where it begins.
    pub data: *const c_char,
    /// Its bytes.
    pub len: usize,
}

impl Text {
    pub(crate) fn of(text: &str) -> Self {
        Self { data: text.as_ptr().cast(), len: text.len() }
    }

    /// The text, if it is UTF-8.
    ///
    /// # Safety
    ///
    /// `data` points to `len` bytes that stay as they are for `'a`, or is null.
    #[inline]
    pub(crate) unsafe fn as_str<'a>(self) -> Result<&'a str, Status> {
        // SAFETY: as the caller promises.
        let bytes = unsafe { boundary::slice(self.data.cast::<u8>(), self.len)? };
        // Most texts are ASCII and short; the check for UTF-8 is a call, and byte by byte.
        if is_ascii(bytes) {
            // SAFETY: ASCII is UTF-8.
            return Ok(unsafe { std::str::from_utf8_unchecked(bytes) });
        }
        std::str::from_utf8(bytes).map_err(|_| Status::NotUtf8)
    }
}

/// As `<[u8]>::is_ascii`, which looks at up to seven bytes one by one.
#[inline]
fn is_ascii(bytes: &[u8]) -> bool {
    match (bytes.len(), bytes.first_chunk(), bytes.last_chunk()) {
        (4..=8, Some(first), Some(last)) => {
            (u32::from_ne_bytes(*first) | u32::from_ne_bytes(*last)) & 0x8080_8080 == 0
        }
        _ => bytes.is_ascii(),
    }
}

/// The text before the first zero; empty for null. It is not copied.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_text_of(zero_terminated: *const c_char) -> Text {
    if zero_terminated.is_null() {
        return Text { data: std::ptr::null(), len: 0 };
    }
    // SAFETY: the caller's text ends with a zero.
    let len = unsafe { CStr::from_ptr(zero_terminated) }.count_bytes();
    Text { data: zero_terminated, len }
}

/// A label value that was checked to be UTF-8; only `values` makes one. So a list of any length is
/// used in place.
#[repr(transparent)]
pub(crate) struct Value(Text);

impl AsRef<str> for Value {
    #[inline]
    fn as_ref(&self) -> &str {
        let Text { data, len } = self.0;
        if len == 0 {
            return "";
        }
        // SAFETY: `values` found UTF-8 there, and the caller does not change it until its call
        // returns.
        unsafe { std::str::from_utf8_unchecked(std::slice::from_raw_parts(data.cast(), len)) }
    }
}

/// The label values of a call.
///
/// # Safety
///
/// `values` points to `count` texts with as many bytes as their lengths say, all of which stay as
/// they are for `'a`, which ends before the call returns.
#[inline]
pub(crate) unsafe fn values<'a>(values: *const Text, count: usize) -> Result<&'a [Value], Status> {
    // SAFETY: as the caller promises; a value has the layout of its text.
    let values: &[Value] = unsafe { boundary::slice(values.cast(), count)? };
    // SAFETY: as the caller promises.
    if !values.is_empty() && !unsafe { are_ascii(values) } {
        // SAFETY: as the caller promises.
        unsafe { check(values)? };
    }
    Ok(values)
}

/// Whether all values can be read and are ASCII. It calls nothing, so it saves no registers.
///
/// # Safety
///
/// As `values`.
#[inline(never)]
unsafe fn are_ascii(values: &[Value]) -> bool {
    values.iter().all(|&Value(text)| {
        // SAFETY: as the caller promises.
        let bytes = unsafe { boundary::slice(text.data.cast::<u8>(), text.len) };
        bytes.is_ok_and(is_ascii)
    })
}

/// # Safety
///
/// As `values`.
#[cold]
unsafe fn check(values: &[Value]) -> Result<(), Status> {
    // SAFETY: as the caller promises.
    values.iter().try_for_each(|&Value(text)| unsafe { text.as_str() }.map(drop))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_values_are_used_as_given_or_refused() {
        let long = "x".repeat(1000);
        for texts in [vec![], vec![""], vec!["a", "ü\0b", &long, "💡"]] {
            let given: Vec<Text> = texts.iter().copied().map(Text::of).collect();
            // SAFETY: the texts outlive the values.
            let found = unsafe { values(given.as_ptr(), given.len()) }.unwrap();
            assert!(found.iter().map(Value::as_ref).eq(texts));
        }
        let refused = |text, count| {
            let given = [Text::of("fine"), text];
            // SAFETY: as above; impossible lengths are refused before anything is read.
            unsafe { values(given.as_ptr(), count) }.map(<[Value]>::len).err()
        };
        let null = |len| Text { data: std::ptr::null(), len };
        assert_eq!(refused(null(0), 2), None);
        assert_eq!(refused(null(1), 2), Some(Status::Null));
        let cut = Text { len: 1, ..Text::of("ü") };
        assert_eq!(refused(cut, 2), Some(Status::NotUtf8));
        assert_eq!(refused(cut, 1), None);
        let endless = Text { len: usize::MAX, ..Text::of("x") };
        assert_eq!(refused(endless, 2), Some(Status::WrongLength));
        assert_eq!(refused(cut, usize::MAX / 2), Some(Status::WrongLength));
    }
}
