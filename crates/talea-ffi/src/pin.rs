//! Keeps the library loaded.
//!
//! The shared library is linked so. Where it is linked statically into another one, such as an
//! extension that its host closes when it ends, that one is kept.

/// Has what this code is part of stay loaded until the process ends.
#[cfg(target_os = "linux")]
pub(crate) fn stay_loaded() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let here = stay_loaded as *const std::ffi::c_void;
        // SAFETY: the address is one of this code; the name that it is found by ends with a
        // zero and stays while it is loaded. What is loaded already is only marked.
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
