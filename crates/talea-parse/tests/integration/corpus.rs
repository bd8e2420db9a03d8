//! The fuzz targets `parse` and `faults`, over what they found so far.

#[path = "../../../../fuzz/src/faults.rs"]
mod faults;
#[path = "../../../../fuzz/src/parse.rs"]
mod parse;
#[path = "../../../../fuzz/src/replay.rs"]
mod replay;

#[test]
fn any_bytes_are_read_and_checked_alike() {
    replay::corpus("parse", parse::run);
}

#[test]
fn a_page_with_faults_is_read_and_checked_alike() {
    replay::corpus("faults", |input| parse::run(faults::page(input).as_bytes()));
}
