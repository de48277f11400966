//! Addresses with a query, cursors among them.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| palyra_testkit::oracles::query(bytes));
