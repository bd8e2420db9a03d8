#![no_main]

#[path = "../src/parse.rs"]
mod parse;

libfuzzer_sys::fuzz_target!(|input: &[u8]| parse::run(input));
