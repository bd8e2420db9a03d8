//! Functions of this library that run when its process forks.

/// Has functions run before each fork of this process, and in each child.
///
/// # Safety
///
/// They call only functions that are safe in the child of a process with threads.
pub(crate) unsafe fn at_fork(before: Option<Handler>, in_child: Handler) {
    // SAFETY: as the caller promises. None is called after this library was unloaded: glibc removes the
    // handlers of a library when it unloads that (`pthread_atfork` notes whose they are), and musl unloads
    // none. Other systems keep handlers; a library that has Talea inside must stay loaded there
    // (`tests/late/build.rs`).
    unsafe { libc::pthread_atfork(before, None, Some(in_child)) };
}

type Handler = unsafe extern "C" fn();
