//! Messages over a WebSocket, in both directions.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| palyra_testkit::oracles::socket_message(bytes));
