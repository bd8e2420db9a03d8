//! Files of the repository, and programs.

use std::fs;
use std::path::{Path, PathBuf};

/// A file or a folder of the repository.
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// The text of a file in `contrib`.
pub fn contrib(file: &str) -> String {
    let path = repository("contrib").join(file);
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// A program of the workspace, built by the profile of the tests.
pub fn built(program: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let folder = test.ancestors().nth(2).expect("cargo keeps tests two folders deep");
    let path = folder.join(program);
    assert!(
        path.is_file(),
        "no {program} at {}: run `cargo build -p talea-tools -p items-api` with the same profile first",
        path.display()
    );
    path
}

/// A program of the Python that `scripts/setup --test` installs in the folder that cargo builds into.
pub fn python_program(name: &str) -> PathBuf {
    let target = match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => folder.into(),
        None => repository("target"),
    };
    target.join("python/bin").join(name)
}
