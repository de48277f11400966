//! Guests that hand over values that are none, or too many of them.

use std::sync::Arc;

use palyra_common::ToStableError;
use palyra_plugins_runtime::{CallOptions, HostCallLimits, PluginError, RuntimeLimits};

use super::{Hostile, all_end_as_they_should, few_calls, hostile, limited};
use crate::harness::{
    Desk, RUNTIME, all_grants, call, call_with, component, core_of, options, prepare, tool, tool_with,
};

#[tokio::test]
async fn answers() {
    let answer = |place: &str, length: &str| format!("(call $answer (i32.const {place}) (i32.const {length}))");
    // Memory is raised to 30 MB and filled with one letter.
    let filled = |length: &str| {
        format!(
            "(drop (memory.grow (i32.const 480))) (memory.fill (i32.const 65536) (i32.const 120) (i32.const 30000000))
            (call $answer (i32.const 65536) (i32.const {length}))"
        )
    };
    all_end_as_they_should(vec![
        hostile(
            "an answer that is not text",
            tool("", &format!("(i32.store (i32.const 512) (i32.const -1)) {}", answer("512", "4"))),
            "plugin_value_malformed",
        ),
        hostile("an answer outside memory", tool("", &answer("0x7ffffff0", "4")), "plugin_value_malformed"),
        hostile("an answer of four gigabytes", tool("", &answer("0", "-1")), "plugin_value_malformed"),
        hostile("an answer whose end wraps around", tool("", &answer("-8", "16")), "plugin_value_malformed"),
        hostile("a place that is not aligned", tool("", "(i32.const 3)"), "plugin_value_malformed"),
        hostile("a place outside memory", tool("", "(i32.const 0x7ffffff0)"), "plugin_value_malformed"),
        hostile(
            "an answer that is neither good nor bad",
            tool("", "(i32.store8 (i32.const 1024) (i32.const 7)) (i32.const 1024)"),
            "plugin_value_malformed",
        ),
        hostile("a failure of an unknown kind", tool("", "(call $failure (i32.const 9) (i32.const 0) (i32.const 0))"), "plugin_value_malformed"),
        hostile("an answer above the limit", tool("", &filled("1048577")), "plugin_output_too_large"),
        hostile("an answer far above the limit", tool("", &filled("30000000")), "plugin_output_too_large"),
        hostile("an allocator that points outside", {
            component("tools", r#"(module (memory (export "memory") 1)
                (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 0x7ffffff0))
                (func (export "palyra:plugin/tool@1.0.0#describe") (result i32) (i32.const 0))
                (func (export "palyra:plugin/tool@1.0.0#call") (param i32 i32 i32 i32) (result i32) unreachable))"#)
        }, "plugin_value_malformed"),
        hostile("an allocator that calls the host", {
            component("tools", r#"(module (import "palyra:host/clock@1.0.0" "monotonic" (func $now (result i64))) (memory (export "memory") 1)
                (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (drop (call $now)) (i32.const 64))
                (func (export "palyra:plugin/tool@1.0.0#describe") (result i32) (i32.const 0))
                (func (export "palyra:plugin/tool@1.0.0#call") (param i32 i32 i32 i32) (result i32) unreachable))"#)
        }, "plugin_trapped"),
    ])
    .await;
}

#[tokio::test]
async fn a_giant_error_is_cut_to_one_line() {
    for (which, code) in [("failed", "plugin_failed"), ("invalid", "plugin_input_invalid")] {
        let body = format!(
            "(drop (memory.grow (i32.const 64))) (memory.fill (i32.const 65536) (i32.const 10) (i32.const 4000000))
            (call ${which} (i32.const 65536) (i32.const 4000000))"
        );
        let failed = call(&prepare(&tool("", &body)), CallOptions::default()).await.unwrap_err();
        let stable = failed.to_stable();
        assert_eq!(stable.code, code);
        assert!(stable.message.len() < 1200 && !stable.message.contains('\n'));
    }
}

#[tokio::test]
async fn arguments_of_host_calls() {
    let send = |headers: &str, count: &str| {
        format!(
            "(call $http.send (i64.const 1) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const {headers}) (i32.const {count})
            (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 256)) (call $digit (i32.load8_u (i32.const 260)))"
        )
    };
    // Thousand headers that all point to the same megabyte.
    let overlapping = format!(
        "(local $at i32)
        (drop (memory.grow (i32.const 64)))
        (memory.fill (i32.const 131072) (i32.const 120) (i32.const 1048576))
        (loop $next
            (i32.store (i32.add (i32.const 70000) (local.get $at)) (i32.const 131072))
            (i32.store (i32.add (i32.const 70004) (local.get $at)) (i32.const 1048576))
            (i32.store (i32.add (i32.const 70008) (local.get $at)) (i32.const 131072))
            (i32.store (i32.add (i32.const 70012) (local.get $at)) (i32.const 1048576))
            (local.set $at (i32.add (local.get $at) (i32.const 16)))
            (br_if $next (i32.lt_u (local.get $at) (i32.const 16000))))
        {}",
        send("70000", "1000")
    );
    all_end_as_they_should(vec![
        hostile("a log line that is not text", tool("log.write", "(i32.store (i32.const 512) (i32.const -1)) (call $log.write (i32.const 0) (i32.const 512) (i32.const 4)) unreachable"), "plugin_value_malformed"),
        hostile("a log line outside memory", tool("log.write", "(call $log.write (i32.const 0) (i32.const 0x7ffffff0) (i32.const 4)) unreachable"), "plugin_value_malformed"),
        hostile("a log level that does not exist", tool("log.write", "(call $log.write (i32.const 77) (i32.const 0) (i32.const 0)) unreachable"), "plugin_value_malformed"),
        hostile("a list of headers outside memory", tool("http.send", &send("64", "0x0fffffff")), "plugin_value_malformed"),
        hostile("a list whose size overflows", tool("http.send", &send("64", "-1")), "plugin_value_malformed"),
        hostile("headers that overlap", tool("http.send", &overlapping), "plugin_host_calls_exhausted"),
        hostile("a result outside memory", tool("clock.now", "(call $clock.now (i32.const 0x7ffffff0)) unreachable"), "plugin_value_malformed"),
        hostile("a result that is not aligned", tool("clock.now", "(call $clock.now (i32.const 3)) unreachable"), "plugin_value_malformed"),
        hostile("four gigabytes of random bytes", tool("random.bytes", "(call $random.bytes (i32.const -1) (i32.const 256)) unreachable"), "plugin_host_calls_exhausted"),
        limited("random bytes in small portions", tool("random.bytes", "(loop $again (call $random.bytes (i32.const 60000) (i32.const 256)) (br $again)) unreachable"), few_calls(), "plugin_host_calls_exhausted"),
        limited(
            "more bytes in one call than allowed",
            tool("log.write", "(drop (memory.grow (i32.const 1))) (call $log.write (i32.const 0) (i32.const 0) (i32.const 65536)) unreachable"),
            RuntimeLimits {
                max_output_bytes: 1024,
                host_calls: HostCallLimits { bytes_each: 4096, ..HostCallLimits::default() },
                ..RuntimeLimits::default()
            },
            "plugin_host_calls_exhausted",
        ),
        Hostile { grants: palyra_plugins_runtime::CapabilityGrantSet::default(), ..hostile(
            "many requests without a grant",
            tool("http.send", "(local $n i32) (loop $again (call $http.send (i64.const 1) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 256))
                (local.set $n (i32.add (local.get $n) (i32.const 1))) (br_if $again (i32.lt_u (local.get $n) (i32.const 100))))
                (call $digit (i32.load8_u (i32.const 260)))"),
            "=failure:3",
        ) },
    ])
    .await;
}

#[tokio::test]
async fn floods_of_lines_are_cut() {
    let flood = |import: &str, call: &str| {
        prepare(&tool_with(
            import,
            r#"(data (i32.const 3072) "spam")"#,
            &format!(
                "(local $n i32)
                (loop $again {call} (local.set $n (i32.add (local.get $n) (i32.const 1)))
                    (br_if $again (i32.lt_u (local.get $n) (i32.const 3000))))
                (call $answer (i32.const 3072) (i32.const 4))"
            ),
        ))
    };
    let desk = Arc::new(Desk::default());
    let log = flood("log.write", "(call $log.write (i32.const 1) (i32.const 3072) (i32.const 4))");
    let done = call(&log, options(&desk, all_grants())).await.unwrap();
    assert_eq!((done.value.as_str(), done.usage.host_calls["log.write"]), ("spam", 3000));
    assert_eq!(desk.lines.lock().unwrap().len(), 1000);
    // Few lines that are long: bytes are counted too.
    desk.lines.lock().unwrap().clear();
    let long = flood("log.write", "(call $log.write (i32.const 1) (i32.const 0) (i32.const 60000))");
    call(&long, options(&desk, all_grants())).await.unwrap();
    let lines = std::mem::take(&mut *desk.lines.lock().unwrap());
    assert_eq!(lines.len(), 4);
    assert!(lines.iter().all(|(_, line)| line.len() <= (8 << 10) + 3));
    let report =
        flood("progress.report", "(call $progress.report (i32.const 0) (i32.const 0) (i32.const 3072) (i32.const 4))");
    call(&report, options(&desk, all_grants())).await.unwrap();
    assert_eq!(desk.reports.lock().unwrap().len(), 1000);
}

#[tokio::test]
async fn keys_and_values_that_make_no_sense() {
    let plugin = |length: &str, value: &str| {
        prepare(&tool(
            "capabilities.storage-handle storage.set",
            &format!(
                "(drop (memory.grow (i32.const 64)))
                (memory.fill (i32.const 131072) (i32.const 107) (i32.const 2000000))
                (i32.store8 (i32.const 131073) (i32.load8_u (local.get $input)))
                (call $capabilities.storage-handle (i32.const 0) (i32.const 128))
                (call $storage.set (i64.load (i32.const 136)) (i32.const 131072) (i32.const {length}) (i32.const 131072) (i32.const {value}) (i32.const 256))
                (if (result i32) (i32.load8_u (i32.const 256)) (then (call $digit (i32.load8_u (i32.const 260)))) (else (call $digit (i32.const 9))))"
            ),
        ))
    };
    let desk = Arc::new(Desk::default());
    for (length, value, input, expected) in [
        ("2", "2", "k", "failure:9"),
        ("0", "2", "k", "failure:2"),
        ("513", "2", "k", "failure:2"),
        ("2", "1048577", "k", "failure:2"),
        ("2", "2", "\n", "failure:2"),
        ("2", "2", "\0", "failure:2"),
    ] {
        let done = call_with(&plugin(length, value), input, options(&desk, all_grants())).await.unwrap();
        assert_eq!(done.value, expected, "{length} {value} {input:?}");
    }
    assert_eq!(desk.stored.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn descriptions_that_lie_or_never_come() {
    let describing = |body: &str| {
        let core = core_of(
            "",
            &format!(
                r#"(func (export "palyra:plugin/tool@1.0.0#describe") (result i32) {body})
                (func (export "palyra:plugin/tool@1.0.0#call") (param i32 i32 i32 i32) (result i32) unreachable)"#
            ),
        );
        prepare(&component("tools", &core))
    };
    let endless = describing("(loop $again (br $again)) unreachable");
    let failed = RUNTIME.describe(&endless, CallOptions::default()).await.unwrap_err();
    assert!(matches!(failed.error, PluginError::FuelExhausted { .. }), "{:?}", failed.error);
    // A million tools that share one text.
    let many = describing(
        "(local $at i32)
        (drop (memory.grow (i32.const 64)))
        (memory.fill (i32.const 65536) (i32.const 120) (i32.const 100000))
        (loop $next
            (i32.store (i32.add (i32.const 200000) (local.get $at)) (i32.const 65536))
            (i32.store (i32.add (i32.const 200004) (local.get $at)) (i32.const 100000))
            (local.set $at (i32.add (local.get $at) (i32.const 8)))
            (br_if $next (i32.lt_u (local.get $at) (i32.const 400000))))
        (i32.store (i32.const 1040) (i32.const 200000)) (i32.store (i32.const 1044) (i32.const 10000)) (i32.const 1040)",
    );
    let failed = RUNTIME.describe(&many, CallOptions::default()).await.unwrap_err();
    assert!(matches!(failed.error, PluginError::OutputTooLarge { .. }), "{:?}", failed.error);
    let outside = describing(
        "(i32.store (i32.const 1040) (i32.const 64)) (i32.store (i32.const 1044) (i32.const -1)) (i32.const 1040)",
    );
    let failed = RUNTIME.describe(&outside, CallOptions::default()).await.unwrap_err();
    assert!(matches!(failed.error, PluginError::MalformedValue { .. }), "{:?}", failed.error);
}

#[tokio::test]
async fn an_input_that_is_too_long_never_reaches_the_guest() {
    let plugin = prepare(&tool("", "unreachable"));
    let limits = RuntimeLimits { max_input_bytes: 10, ..RuntimeLimits::default() };
    let failed =
        call_with(&plugin, &"x".repeat(10), CallOptions { limits, ..CallOptions::default() }).await.unwrap_err();
    assert!(matches!(failed.error, PluginError::InputTooLarge { size: 11, limit: 10 }), "{:?}", failed.error);
    assert_eq!(failed.usage.fuel, 0);
}
