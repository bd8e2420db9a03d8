//! Statuses of calls.

use std::ffi::{CStr, c_char};

/// The status of a call. More may be added: treat an unknown status as an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    /// Success.
    Ok = 0,
    /// A pointer that must not be null is null.
    Null = 1,
    /// The `size` of a struct is unknown to this library, or the struct sets a field that is.
    WrongSize = 2,
    /// A length is more than memory can hold.
    WrongLength = 3,
    /// A text is not UTF-8.
    NotUtf8 = 4,
    /// The number of label values is not that of the family's labels.
    WrongLabels = 5,
    /// Metrics of this kind have no such operation.
    WrongKind = 6,
    /// A metric of this kind cannot take this number: a counter no negative one, a duration no
    /// NaN.
    WrongValue = 7,
    /// An option has an unknown value, or one that contradicts another option.
    WrongOption = 8,
    /// The region cannot be opened; the message says why.
    CannotOpen = 9,
    /// The family cannot be registered; the message says why.
    CannotRegister = 10,
    /// The buffer is too short; nothing was written to it.
    TooShort = 11,
    /// The region has no room: for another family, or for the note of the present values that a
    /// wipe needs; the values are not reset then.
    NoRoom = 12,
    /// An error in the library itself. The call did nothing, or a part; other calls still work.
    Panic = 13,
}

/// By their numbers.
const TEXTS: [&CStr; 14] = [
    c"success",
    c"a pointer that must not be null is null",
    c"the size of a struct is unknown to this library, or the struct sets a field that is; fill it \
      with zeros and set its size by sizeof",
    c"a length is more than memory can hold",
    c"a text is not UTF-8",
    c"the number of label values is not that of the family's labels",
    c"metrics of this kind have no such operation",
    c"a metric of this kind cannot take this number",
    c"an option has an unknown value, or one that contradicts another option",
    c"the region cannot be opened",
    c"the family cannot be registered",
    c"the buffer is too short",
    c"the region has no room",
    c"an error in the library itself",
];

impl Status {
    pub(crate) fn text(self) -> &'static CStr {
        TEXTS[self as usize]
    }
}

/// The text of a status, with a zero at its end; it stays as long as the process. An unknown
/// number has a text that says so.
#[unsafe(no_mangle)]
pub extern "C" fn talea_status_text(status: i32) -> *const c_char {
    let known = usize::try_from(status).ok().and_then(|number| TEXTS.get(number));
    known.copied().unwrap_or(c"a status that this library does not know").as_ptr()
}

/// The failure of a call that has a message.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: Status,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(status: Status, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Self::new(status, status.text().to_string_lossy())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_has_a_text_and_no_other_number_has() {
        let words = |status| {
            // SAFETY: the text ends with a zero and stays.
            unsafe { CStr::from_ptr(talea_status_text(status)) }.to_str().unwrap()
        };
        let unknown = words(-1);
        let known: std::collections::HashSet<_> = (0..=13).map(words).collect();
        assert_eq!(known.len(), 14);
        assert!(!known.contains(unknown) && words(14) == unknown);
    }
}
