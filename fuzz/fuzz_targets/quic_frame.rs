//! Frames of QUIC, as either side reads them.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| palyra_testkit::oracles::quic_frame(bytes));
