//! The header `Origin`, against a host.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| palyra_testkit::oracles::origin(bytes));
