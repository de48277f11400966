//! Forms with files, whole and in pieces.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| palyra_testkit::oracles::multipart(bytes));
