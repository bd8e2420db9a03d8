//! The fuzz target `parse`, over what it found so far.

#[path = "../../../../fuzz/src/parse.rs"]
mod parse;
#[path = "../../../../fuzz/src/replay.rs"]
mod replay;

#[test]
fn any_bytes_are_read_and_checked_alike() {
    replay::corpus("parse", parse::run);
}
