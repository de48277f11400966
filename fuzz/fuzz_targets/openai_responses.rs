//! Bodies of `/v1/responses`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| palyra_testkit::oracles::openai_responses(bytes));
