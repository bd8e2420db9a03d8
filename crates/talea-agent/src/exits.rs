//! How the processes of regions end: their exit code, a signal, or because memory ran out.
//!
//! Each living process has a descriptor (pidfd), from which the kernel says after its death how it ended, also to others
//! than its parent. Ids of processes are taken from regions, where a process of another namespace has its own number, so
//! a process counts only if it has the region mapped.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use talea::outside::{ProcessEnd, process_end};

use crate::descriptors::{CONNECTIONS, Shares};
use crate::page::Process;

/// For how many readings it is waited until a parent has waited for its child.
const PATIENCE: u32 = 10;
/// Processes that are not known to have ended are forgotten after so many readings without their region.
const FORGOTTEN: u32 = 3_600;

/// The device and the number of a region's file.
pub(crate) type Identity = (u64, u64);

/// Why a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Ended(ProcessEnd),
    /// The system killed it, since memory ran out.
    OutOfMemory,
    Unknown(Unknown),
}

/// Why it is not known how a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unknown {
    OldKernel,
    NoRights,
    OtherNamespace,
    FewDescriptors,
    NotWaitedFor,
}

impl Reason {
    /// Its kind, and what distinguishes it from others of that kind, as labels of a metric.
    pub(crate) fn labels(self) -> (&'static str, String) {
        match self {
            Self::Ended(ProcessEnd::Code(code)) => ("exit_code", code.to_string()),
            Self::Ended(ProcessEnd::Signal(signal)) => ("signal", name_of(signal)),
            Self::OutOfMemory => ("oom", String::new()),
            Self::Unknown(why) => ("unknown", why.words().to_owned()),
        }
    }
}

/// A reason in words, by its labels: `was killed by SIGKILL`.
pub(crate) fn in_words(kind: &str, detail: &str) -> String {
    match kind {
        "exit_code" => format!("ended with the exit code {detail}"),
        "signal" => format!("was killed by {detail}"),
        "oom" => "was killed by the system, since memory ran out".to_owned(),
        _ => format!("ended, and it is not known how: {detail}"),
    }
}

impl Unknown {
    fn words(self) -> &'static str {
        match self {
            Self::OldKernel => "the kernel is older than 6.15",
            Self::NoRights => "the agent may not look at the process",
            Self::OtherNamespace => {
                "the agent's pid namespace has no such process, or it ended at once"
            }
            Self::FewDescriptors => "too few file descriptors",
            Self::NotWaitedFor => "its parent has not waited for it",
        }
    }
}

fn name_of(signal: i32) -> String {
    const NAMES: [&str; 32] = [
        "0", "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV",
        "USR2", "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU",
        "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
    ];
    match usize::try_from(signal).ok().and_then(|signal| NAMES.get(signal)) {
        Some(name) => format!("SIG{name}"),
        None => format!("signal {signal}"),
    }
}

/// The living processes of all regions.
#[derive(Debug, Default)]
pub(crate) struct Exits {
    watched: Vec<Watched>,
    /// How often the system killed a process of a cgroup since memory ran out.
    out_of_memory: BTreeMap<PathBuf, u64>,
}

#[derive(Debug)]
struct Watched {
    process: Process,
    /// Its descriptor, and the file in which its cgroup counts kills.
    handle: Result<(OwnedFd, Option<PathBuf>), Unknown>,
    /// For how many readings it has been missing.
    missing: u32,
}

/// Distinguishes processes: by region, id and when it took its slot.
type Key<'a> = (&'a str, u64, u64);

fn key_of(process: &Process) -> Key<'_> {
    (&process.region, process.pid, process.started_boot_nanos)
}

impl Exits {
    /// Takes the processes that live now, and the files of the regions that can be read: those that ended, and why.
    pub(crate) fn next(
        &mut self,
        living: &[Process],
        regions: &BTreeMap<String, Identity>,
    ) -> Vec<(Process, Reason)> {
        let kills = self.kills();
        let mut ended = Vec::new();
        let alive: BTreeSet<Key<'_>> = living.iter().map(key_of).collect();
        self.watched.retain_mut(|watched| {
            if alive.contains(&key_of(&watched.process)) {
                watched.missing = 0;
                return true;
            }
            // Without its region, only a process itself says that it ended.
            let is_known = watched.handle.is_ok() || regions.contains_key(&watched.process.region);
            watched.missing += u32::from(is_known);
            let Some(reason) = watched.reason(&kills) else { return watched.missing < FORGOTTEN };
            if is_known {
                ended.push((watched.process.clone(), reason));
            }
            !is_known
        });
        let known: BTreeSet<Key<'_>> = self.watched.iter().map(|it| key_of(&it.process)).collect();
        let new: Vec<&Process> = living.iter().filter(|it| !known.contains(&key_of(it))).collect();
        let mut open = self.watched.iter().filter(|it| it.handle.is_ok()).count() as u64;
        let most = Shares::now(CONNECTIONS).processes;
        for process in new {
            let handle = match regions.get(&process.region) {
                _ if open >= most => Err(Unknown::FewDescriptors),
                None => Err(Unknown::NoRights),
                Some(identity) => handle(process.pid, *identity),
            };
            open += u64::from(handle.is_ok());
            self.watched.push(Watched { process: process.clone(), handle, missing: 0 });
        }
        self.out_of_memory = self.kills().into_iter().map(|(path, (now, _))| (path, now)).collect();
        ended
    }

    /// The kills that each cgroup counts now, and how many of these are new.
    fn kills(&self) -> BTreeMap<PathBuf, (u64, u64)> {
        let files = self.watched.iter().filter_map(|it| it.handle.as_ref().ok()?.1.as_ref());
        let files: BTreeSet<&PathBuf> = files.collect();
        let counted = files.into_iter().filter_map(|path| {
            let now = kills_in(&fs::read_to_string(path).ok()?)?;
            let before = self.out_of_memory.get(path).copied().unwrap_or(now);
            Some((path.clone(), (now, now.saturating_sub(before))))
        });
        counted.collect()
    }
}

impl Watched {
    /// Why it ended; `None` while it lives, or this cannot be said yet.
    fn reason(&self, kills: &BTreeMap<PathBuf, (u64, u64)>) -> Option<Reason> {
        let (pidfd, cgroup) = match &self.handle {
            Ok(handle) => handle,
            Err(why) => return Some(Reason::Unknown(*why)),
        };
        if !has_ended(pidfd) {
            return None;
        }
        match process_end(pidfd.as_fd()) {
            Err(_) => Some(Reason::Unknown(Unknown::OldKernel)),
            Ok(None) if self.missing < PATIENCE => None,
            Ok(None) => Some(Reason::Unknown(Unknown::NotWaitedFor)),
            Ok(Some(ProcessEnd::Signal(KILL))) if is_new(cgroup.as_ref(), kills) => {
                Some(Reason::OutOfMemory)
            }
            Ok(Some(end)) => Some(Reason::Ended(end)),
        }
    }
}

/// SIGKILL.
const KILL: i32 = 9;

fn is_new(cgroup: Option<&PathBuf>, kills: &BTreeMap<PathBuf, (u64, u64)>) -> bool {
    cgroup.and_then(|path| kills.get(path)).is_some_and(|(_, new)| *new > 0)
}

fn has_ended(pidfd: &OwnedFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
}

/// A descriptor of the process that has this id here, if it has the region mapped.
fn handle(pid: u64, identity: Identity) -> Result<(OwnedFd, Option<PathBuf>), Unknown> {
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(Unknown::OtherNamespace)?;
    let pidfd = pidfd_open(number, PidfdFlags::empty()).map_err(|error| match error {
        rustix::io::Errno::SRCH => Unknown::OtherNamespace,
        rustix::io::Errno::MFILE | rustix::io::Errno::NFILE => Unknown::FewDescriptors,
        rustix::io::Errno::NOSYS => Unknown::OldKernel,
        _ => Unknown::NoRights,
    })?;
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).map_err(|_| Unknown::NoRights)?;
    if !maps.lines().any(|line| identity_in(line) == Some(identity)) {
        return Err(Unknown::OtherNamespace);
    }
    let cgroup = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    // What was read is of the process of this descriptor, if that still has its id.
    if has_ended(&pidfd) {
        return Err(Unknown::NoRights);
    }
    Ok((pidfd, cgroup.lines().find_map(kills_file)))
}

/// The file of a line of `/proc/PID/maps`: `7f… rw-s 00000000 00:1a 4711 /dev/shm/shop.talea`.
fn identity_in(line: &str) -> Option<Identity> {
    let mut words = line.split_ascii_whitespace().skip(3);
    let (major, minor) = words.next()?.split_once(':')?;
    let [major, minor] = [major, minor].map(|number| u32::from_str_radix(number, 16).ok());
    let inode = words.next()?.parse().ok()?;
    Some((rustix::fs::makedev(major?, minor?), inode))
}

/// The file in which a cgroup counts kills, by a line of `/proc/PID/cgroup`: `0::/shop` or `4:memory:/shop`.
fn kills_file(line: &str) -> Option<PathBuf> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (controllers, path) = (parts.next()?, parts.next()?);
    if path.split('/').any(|part| part == "..") {
        // Of another cgroup namespace.
        return None;
    }
    let file = match controllers {
        "" => format!("/sys/fs/cgroup{path}/memory.events"),
        "memory" => format!("/sys/fs/cgroup/memory{path}/memory.oom_control"),
        _ => return None,
    };
    fs::metadata(&file).is_ok().then(|| file.into())
}

fn kills_in(events: &str) -> Option<u64> {
    let line = events.lines().find_map(|line| line.strip_prefix("oom_kill "))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A shell, which ends as its script says when its input ends; and the file that it has mapped.
    struct Shell {
        child: Child,
        process: Process,
        regions: BTreeMap<String, Identity>,
    }

    impl Shell {
        fn new(script: &str) -> Self {
            let script = format!("read line; {script}");
            let command = &mut Command::new("/bin/sh");
            let child = command.args(["-c", &script]).stdin(Stdio::piped()).spawn().unwrap();
            let program = fs::metadata("/bin/sh").unwrap();
            let process = Process {
                region: "shop".to_owned(),
                pid: child.id().into(),
                started_boot_nanos: 1,
                started_unix_millis: 1,
                alive: true,
                died_unix_millis: None,
                reason: None,
            };
            // The process that is started may still be this one's copy.
            let identity = (program.dev(), program.ino());
            let maps = format!("/proc/{}/maps", child.id());
            while !fs::read_to_string(&maps)
                .unwrap()
                .lines()
                .any(|it| identity_in(it) == Some(identity))
            {
                std::thread::yield_now();
            }
            Self { child, process, regions: [("shop".to_owned(), identity)].into() }
        }

        fn living(&self) -> &[Process] {
            std::slice::from_ref(&self.process)
        }

        fn end(&mut self) {
            drop(self.child.stdin.take());
            self.child.wait().unwrap();
        }
    }

    /// Whether the kernel says how processes end; if not, says that the test is ignored.
    fn is_said(reason: Reason) -> bool {
        let is_said = reason != Reason::Unknown(Unknown::OldKernel);
        if !is_said {
            println!("ignored: this kernel does not say how a process ended");
        }
        is_said
    }

    #[test]
    fn a_process_that_is_killed_or_exits_has_its_reason_once() {
        for (script, expected) in [
            ("exit 0", "ended with the exit code 0"),
            ("exit 3", "ended with the exit code 3"),
            ("kill -KILL $$", "was killed by SIGKILL"),
            ("kill -SEGV $$", "was killed by SIGSEGV"),
            ("kill -40 $$", "was killed by signal 40"),
        ] {
            let (mut shell, mut exits) = (Shell::new(script), Exits::default());
            for _ in 0..3 {
                assert_eq!(exits.next(shell.living(), &shell.regions), []);
            }
            // Its region cannot be read for a while; it lives.
            assert_eq!(exits.next(&[], &BTreeMap::new()), []);
            assert_eq!(exits.next(&[], &shell.regions), []);
            shell.end();
            let ended = exits.next(&[], &shell.regions);
            let [(process, reason)] = &ended[..] else { panic!("{script}: {ended:?}") };
            if !is_said(*reason) {
                return;
            }
            assert_eq!(process, &shell.process);
            let (kind, detail) = reason.labels();
            assert_eq!(in_words(kind, &detail), expected);
            assert_eq!(exits.next(&[], &shell.regions), []);
            assert!(exits.watched.is_empty() && exits.out_of_memory.is_empty());
        }
    }

    #[test]
    fn a_process_that_is_not_the_one_of_the_region_is_not_taken_for_it() {
        let mut shell = Shell::new("exit 3");
        let file = fs::metadata("/dev/null").unwrap();
        let other = BTreeMap::from([("shop".to_owned(), (file.dev(), file.ino()))]);
        let mut exits = Exits::default();
        exits.next(shell.living(), &other);
        let ended = exits.next(&[], &other);
        assert_eq!(ended, [(shell.process.clone(), Reason::Unknown(Unknown::OtherNamespace))]);
        shell.end();
    }

    #[test]
    fn a_process_whose_parent_does_not_wait_for_it_is_waited_for_and_then_unknown() {
        let (mut shell, mut exits) = (Shell::new("exit 3"), Exits::default());
        exits.next(shell.living(), &shell.regions);
        drop(shell.child.stdin.take());
        let stat = format!("/proc/{}/stat", shell.child.id());
        while !fs::read_to_string(&stat).unwrap().contains(") Z ") {
            std::thread::yield_now();
        }
        for _ in 1..PATIENCE {
            assert_eq!(exits.next(&[], &shell.regions), []);
        }
        let ended = exits.next(&[], &shell.regions);
        let [(_, reason)] = ended[..] else { panic!("{ended:?}") };
        if is_said(reason) {
            assert_eq!(reason, Reason::Unknown(Unknown::NotWaitedFor));
        }
        shell.end();
    }

    /// A cgroup that may have 8 MiB; removed with its value.
    struct Limited(PathBuf);

    impl Limited {
        /// Of either version of cgroups, below the cgroup of this process.
        fn new() -> std::io::Result<Self> {
            let own = fs::read_to_string("/proc/self/cgroup")?;
            let own = own.lines().find_map(kills_file).ok_or(std::io::ErrorKind::NotFound)?;
            let name = format!("talea-{}", std::process::id());
            let limited = Self(own.with_file_name(name));
            fs::create_dir(&limited.0)?;
            let limits = ["memory.max", "memory.limit_in_bytes"].map(|name| limited.0.join(name));
            let limit = limits.into_iter().find(|it| it.exists());
            fs::write(limit.ok_or(std::io::ErrorKind::Unsupported)?, "8388608")?;
            // Without swap there is no such file.
            for (name, swap) in
                [("memory.swap.max", "0"), ("memory.memsw.limit_in_bytes", "8388608")]
            {
                let file = limited.0.join(name);
                if file.exists() {
                    fs::write(file, swap)?;
                }
            }
            Ok(limited)
        }
    }

    impl Drop for Limited {
        fn drop(&mut self) {
            let _ = fs::remove_dir(&self.0);
        }
    }

    #[test]
    fn a_process_that_takes_more_memory_than_its_cgroup_has_was_killed_for_that() {
        let limited = match Limited::new() {
            Ok(limited) => limited,
            Err(error) => {
                println!("ignored: no cgroup with a memory limit can be made here: {error}");
                return;
            }
        };
        let (mut shell, mut exits) =
            (Shell::new("ulimit -v 400000; exec tail /dev/zero"), Exits::default());
        fs::write(limited.0.join("cgroup.procs"), shell.child.id().to_string()).unwrap();
        exits.next(shell.living(), &shell.regions);
        shell.end();
        let ended = exits.next(&[], &shell.regions);
        let [(_, reason)] = ended[..] else { panic!("{ended:?}") };
        if is_said(reason) {
            assert_eq!(reason, Reason::OutOfMemory);
        }
    }

    #[test]
    fn lines_of_the_proc_file_system_are_read() {
        let line =
            "7f0000000000-7f0000001000 rw-s 00000000 103:0a 4711  /dev/shm/a b.talea (deleted)";
        assert_eq!(identity_in(line), Some((rustix::fs::makedev(0x103, 0x0a), 4711)));
        for line in ["", "7f00-7f01 rw-p", "x y z 0:1", "x y z q:1 5", "x y z 0:1 five"] {
            assert_eq!(identity_in(line), None, "{line}");
        }
        assert_eq!(kills_in("oom 3\noom_kill 2\noom_group_kill 0\n"), Some(2));
        assert_eq!(kills_in("oom_kill_disable 0\nunder_oom 0\noom_kill 7\n"), Some(7));
        assert_eq!(kills_in("oom 3\n"), None);
        for line in ["0::/../other", "5:cpu:/shop", "", "0::/no/such/group"] {
            assert_eq!(kills_file(line), None, "{line}");
        }
    }
}
