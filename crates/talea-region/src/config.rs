//! The configuration of a new region.

use std::path::{Path, PathBuf};

use crate::layout::*;
use crate::memory::mapping::longest_file;

/// The limits of a new region. Attaching to an existing file takes the file's own limits.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Bytes of memory that the region may come to use; 512 KiB to 1 TiB, in
    /// whole pages. Pages are taken as they are needed. Default: 64 MiB, or, where that is less,
    /// an eighth of the memory limit of the cgroup or of one that it is in, or the longest file
    /// that the process may make (`ulimit -f`).
    pub len: u64,
    /// Series that the region can hold. Default: one for each 512 bytes. The
    /// index of 12 to 24 bytes a series is backed from the start.
    pub series: u64,
    /// CPUs that get a plane of their own; the others share two atomic planes. Default: one for
    /// each CPU of the machine, or as many as have a page each. 1 to 1,024.
    pub planes: u64,
    /// Planes beside those of CPUs that this process and others can borrow
    /// ([`Region::lend_plane`](crate::Region::lend_plane)), one for each thread that adds by plain stores. They take their share of the quarter
    /// of the region that all planes have. Default: none. 0 to 256.
    pub lent_planes: u64,
    /// The group, by its number, that may read a new file ([`Region::open`](crate::Region::open)):
    /// with a group it has mode 0640, otherwise 0600. For an agent of another user. The process
    /// that makes the file must be in the group. A region in memory does not use it. Default: none.
    pub group: Option<u32>,
    /// A further user, by its number, whose file is trusted, beside this process's own effective
    /// user and root ([`Region::open`](crate::Region::open)). That user can end this process at any
    /// time by truncating the file. Default: none.
    pub owner: Option<u32>,
}

impl Default for Config {
    fn default() -> Self {
        let limits = [cgroup_limit().map(|limit| limit / 8), longest_file()];
        let len = limits.into_iter().flatten().fold(64 << 20, u64::min);
        Self::with_len((len / PAGE * PAGE).max(MIN_LEN))
    }
}

impl Config {
    /// The defaults for a region of `len` bytes.
    pub fn with_len(len: u64) -> Self {
        Self::with_cpus(len, cpus())
    }

    fn with_cpus(len: u64, cpus: u64) -> Self {
        // They have a quarter of the region, in whole pages.
        let room = (len / 4 / PAGE).saturating_sub(SHARED_PLANES).max(1);
        let planes = cpus.min(room);
        Self { len, series: len / 512, planes, lent_planes: 0, group: None, owner: None }
    }

    /// Has up to this number of planes to lend: see [`lent_planes`](Self::lent_planes). In a small region
    /// there are fewer.
    #[must_use]
    pub fn lending(self, planes: u64) -> Self {
        let room = (self.len / 4 / PAGE).saturating_sub(self.planes + SHARED_PLANES);
        Self { lent_planes: planes.min(room).min(MOST_LENT), ..self }
    }

    /// Lets the group with this number read a new file: see [`group`](Self::group).
    #[must_use]
    pub fn read_by_group(self, group: u32) -> Self {
        Self { group: Some(group), ..self }
    }

    /// Trusts a file of this user too: see [`owner`](Self::owner).
    #[must_use]
    pub fn owned_by(self, user: u32) -> Self {
        Self { owner: Some(user), ..self }
    }

    pub(crate) fn limits(self) -> Limits {
        Limits {
            len: self.len,
            series: self.series,
            planes: self.planes.saturating_add(SHARED_PLANES),
            lent: self.lent_planes,
        }
    }
}

fn cpus() -> u64 {
    // The CPUs that may come to run us, not those that do now: a container can
    // be given others later.
    let possible = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    let last = possible.trim().rsplit([',', '-']).next().and_then(|last| last.parse::<u64>().ok());
    let count = match last {
        Some(last) => last + 1,
        None => std::thread::available_parallelism().map_or(1, |n| n.get() as u64),
    };
    count.clamp(1, CPUS)
}

/// The least memory limit of this process's cgroup and of those that it is in, if any.
fn cgroup_limit() -> Option<u64> {
    let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    limit_files(&own).into_iter().filter_map(number_in).min()
}

fn number_in(file: PathBuf) -> Option<u64> {
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// The files with memory limits of cgroups (version 2, and 1) of `/proc/self/cgroup`.
fn limit_files(cgroups: &str) -> Vec<PathBuf> {
    let v2 = cgroups.lines().find_map(|line| line.strip_prefix("0::"));
    let v1 = cgroups.lines().find_map(|line| line.split_once(":memory:").map(|(_, path)| path));
    let all = [
        ("/sys/fs/cgroup", v2, "memory.max"),
        ("/sys/fs/cgroup/memory", v1, "memory.limit_in_bytes"),
    ];
    let files = all.into_iter().flat_map(|(root, path, file)| {
        let own = Path::new(path.unwrap_or("/"));
        let within = own.ancestors().filter_map(|path| path.strip_prefix("/").ok());
        within.map(move |path| Path::new(root).join(path).join(file))
    });
    files.collect()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_limits_of_all_groups_around_the_own_one_are_looked_at() {
        let files = limit_files("9:name=systemd:/x\n4:memory:/a\n0::/shop.slice/web.service\n");
        let expected = [
            "/sys/fs/cgroup/shop.slice/web.service/memory.max",
            "/sys/fs/cgroup/shop.slice/memory.max",
            "/sys/fs/cgroup/memory.max",
            "/sys/fs/cgroup/memory/a/memory.limit_in_bytes",
            "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        ];
        assert_eq!(files, expected.map(PathBuf::from));
        // Another namespace of cgroups shows no path; its root has the limit.
        assert_eq!(limit_files("").len(), 2);
    }

    #[test]
    fn the_defaults_of_any_length_fit_on_any_number_of_cpus() {
        for len in [MIN_LEN, MIN_LEN + PAGE, 1 << 20, 2 << 20, 64 << 20, 1 << 34] {
            for cpus in (1..=CPUS).step_by(7).chain([CPUS]) {
                let config = Config::with_cpus(len, cpus);
                let laid_out = Sections::new(config.limits());
                assert!(laid_out.is_ok(), "{len} bytes, {cpus} CPUs: {laid_out:?}");
            }
        }
    }
}
