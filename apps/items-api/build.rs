//! Builds again when a migration is added, which the compiler cannot see.

fn main() {
    println!("cargo:rerun-if-changed=migrations");
}
