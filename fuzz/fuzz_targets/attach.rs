#![no_main]

#[path = "../src/attach.rs"]
mod attach;

libfuzzer_sys::fuzz_target!(|input: &[u8]| attach::run(input));
