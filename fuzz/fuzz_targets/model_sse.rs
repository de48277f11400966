//! Server-sent events of a model's server.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| palyra_testkit::oracles::model_sse(bytes));
