#![no_main]

#[path = "../src/faults.rs"]
mod faults;
#[path = "../src/parse.rs"]
mod parse;

libfuzzer_sys::fuzz_target!(|input: &[u8]| parse::run(faults::page(input).as_bytes()));
