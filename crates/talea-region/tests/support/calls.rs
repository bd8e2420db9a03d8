//! Calls of the system.

use std::mem::zeroed;
use std::time::Duration;

/// The CPU time of this thread, which other programs on the machine do not lengthen.
pub(crate) fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the result is ours to write; the clock is one that every system with POSIX threads has.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Moves a thread, 0 for the calling one, to a CPU; false if the system refuses.
pub(crate) fn move_to(cpu: usize, thread: libc::pid_t) -> bool {
    // SAFETY: a CPU set is plain bits, for which zero is a valid value; it lives through the call.
    unsafe {
        let mut set: libc::cpu_set_t = zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(thread, size_of_val(&set), &set) == 0
    }
}

/// Has a signal handled from now on.
///
/// # Safety
///
/// The handler does only what any handler may, such as adding to cells and atomics.
pub(crate) unsafe fn handle(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) {
    // SAFETY: the action is plain integers, for which zero is a valid value; the rest is as the
    // caller promises.
    unsafe {
        let mut action: libc::sigaction = zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(signal, &action, std::ptr::null_mut()), 0);
    }
}

/// Sends a signal to a thread of this process that has not ended.
pub(crate) fn signal_thread(thread: libc::pid_t, signal: libc::c_int) {
    // SAFETY: calls with integers only.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, signal) };
}

/// The calling thread's own number.
pub(crate) fn own_thread() -> libc::pid_t {
    // SAFETY: a call without arguments that only returns a number.
    unsafe { libc::gettid() }
}

/// Has the system refuse some of its calls to this process from now on, and to all programs that it
/// starts.
pub(crate) fn refuse(calls: &[i64]) -> std::io::Result<()> {
    const fn instruction(code: u32, jt: u8, k: u32) -> libc::sock_filter {
        libc::sock_filter { code: code as u16, jt, jf: 0, k }
    }
    // The number of the call; for each number, skip the next unless it is not it.
    let mut program = vec![instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0)];
    for (n, call) in calls.iter().enumerate() {
        let to_refusal = (calls.len() - n) as u8;
        let jump = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
        program.push(instruction(jump, to_refusal, *call as u32));
    }
    program.push(instruction(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW));
    let refusal = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    program.push(instruction(libc::BPF_RET | libc::BPF_K, 0, refusal));
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the program is valid during the call.
    let results = unsafe {
        [
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
            libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program),
        ]
    };
    if results == [0, 0] { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// Forks a child that does `work` and then waits to be killed. Returns when the work is done.
pub(crate) fn fork(work: impl FnOnce()) -> libc::pid_t {
    let mut pipe = [0; 2];
    // SAFETY: `pipe` has room for two descriptors.
    assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
    // SAFETY: the child calls nothing that another thread may hold a lock of: it adds to cells,
    // writes to a pipe and pauses.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        work();
        // SAFETY: plain calls on descriptors that are open; `pause` ends by the signal that kills
        // the child.
        unsafe {
            libc::write(pipe[1], b"x".as_ptr().cast(), 1);
            loop {
                libc::pause();
            }
        }
    }
    let mut done = 0_u8;
    // SAFETY: one byte is read into one byte, then both ends are closed once.
    unsafe {
        assert_eq!(libc::read(pipe[0], (&raw mut done).cast(), 1), 1);
        libc::close(pipe[0]);
        libc::close(pipe[1]);
    }
    pid
}

/// Kills a process that may be another one's child.
pub(crate) fn kill(pid: libc::pid_t) {
    // SAFETY: a call with integers; the process is one that the test started.
    unsafe { assert_eq!(libc::kill(pid, libc::SIGKILL), 0) };
}

/// Kills a child of this process and waits for its end.
pub(crate) fn kill_child(pid: libc::pid_t) {
    kill(pid);
    // SAFETY: the child is ours and not yet waited for.
    unsafe { assert_eq!(libc::waitpid(pid, std::ptr::null_mut(), 0), pid) };
}
