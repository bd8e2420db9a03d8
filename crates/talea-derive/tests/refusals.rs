//! The derives refuse faulty items with messages that name the field and the remedy. (What they accept is in
//! `derives/all_*.rs`, tests of their own.)

#[test]
#[cfg_attr(miri, ignore = "it compiles programs")]
fn misuse_is_refused_with_a_remedy() {
    let cases = trybuild::TestCases::new();
    for of in ["label", "value", "metric"] {
        cases.compile_fail(format!("tests/derives/{of}*.rs"));
    }
    // These are the compiler's own messages with our words in them, which each of its
    // versions frames otherwise.
    if version().contains(" 1.95.") {
        cases.compile_fail("tests/derives/framed/*.rs");
    }
}

/// The compiler's.
fn version() -> String {
    let rustc = std::env::var_os("RUSTC").unwrap_or("rustc".into());
    let version = std::process::Command::new(rustc).arg("--version").output();
    String::from_utf8_lossy(&version.unwrap().stdout).into_owned()
}
