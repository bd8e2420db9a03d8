//! Builds and runs C programs against the library that cargo built for the tests.

#![allow(dead_code)]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// How a program is linked to the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linked {
    Shared,
    Static,
    /// Not at all: the program loads it.
    Not,
}

/// A folder on tmpfs for regions; it is deleted on drop.
pub(crate) fn shm() -> TempDir {
    tempfile::Builder::new().prefix("talea-ffi-").tempdir_in("/dev/shm").unwrap()
}

/// The folder of the library: that of the tests. Cargo builds all crate types at once, so none is
/// older than the code.
pub(crate) fn built() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().unwrap().to_owned();
    for library in ["libtalea_ffi.so", "libtalea_ffi.a"] {
        assert!(folder.join(library).is_file(), "{library} is not in {}", folder.display());
    }
    folder
}

pub(crate) fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The flags that the header promises to compile with.
pub(crate) const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-Werror", "-pedantic"];

/// Compiles a source in C99.
pub(crate) fn compile(source: &Path, into: &Path, linked: Linked, more: &[&str]) -> PathBuf {
    let program = into.join(source.file_stem().unwrap());
    let mut cc = Command::new("cc");
    cc.args(["-std=c99", "-D_GNU_SOURCE", "-O2", "-g", "-pthread"]).args(STRICT);
    cc.arg("-I").arg(here().join("include")).arg("-I").arg(here().join("tests/c"));
    cc.arg(source).arg("-o").arg(&program).args(more);
    link(&mut cc, linked);
    run(&mut cc);
    program
}

/// Adds the library and its own dependencies.
pub(crate) fn link(cc: &mut Command, linked: Linked) {
    let built = built();
    match linked {
        Linked::Shared => {
            cc.arg("-L").arg(&built).arg("-ltalea_ffi");
            // It goes before the folders in the environment, where cargo may have an older build.
            cc.arg(format!("-Wl,--disable-new-dtags,-rpath,{}", built.display()));
        }
        Linked::Static => {
            cc.arg(built.join("libtalea_ffi.a")).args(["-lgcc_s", "-lutil", "-lrt"]);
        }
        Linked::Not => {}
    }
    cc.args(["-lpthread", "-ldl", "-lm"]);
}

/// Compiles and runs a program of `tests/c`.
pub(crate) fn runs(name: &str, linked: Linked, arguments: &[&OsStr]) -> String {
    let folder = TempDir::new().unwrap();
    let source = here().join("tests/c").join(name).with_extension("c");
    let program = compile(&source, folder.path(), linked, &[]);
    run(Command::new("timeout").arg("300").arg(program).args(arguments))
}

/// Runs a command, which must succeed. Returns its output.
pub(crate) fn run(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let said = String::from_utf8_lossy(&stdout);
    assert!(
        status.success(),
        "{command:?}: {status}\n{said}\n{}",
        String::from_utf8_lossy(&stderr)
    );
    said.into_owned()
}
