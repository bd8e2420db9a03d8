//! The fuzz target `attach`, on its corpus.

#[path = "../../../../fuzz/src/attach.rs"]
mod attach;
#[path = "../../../../fuzz/src/replay.rs"]
mod replay;

#[test]
fn a_process_that_attaches_or_reads_survives_any_file() {
    replay::corpus("attach", attach::run);
}
