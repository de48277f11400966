//! The header `Last-Event-ID`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| palyra_testkit::oracles::resume_token(bytes));
