//! Claims about `include/talea.h`.

use std::path::Path;

/// If this variable is set, the committed header is written anew.
const WRITE: &str = "TALEA_WRITE_HEADER";

#[test]
fn the_header_is_current() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(here.join("cbindgen.toml")).unwrap();
    let source = here.join("src/lib.rs");
    let written = cbindgen::Builder::new().with_config(config).with_src(source).generate();
    let mut wanted = Vec::new();
    written.unwrap().write(&mut wanted);
    let wanted = String::from_utf8(wanted).unwrap();
    let header = here.join("include/talea.h");
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&header, &wanted).unwrap();
    }
    let found = std::fs::read_to_string(&header).unwrap_or_default();
    assert!(
        found == wanted,
        "{} is not current; run {WRITE}=1 cargo test -p talea-ffi --test header",
        header.display()
    );
}
