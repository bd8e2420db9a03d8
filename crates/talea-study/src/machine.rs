//! The machine that a study ran on.

use std::fs;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Machine {
    pub cpu_model: String,
    pub cores: u64,
    pub memory_bytes: Option<u64>,
    pub kernel: String,
    pub os: String,
    pub architecture: String,
}

const UNKNOWN: &str = "unknown";

impl Machine {
    pub(crate) fn this() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        Self {
            cpu_model: cpu_model(&read("/proc/cpuinfo")).unwrap_or_else(|| UNKNOWN.to_owned()),
            cores: std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64),
            memory_bytes: memory_bytes(&read("/proc/meminfo")),
            kernel: kernel(read("/proc/sys/kernel/osrelease").trim()),
            os: os_name(&read("/etc/os-release"))
                .unwrap_or_else(|| std::env::consts::OS.to_owned()),
            architecture: std::env::consts::ARCH.to_owned(),
        }
    }
}

fn cpu_model(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn memory_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

fn kernel(release: &str) -> String {
    match release {
        "" => UNKNOWN.to_owned(),
        release => format!("Linux {release}"),
    }
}

fn os_name(os_release: &str) -> Option<String> {
    let name = os_release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_and_memory_are_read_from_the_kernels_own_words() {
        let cpuinfo = "processor\t: 0\nmodel name\t: AMD EPYC 7B13\nflags\t\t: fpu\n";
        assert_eq!(cpu_model(cpuinfo).as_deref(), Some("AMD EPYC 7B13"));
        assert_eq!(cpu_model("processor: 0"), None);
        assert_eq!(memory_bytes("MemTotal:       16384 kB\nMemFree: 1 kB\n"), Some(16_777_216));
        assert_eq!(memory_bytes(""), None);
    }

    #[test]
    fn the_system_has_its_full_name() {
        let text = "NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n";
        assert_eq!(os_name(text).as_deref(), Some("Debian GNU/Linux 12 (bookworm)"));
    }
}
