#![no_main]

#[path = "../src/labels.rs"]
mod labels;

libfuzzer_sys::fuzz_target!(|input: &[u8]| labels::run(input));
