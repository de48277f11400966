//! The envelope of a command as JSON.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| palyra_testkit::oracles::acp_json(bytes));
