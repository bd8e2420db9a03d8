//! The fuzz target `attach`, over what it found so far.

#[path = "../../../../fuzz/src/attach.rs"]
mod attach;
#[path = "../../../../fuzz/src/replay.rs"]
mod replay;

#[test]
fn a_file_may_hold_anything_and_who_attaches_or_reads_goes_on() {
    replay::corpus("attach", attach::run);
}
