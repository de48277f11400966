//! Bodies of `/v1/chat/completions`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| palyra_testkit::oracles::openai_chat(bytes));
