//! Statuses of calls.

use std::ffi::{CStr, c_char};

/// The status of a call. More may be added: treat an unknown status as an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    /// It is done.
    Ok = 0,
    /// A pointer is null that must not be.
    Null = 1,
    /// The `size` of a struct is not one that this library knows, or it sets what this library
    /// does not know.
    WrongSize = 2,
    /// A length is more than memory can hold.
    WrongLength = 3,
    /// A text is not UTF-8.
    NotUtf8 = 4,
    /// There are more label values than the family has labels, or fewer.
    WrongLabels = 5,
    /// Metrics of this kind have no such operation.
    WrongKind = 6,
    /// A metric of this kind cannot take this number: a counter nothing negative, a duration
    /// nothing that is no number.
    WrongValue = 7,
    /// An option has a value that there is not, or that does not go with another.
    WrongOption = 8,
    /// The region cannot be opened; the message says why.
    CannotOpen = 9,
    /// The family cannot be registered; the message says why.
    CannotRegister = 10,
    /// The buffer is too short; nothing was written to it.
    TooShort = 11,
    /// The caller's function asked to stop.
    Stopped = 12,
    /// The region has no room: for another family, or to note what was counted so far when that is
    /// wiped, which goes on then.
    NoRoom = 13,
    /// An error in the library itself. The call did nothing, or a part; others go on working.
    Panic = 14,
}

impl Status {
    /// The text of a status.
    pub(crate) fn text(self) -> &'static CStr {
        match self {
            Self::Ok => c"it is done",
            Self::Null => c"a pointer is null that must not be",
            Self::WrongSize => {
                c"the size of a struct is not one that this library knows, or it sets what this \
                  library does not know; fill it with zeros and set its size by sizeof"
            }
            Self::WrongLength => c"a length is more than memory can hold",
            Self::NotUtf8 => c"a text is not UTF-8",
            Self::WrongLabels => {
                c"there are more label values than the family has labels, or fewer"
            }
            Self::WrongKind => c"metrics of this kind have no such operation",
            Self::WrongValue => c"a metric of this kind cannot take this number",
            Self::WrongOption => {
                c"an option has a value that there is not, or that does not go with another"
            }
            Self::CannotOpen => c"the region cannot be opened",
            Self::CannotRegister => c"the family cannot be registered",
            Self::TooShort => c"the buffer is too short",
            Self::Stopped => c"the caller's function asked to stop",
            Self::NoRoom => c"the region has no room",
            Self::Panic => c"an error in the library itself",
        }
    }
}

/// A status in words, ending with a zero; it stays as long as the process. Of a number that is
/// no status, text that says so.
#[unsafe(no_mangle)]
pub extern "C" fn talea_status_text(status: i32) -> *const c_char {
    const ALL: [Status; 15] = [
        Status::Ok,
        Status::Null,
        Status::WrongSize,
        Status::WrongLength,
        Status::NotUtf8,
        Status::WrongLabels,
        Status::WrongKind,
        Status::WrongValue,
        Status::WrongOption,
        Status::CannotOpen,
        Status::CannotRegister,
        Status::TooShort,
        Status::Stopped,
        Status::NoRoom,
        Status::Panic,
    ];
    let found = ALL.into_iter().find(|known| *known as i32 == status);
    found.map_or(c"no status that this library knows", Status::text).as_ptr()
}

/// Why a call failed, with a message of its own.
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
    fn each_status_has_words_and_no_other_number_has() {
        let words = |status| {
            // SAFETY: what it returns ends with a zero and stays.
            unsafe { CStr::from_ptr(talea_status_text(status)) }.to_str().unwrap()
        };
        let unknown = words(-1);
        let known: std::collections::HashSet<_> = (0..=14).map(words).collect();
        assert_eq!(known.len(), 15);
        assert!(!known.contains(unknown) && words(15) == unknown);
    }
}
