//! Links the library so that it stays once it is loaded: handles into a region
//! and what runs at a fork point into its code. Any library that has Talea inside
//! and may be closed needs this.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_FEATURE_UNLOADABLE").is_none() {
        println!("cargo:rustc-link-arg-cdylib=-Wl,-z,nodelete");
    }
}
