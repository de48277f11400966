//! The header `grpc-timeout`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| palyra_testkit::oracles::grpc_timeout(bytes));
