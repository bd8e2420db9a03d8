//! How a process ended, as the kernel reports it to others than the parent since Linux 6.15.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProcessEnd {
    /// It called `exit` with this code.
    Code(i32),
    /// A signal killed it.
    Signal(i32),
}

/// `struct pidfd_info` of linux/pidfd.h, as Linux 6.15 has it. Later kernels have a longer one, and fill in as much as
/// the caller has room for.
#[repr(C)]
#[derive(Default)]
struct PidfdInfo {
    mask: u64,
    cgroup_id: u64,
    /// Ids of the process, its thread group and its parent, of users and of groups.
    ids: [u32; 11],
    exit_code: i32,
}

/// `PIDFD_GET_INFO`, which is `_IOWR(0xFF, 11, struct pidfd_info)`.
const GET_INFO: u64 = 3 << 30 | (size_of::<PidfdInfo>() as u64) << 16 | 0xFF << 8 | 11;
/// `PIDFD_INFO_EXIT`.
const EXIT: u64 = 1 << 3;

/// How the process of a pidfd ended. `None` while it lives, and until its parent has waited for it.
///
/// # Errors
///
/// The kernel does not say it: it is older than 6.15, or refuses.
pub fn process_end(pidfd: BorrowedFd<'_>) -> io::Result<Option<ProcessEnd>> {
    let mut info = PidfdInfo { mask: EXIT, ..PidfdInfo::default() };
    // SAFETY: the kernel writes at most as many bytes as the request's number says, which are those of `info`.
    let done = unsafe { libc::ioctl(pidfd.as_raw_fd(), GET_INFO as _, &raw mut info) };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    if info.mask & EXIT == 0 {
        return Ok(None);
    }
    let status = info.exit_code;
    Ok(Some(match status & 0x7F {
        0 => ProcessEnd::Code(status >> 8 & 0xFF),
        signal => ProcessEnd::Signal(signal),
    }))
}

#[cfg(all(test, not(miri)))]
mod tests {
    use std::os::fd::{FromRawFd, OwnedFd};
    use std::process::Command;

    use super::*;

    fn pidfd(pid: u32) -> OwnedFd {
        // SAFETY: the call takes two numbers; the descriptor that it returns is nobody else's.
        unsafe {
            let fd = libc::syscall(libc::SYS_pidfd_open, pid, 0);
            assert!(fd >= 0, "{}", io::Error::last_os_error());
            OwnedFd::from_raw_fd(fd as i32)
        }
    }

    #[test]
    fn the_end_of_a_process_is_said_after_its_parent_has_waited() {
        use std::os::fd::AsFd;
        for (script, expected) in [
            ("read line; exit 0", ProcessEnd::Code(0)),
            ("read line; exit 3", ProcessEnd::Code(3)),
            ("read line; kill -KILL $$", ProcessEnd::Signal(libc::SIGKILL)),
            ("read line; kill -SEGV $$", ProcessEnd::Signal(libc::SIGSEGV)),
        ] {
            let command = &mut Command::new("sh");
            let mut child =
                command.args(["-c", script]).stdin(std::process::Stdio::piped()).spawn().unwrap();
            let pidfd = pidfd(child.id());
            let living = process_end(pidfd.as_fd());
            drop(child.stdin.take());
            child.wait().unwrap();
            let ended = process_end(pidfd.as_fd());
            if let Err(error) = &ended {
                println!("ignored: this kernel does not say how a process ended: {error}");
                return;
            }
            assert_eq!((living.unwrap(), ended.unwrap()), (None, Some(expected)), "{script}");
        }
    }
}
