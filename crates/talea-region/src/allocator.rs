//! The C library's allocator.

/// Makes the C library return every buffer of 1 MiB or more to the system when it is freed. For a
/// program whose memory is mostly snapshots, like an agent: call it once, before there are threads.
///
/// By default, glibc takes such buffers from the heap of one of its arenas once a buffer of that size
/// was freed, and each arena keeps up to 64 MiB of what is freed. A process in which scrapes come and go
/// may then hold several times the memory of those that are going on.
///
/// Cost: system calls for each such buffer. It does nothing where the C library is another one. Source:
/// <https://man7.org/linux/man-pages/man3/mallopt.3.html>, "Dynamic mmap threshold".
pub fn return_large_buffers() {
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
    // SAFETY: it sets a parameter of the allocator under the allocator's own lock.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 20);
    }
}
