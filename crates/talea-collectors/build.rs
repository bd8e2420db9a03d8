//! Passes the version of the compiler to `build_info!`: a program and its crates are compiled by
//! the same one, for the same target. Only a build script can ask for the version.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-env=TALEA_RUSTC={}", rustc().unwrap_or_default());
    println!("cargo:rustc-env=TALEA_TARGET={}", env::var("TARGET").unwrap_or_default());
}

/// `1.85.0` of `rustc 1.85.0 (4d91de4e4 2025-02-17)`.
fn rustc() -> Option<String> {
    let output = Command::new(env::var_os("RUSTC")?).arg("--version").output().ok()?;
    let output = String::from_utf8(output.stdout).ok()?;
    output.split_ascii_whitespace().nth(1).map(str::to_owned)
}
