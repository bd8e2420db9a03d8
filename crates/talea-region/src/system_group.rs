//! Groups of users, as the system knows them.

use std::io;

/// The number of the group with this name; `None` where the system knows no such group.
/// A name of digits alone is looked for as any other.
///
/// # Errors
///
/// The system could not ask for it.
#[cfg(unix)]
pub fn group_named(name: &str) -> io::Result<Option<u32>> {
    /// More than the members of any group take.
    const ENOUGH: usize = 16 << 20;

    // A name that no group can have.
    let Ok(name) = std::ffi::CString::new(name) else { return Ok(None) };
    let mut texts: Vec<libc::c_char> = vec![0; 1024];
    loop {
        // SAFETY: group is integers and pointers, for which zero is a valid value.
        let mut group: libc::group = unsafe { std::mem::zeroed() };
        let mut found = std::ptr::null_mut();
        // SAFETY: the name is NUL-terminated; the rest is ours to write, `texts` has the stated
        // length, and all of it outlives the call.
        let status = unsafe {
            libc::getgrnam_r(name.as_ptr(), &mut group, texts.as_mut_ptr(), texts.len(), &mut found)
        };
        match status {
            0 => return Ok((!found.is_null()).then_some(group.gr_gid)),
            libc::EINTR => {}
            libc::ERANGE if texts.len() < ENOUGH => texts.resize(texts.len() * 4, 0),
            // The results, beside 0, that systems give for a group that does not exist.
            libc::ENOENT | libc::ESRCH | libc::EBADF | libc::EPERM => return Ok(None),
            error => return Err(io::Error::from_raw_os_error(error)),
        }
    }
}

/// Only Unix has such groups.
///
/// # Errors
///
/// Always.
#[cfg(not(unix))]
pub fn group_named(_name: &str) -> io::Result<Option<u32>> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_found_by_its_name_and_no_other_is() {
        assert_eq!(group_named("root").unwrap(), Some(0));
        for name in ["no such group", "", "0", "ro\0ot"] {
            assert_eq!(group_named(name).unwrap(), None, "{name:?}");
        }
    }
}
