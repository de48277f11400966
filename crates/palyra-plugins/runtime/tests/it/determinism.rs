//! The same seed and the same input give the same bytes and the same fuel.

use std::sync::Arc;

use palyra_common::Timestamp;
use palyra_plugins_runtime::{CallOptions, ExecutionMode, Finished};

use crate::harness::{Desk, all_grants, call_with, options, prepare, tool_with};

/// Mixes the clock, random bytes, a handle, a NaN and the input into one number, with as many steps as the random bytes say.
fn mixing() -> Vec<u8> {
    tool_with(
        "clock.now clock.monotonic random.bytes capabilities.storage-handle",
        "",
        "(local $sum i64) (local $n i32) (local $x f64)
        (call $clock.now (i32.const 128))
        (local.set $sum (i64.xor (i64.load (i32.const 128)) (i64.load32_u (i32.const 136))))
        (local.set $sum (i64.add (local.get $sum) (call $clock.monotonic)))
        (local.set $sum (i64.add (local.get $sum) (call $clock.monotonic)))
        (call $random.bytes (i32.const 64) (i32.const 160))
        (local.set $sum (i64.add (local.get $sum) (i64.load (i32.load (i32.const 160)))))
        (call $capabilities.storage-handle (i32.const 0) (i32.const 256))
        (local.set $sum (i64.xor (local.get $sum) (i64.load (i32.const 264))))
        (local.set $sum (i64.add (local.get $sum) (i64.load8_u (local.get $input))))
        (local.set $x (f64.div (f64.const 0) (f64.sub (f64.const 1) (f64.const 1))))
        (local.set $sum (i64.xor (local.get $sum) (i64.reinterpret_f64 (f64.add (local.get $x) (f64.const 1)))))
        (local.set $n (i32.and (i32.wrap_i64 (local.get $sum)) (i32.const 0xfff)))
        (loop $next (local.set $n (i32.sub (local.get $n) (i32.const 1))) (br_if $next (i32.gt_s (local.get $n) (i32.const 0))))
        (call $number (local.get $sum))",
    )
}

async fn run(input: &str, mode: ExecutionMode) -> Finished<String> {
    let plugin = prepare(&mixing());
    let desk = Arc::new(Desk::default());
    call_with(&plugin, input, CallOptions { mode, ..options(&desk, all_grants()) }).await.unwrap()
}

#[tokio::test]
async fn the_same_seed_gives_the_same_call() {
    let mode = |seed| ExecutionMode::Deterministic { now: Timestamp(1_794_700_000_123), seed };
    let first = run("a", mode(7)).await;
    for _ in 0..5 {
        let again = run("a", mode(7)).await;
        assert_eq!(again.value, first.value);
        assert_eq!((again.usage.fuel, again.usage.memory_bytes), (first.usage.fuel, first.usage.memory_bytes));
        assert_eq!(again.usage.host_calls, first.usage.host_calls);
    }
    // Pinned, so that another version or another machine would be noticed.
    assert_eq!(first.value, "8098017467741515905");
    assert_ne!(run("a", mode(8)).await.value, first.value, "another seed");
    assert_ne!(run("b", mode(7)).await.value, first.value, "another input");
    let moved = ExecutionMode::Deterministic { now: Timestamp(1_794_700_000_124), seed: 7 };
    assert_ne!(run("a", moved).await.value, first.value, "another time");
    assert_ne!(run("a", ExecutionMode::Live).await.value, run("a", ExecutionMode::Live).await.value, "live");
}
