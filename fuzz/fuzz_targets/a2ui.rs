//! Documents that agents draw, patches of them, and what is entered into their forms.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| palyra_testkit::oracles::a2ui(bytes));
