//! Keeps the library loaded.
//!
//! The shared library is linked with `-z nodelete`. A library that has it linked in statically, such
//! as an extension that its host closes at its end, is kept loaded here.

/// Keeps the library that this code is part of loaded until the process ends.
#[cfg(target_os = "linux")]
pub(crate) fn stay_loaded() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let here = stay_loaded as *const std::ffi::c_void;
        // SAFETY: the address is one of this code; its library's name ends with a zero and stays
        // while it is loaded. A library that is loaded already is only marked.
        unsafe {
            let mut found: libc::Dl_info = std::mem::zeroed();
            if libc::dladdr(here, &mut found) != 0 && !found.dli_fname.is_null() {
                let how = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
                libc::dlopen(found.dli_fname, how);
            }
        }
    });
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn stay_loaded() {}
