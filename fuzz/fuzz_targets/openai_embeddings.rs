//! Bodies of `/v1/embeddings`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| palyra_testkit::oracles::openai_embeddings(bytes));
