//! A folder where regions are.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use talea::{Config, Counter, Opts, Registry};

use super::agent::Agent;

/// A region that counted so many orders.
pub(crate) fn count_orders(region: &Path, orders: u64) -> (Registry, Counter) {
    let registry = Registry::open_with(region, Config::with_len(1 << 20)).unwrap();
    let counter: Counter = registry.register(Opts::new("orders", "Orders accepted.")).unwrap();
    counter.add(orders);
    (registry, counter)
}

/// A folder on tmpfs, removed when it is dropped.
pub(crate) struct RegionFolder(pub(crate) tempfile::TempDir);

impl RegionFolder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir_in("/dev/shm").unwrap())
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The path of a region, `shop`.
    pub(crate) fn region(&self) -> PathBuf {
        self.at("shop.talea")
    }

    /// Makes files and others that are no regions, or damaged copies of one: the name of each, and a part of the
    /// error that it gives. The last is not there.
    pub(crate) fn make_bad_files(&self, region: &Path) -> Vec<(&'static str, &'static str)> {
        fs::create_dir(self.at("folder")).unwrap();
        assert!(Command::new("mkfifo").arg(self.at("fifo")).status().unwrap().success());
        let copy = |name: &str| {
            fs::copy(region, self.at(name)).unwrap();
            File::options().write(true).open(self.at(name)).unwrap()
        };
        copy("whole");
        symlink(self.at("whole"), self.at("link")).unwrap();
        drop(UnixListener::bind(self.at("socket")).unwrap());
        fs::write(self.at("empty"), b"").unwrap();
        fs::write(self.at("foreign"), vec![b'x'; 1 << 20]).unwrap();
        copy("truncated").set_len(1 << 20).unwrap();
        for (name, place, word) in [
            ("version", 8, 4),
            ("boot", 40, 1),
            ("limits", 24, u64::MAX),
            ("marks", 1472, 1 << 40),
            ("sizes", 1088, u64::MAX),
        ] {
            copy(name).write_all_at(&word.to_le_bytes(), place).unwrap();
        }
        vec![
            ("folder", "a directory, not a regular file"),
            ("fifo", "a FIFO, not a regular file"),
            ("link", "a symbolic link, which is not followed"),
            ("socket", "a socket or a device, not a regular file"),
            ("empty", "shorter than a region"),
            ("foreign", "does not begin as a region does"),
            ("truncated", "its file has 1048576"),
            ("version", "layout is version 4, where 14 was expected"),
            ("boot", "before the machine was last started"),
            ("limits", "a limit of 18446744073709551615 series"),
            ("marks", "planes are in use"),
            ("sizes", "of a part that has"),
            ("missing", "No such file"),
        ]
    }

    /// An agent that serves the folder.
    pub(crate) fn agent(&self) -> Agent {
        Agent::start(["--dir".as_ref(), self.0.path().as_os_str()])
    }
}
