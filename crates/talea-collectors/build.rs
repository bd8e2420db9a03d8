//! Tells what `build_info!` says of the compiler: a program and the crates in it are
//! compiled by the same one, for the same target. Nothing else knows its version.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-env=TALEA_RUSTC={}", rustc().unwrap_or_default());
    println!("cargo:rustc-env=TALEA_TARGET={}", env::var("TARGET").unwrap_or_default());
}

/// `1.85.0` of `rustc 1.85.0 (4d91de4e4 2025-02-17)`.
fn rustc() -> Option<String> {
    let told = Command::new(env::var_os("RUSTC")?).arg("--version").output().ok()?;
    let told = String::from_utf8(told.stdout).ok()?;
    told.split_ascii_whitespace().nth(1).map(str::to_owned)
}
