//! Damaged modules: whatever is done to the bytes, the runtime refuses them or runs them within their limits.

use std::sync::LazyLock;
use std::time::Duration;

use palyra_plugins_runtime::{CallOptions, PluginError, RuntimeLimits};
use proptest::prelude::*;

use crate::harness::{RUNTIME, call, tool_with};

static GOOD: LazyLock<Vec<u8>> = LazyLock::new(|| {
    tool_with(
        "log.write storage.get clock.now",
        "(table 3 funcref) (func $f)",
        "(call $f) (call $answer (local.get $input) (local.get $input_len))",
    )
});

/// Loads and, if it still loads, calls.
fn survives(wasm: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    match RUNTIME.prepare(wasm) {
        Err(PluginError::Engine(reason)) => panic!("the engine broke down: {reason}"),
        Err(_) => {}
        Ok(plugin) => {
            let limits = RuntimeLimits {
                fuel_budget: 1_000_000,
                wall_clock: Duration::from_secs(5),
                ..RuntimeLimits::default()
            };
            let ended = runtime.block_on(call(&plugin, CallOptions { limits, ..CallOptions::default() }));
            if let Err(failed) = ended {
                assert!(!matches!(failed.error, PluginError::Engine(_)), "{failed}");
            }
        }
    }
}

#[test]
fn every_beginning_of_a_component_is_refused() {
    // What a compiler notes about itself stands at the end and may be missing.
    let complete = (0..GOOD.len()).filter(|length| RUNTIME.prepare(&GOOD[..*length]).is_ok()).collect::<Vec<_>>();
    assert!(complete.len() <= 3 && complete.iter().all(|length| *length > GOOD.len() / 2), "{complete:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn flipped_bits_are_refused_or_contained(flips in prop::collection::vec((0..GOOD.len(), 0..8_u8), 1..4)) {
        let mut wasm = GOOD.clone();
        for (position, bit) in flips {
            wasm[position] ^= 1 << bit;
        }
        survives(&wasm);
    }

    #[test]
    fn other_bytes_in_the_middle_are_refused_or_contained(
        start in 8..GOOD.len(),
        bytes in prop::collection::vec(any::<u8>(), 1..32),
    ) {
        let mut wasm = GOOD.clone();
        let end = (start + bytes.len()).min(wasm.len());
        wasm.splice(start..end, bytes);
        survives(&wasm);
    }

    #[test]
    fn noise_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(RUNTIME.prepare(&bytes).is_err());
        let dressed = [b"\0asm\x0d\0\x01\0".as_slice(), &bytes].concat();
        survives(&dressed);
    }
}
