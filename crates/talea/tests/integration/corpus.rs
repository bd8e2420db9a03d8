//! The fuzz target `labels`, over what it found so far.

#[path = "../../../../fuzz/src/labels.rs"]
mod labels;
#[path = "../../../../fuzz/src/replay.rs"]
mod replay;

#[test]
fn any_label_values_come_back_as_they_were() {
    replay::corpus("labels", labels::run);
}
