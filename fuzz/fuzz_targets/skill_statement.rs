//! What publishers and registries sign.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| palyra_testkit::oracles::skill_statement(bytes));
