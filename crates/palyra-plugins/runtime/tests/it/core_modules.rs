//! Core modules with a `run` export.

use std::sync::Arc;

use palyra_plugins_runtime::{CallOptions, PluginError, PluginKind, RuntimeLimits};

use crate::harness::{Desk, RUNTIME, all_grants, call, call_with, options, prepare};

fn text(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap()
}

/// A module with texts; the body of `run` has `$at` and `$length`.
fn json(alloc: &str, run: &str) -> Vec<u8> {
    text(&format!(
        r#"(module (memory (export "memory") 2)
        (func (export "palyra_alloc") (param $size i32) (result i32) {alloc})
        (func (export "run") (param $at i32) (param $length i32) (result i64) {run}))"#
    ))
}

#[tokio::test]
async fn a_status_is_success_or_failure() {
    let good = prepare(&text(r#"(module (func (export "run") (result i32) (i32.const 0)))"#));
    assert_eq!(good.kind(), PluginKind::CoreModule);
    assert!(good.exports_tool() && !good.exports_hook() && good.imports().is_empty());
    assert_eq!(call(&good, CallOptions::default()).await.unwrap().value, r#"{"status":0}"#);
    assert!(RUNTIME.describe(&good, CallOptions::default()).await.unwrap().value.is_empty());
    let bad = prepare(&text(r#"(module (func (export "run") (result i32) (i32.const 3)))"#));
    let failed = call(&bad, CallOptions::default()).await.unwrap_err();
    assert!(matches!(&failed.error, PluginError::GuestFailed(text) if text.ends_with("status 3")), "{failed}");
}

#[tokio::test]
async fn texts_go_in_and_out() {
    let echo =
        "(i64.or (i64.shl (i64.extend_i32_u (local.get $at)) (i64.const 32)) (i64.extend_i32_u (local.get $length)))";
    let plugin = prepare(&json("(i32.const 1024)", echo));
    let done = call_with(&plugin, r#"{"a":1}"#, CallOptions::default()).await.unwrap();
    assert_eq!((done.value.as_str(), done.usage.output_bytes), (r#"{"a":1}"#, 7));
}

#[tokio::test]
async fn counters_and_handles_tell_what_was_granted() {
    let plugin = prepare(&text(
        r#"(module
        (import "palyra:host/capabilities@1.0.0" "storage-count" (func $count (result i32)))
        (import "palyra:host/capabilities@1.0.0" "storage-handle" (func $handle (param i32) (result i64)))
        (func (export "run") (result i32)
            (if (i64.ne (call $handle (i32.const 7)) (i64.const 0)) (then (return (i32.const 9))))
            (if (i64.ne (call $handle (i32.const -1)) (i64.const 0)) (then (return (i32.const 9))))
            (if (i64.eqz (call $handle (i32.const 0))) (then (return (i32.const 8))))
            (i32.sub (call $count) (i32.const 1))))"#,
    ));
    let desk = Arc::new(Desk::default());
    assert_eq!(call(&plugin, options(&desk, all_grants())).await.unwrap().usage.host_calls["capabilities"], 4);
    let failed = call(&plugin, CallOptions::default()).await.unwrap_err();
    assert!(failed.to_string().ends_with("status 8"), "{failed}");
}

#[tokio::test]
async fn bad_places_and_texts_are_noticed() {
    let whole = |place: &str, length: &str| {
        format!("(i64.or (i64.shl (i64.const {place}) (i64.const 32)) (i64.const {length}))")
    };
    let cases = [
        ("an allocator that points outside", json("(i32.const 0x7fffffff)", "unreachable"), "plugin_value_malformed"),
        ("an allocator that points before the start", json("(i32.const -1)", "unreachable"), "plugin_value_malformed"),
        ("an output outside memory", json("(i32.const 0)", &whole("0xfffffff0", "64")), "plugin_value_malformed"),
        ("an output of four gigabytes", json("(i32.const 0)", &whole("0", "0xffffffff")), "plugin_output_too_large"),
        (
            "an output that is not text",
            json("(i32.const 0)", &format!("(i32.store (i32.const 64) (i32.const -1)) {}", whole("64", "4"))),
            "plugin_value_malformed",
        ),
        ("no output", json("(i32.const 0)", "(i64.const 0)"), "plugin_failed"),
        (
            "an allocator that never ends",
            json("(loop $again (br $again)) unreachable", "unreachable"),
            "plugin_fuel_exhausted",
        ),
        (
            "a start that never ends",
            text(
                r#"(module (func $s (loop $again (br $again))) (start $s) (func (export "run") (result i32) (i32.const 0)))"#,
            ),
            "plugin_fuel_exhausted",
        ),
    ];
    for (name, wasm, code) in cases {
        let failed = call(&prepare(&wasm), CallOptions::default()).await.unwrap_err();
        assert_eq!(palyra_common::ToStableError::to_stable(&failed).code, code, "{name}");
    }
    let limits = RuntimeLimits { max_memory_bytes: 65_536, ..RuntimeLimits::default() };
    let failed =
        call(&prepare(&json("(i32.const 0)", "(i64.const 0)")), CallOptions { limits, ..CallOptions::default() }).await;
    assert!(matches!(failed.unwrap_err().error, PluginError::MemoryExceeded { limit: 65_536 }));
}
