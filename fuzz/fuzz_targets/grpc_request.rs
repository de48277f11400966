//! Messages that a client sends over gRPC.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| palyra_testkit::oracles::grpc_request(bytes));
