//! Commands and results as messages of gRPC.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| palyra_testkit::oracles::proto_acp(bytes));
