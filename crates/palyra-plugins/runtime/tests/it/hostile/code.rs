//! Guests that use up time, stack, memory and tables, or do what WebAssembly does not define.

use std::time::{Duration, Instant};

use palyra_plugins_runtime::{CallOptions, PluginError, RuntimeLimits};

use super::{all_end_as_they_should, endless, few_calls, hostile, limited};
use crate::harness::{call, component, prepare, tool, tool_with};

/// A module of its own, for guests whose memory or start is the attack.
fn bare(items: &str, body: &str) -> Vec<u8> {
    component(
        "tools",
        &format!(
            r#"(module {items}
            (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 4096))
            (func (export "palyra:plugin/tool@1.0.0#describe") (result i32) (i32.const 1024))
            (func (export "palyra:plugin/tool@1.0.0#call") (param i32 i32 i32 i32) (result i32) {body}))"#
        ),
    )
}

#[tokio::test]
async fn time_and_stack() {
    let forever = "(loop $again (br $again)) unreachable";
    all_end_as_they_should(vec![
        hostile("an endless loop", tool("", forever), "plugin_fuel_exhausted"),
        limited("an endless loop with endless fuel", tool("", forever), endless(), "plugin_deadline_exceeded"),
        limited(
            "an endless loop of host calls",
            tool("clock.monotonic", "(loop $again (drop (call $clock.monotonic)) (br $again)) unreachable"),
            few_calls(),
            "plugin_host_calls_exhausted",
        ),
        limited(
            "endless copying of memory",
            tool("", "(loop $again (memory.copy (i32.const 0) (i32.const 1) (i32.const 131000)) (br $again)) unreachable"),
            endless(),
            "plugin_deadline_exceeded",
        ),
        hostile("endless recursion", tool_with("", "(func $deeper (call $deeper) (call $deeper))", "(call $deeper) unreachable"), "plugin_trapped"),
        hostile(
            "recursion by tail calls",
            tool_with("", "(func $again (return_call $again))", "(call $again) unreachable"),
            "plugin_fuel_exhausted",
        ),
        hostile(
            "a start function that never ends",
            bare(r#"(memory (export "memory") 1) (func $start (loop $again (br $again))) (start $start)"#, "unreachable"),
            "plugin_fuel_exhausted",
        ),
        hostile(
            "a start function that traps",
            bare(r#"(memory (export "memory") 1) (func $start unreachable) (start $start)"#, "unreachable"),
            "plugin_trapped",
        ),
        hostile(
            "an endless clean-up after the answer",
            tool_with(
                "",
                r#"(func (export "cabi_post_palyra:plugin/tool@1.0.0#call") (param i32) (loop $again (br $again)))"#,
                "(call $answer (i32.const 0) (i32.const 0))",
            ),
            "plugin_fuel_exhausted",
        ),
        hostile(
            "a call to the host while the host cleans up",
            tool_with(
                "clock.monotonic",
                r#"(func (export "cabi_post_palyra:plugin/tool@1.0.0#call") (param i32) (drop (call $clock.monotonic)))"#,
                "(call $answer (i32.const 0) (i32.const 0))",
            ),
            "plugin_trapped",
        ),
    ])
    .await;
}

#[tokio::test]
async fn memory_and_tables() {
    let small_tables = RuntimeLimits { max_table_elements: 1000, ..RuntimeLimits::default() };
    let few_tables = RuntimeLimits { max_tables: 3, ..RuntimeLimits::default() };
    let few_memories = RuntimeLimits { max_memories: 2, ..RuntimeLimits::default() };
    let memories = r#"(memory (export "memory") 1) (memory 1) (memory 1) (memory 1)"#;
    let tables = |count: usize| format!(r#"(memory (export "memory") 1) {}"#, "(table 1 funcref) ".repeat(count));
    let grow = "(if (i32.eq (i32.const -1) (memory.grow (i32.const 65535))) (then unreachable)) unreachable";
    all_end_as_they_should(vec![
        hostile("four gigabytes at once", tool("", grow), "plugin_memory_exceeded"),
        hostile(
            "memory page by page",
            tool("", "(loop $again (br_if $again (i32.ne (i32.const -1) (memory.grow (i32.const 16))))) unreachable"),
            "plugin_memory_exceeded",
        ),
        hostile(
            "writing to memory that was not given",
            tool("", "(drop (memory.grow (i32.const 60000))) (i32.store (i32.const 900000000) (i32.const 1)) unreachable"),
            "plugin_memory_exceeded",
        ),
        hostile(
            "four gigabytes through the allocator",
            tool_with("random.bytes", "", "(drop (memory.grow (i32.const 1000))) (call $random.bytes (i32.const 900000) (i32.const 256)) (drop (memory.grow (i32.const 65535))) unreachable"),
            "plugin_memory_exceeded",
        ),
        hostile("a memory that begins too large", bare(r#"(memory (export "memory") 60000)"#, "unreachable"), "plugin_too_large"),
        hostile("a memory that begins above the limit", bare(r#"(memory (export "memory") 2000)"#, "unreachable"), "plugin_memory_exceeded"),
        hostile("many memories", bare(&format!(r#"(memory (export "memory") 1) {}"#, "(memory 1) ".repeat(20)), "unreachable"), "plugin_too_large"),
        limited("more memories than allowed", bare(memories, "unreachable"), few_memories, "plugin_memory_exceeded"),
        hostile(
            "memories that are small each and large together",
            bare(r#"(memory (export "memory") 500) (memory 500) (memory 500)"#, "unreachable"),
            "plugin_memory_exceeded",
        ),
        hostile(
            "a table that grows for ever",
            tool_with("", "(table $t 1 funcref)", "(loop $again (br_if $again (i32.ne (i32.const -1) (table.grow $t (ref.null func) (i32.const 1000))))) unreachable"),
            "plugin_table_exceeded",
        ),
        hostile("a table that begins too large", tool_with("", "(table 10000000 funcref)", "unreachable"), "plugin_too_large"),
        limited("a table that begins above the limit", tool_with("", "(table 2000 funcref)", "unreachable"), small_tables, "plugin_table_exceeded"),
        hostile("many tables", bare(&tables(100), "unreachable"), "plugin_too_large"),
        limited("more tables than allowed", bare(&tables(5), "unreachable"), few_tables, "plugin_table_exceeded"),
        hostile(
            "data beyond its memory",
            bare(r#"(memory (export "memory") 1) (data (i32.const 70000) "x")"#, "unreachable"),
            "plugin_trapped",
        ),
    ])
    .await;
}

#[tokio::test]
async fn traps() {
    let zero = "(i32.const 0)";
    let cases = [
        ("unreachable", "unreachable".to_owned()),
        ("division by zero", format!("(i32.div_u (i32.const 1) {zero})")),
        ("overflow of a division", "(i32.div_s (i32.const 0x80000000) (i32.const -1))".to_owned()),
        ("a number that is none", "(i32.trunc_f64_s (f64.const nan))".to_owned()),
        ("reading beyond memory", "(i32.load (i32.const 0x7fffffff))".to_owned()),
        ("writing beyond memory", "(i32.store (i32.const -4) (i32.const 1)) (i32.const 0)".to_owned()),
        (
            "filling beyond memory",
            "(memory.fill (i32.const 131000) (i32.const 1) (i32.const 1000)) (i32.const 0)".to_owned(),
        ),
        ("calling nothing", "(call_indirect $t (result i32) (i32.const 1))".to_owned()),
        ("calling another type", "(call_indirect $t (result i32) (i32.const 0))".to_owned()),
        ("calling beyond the table", "(call_indirect $t (result i32) (i32.const 9))".to_owned()),
    ];
    let items = "(table $t 2 funcref) (func $nothing) (elem (table $t) (i32.const 0) func $nothing)";
    let guests = cases.iter().map(|(name, body)| hostile(name, tool_with("", items, body), "plugin_trapped")).collect();
    all_end_as_they_should(guests).await;
}

#[tokio::test]
async fn a_call_that_was_called_off_ends_at_once() {
    let plugin = prepare(&tool("", "(loop $again (br $again)) unreachable"));
    let limits = RuntimeLimits { fuel_budget: u64::MAX, ..RuntimeLimits::default() };
    let options = CallOptions { limits, ..CallOptions::default() };
    let cancel = options.cancel.clone();
    let running = tokio::spawn(async move { call(&plugin, options).await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    let began = Instant::now();
    cancel.cancel();
    let failed = running.await.unwrap().unwrap_err();
    assert!(matches!(failed.error, PluginError::Cancelled), "{:?}", failed.error);
    // Generous: a tick is 10 ms; without cancellation the call would last 30 s.
    assert!(began.elapsed() < Duration::from_secs(10));
    assert!(failed.usage.wall >= Duration::from_millis(40));
}

#[tokio::test]
async fn a_trap_says_where_if_the_guest_has_names() {
    let plugin = prepare(&tool_with("", "(func $bad_idea unreachable)", "(call $bad_idea) unreachable"));
    let failed = call(&plugin, CallOptions::default()).await.unwrap_err();
    assert!(failed.to_string().contains("`unreachable` instruction executed in `bad_idea`"), "{failed}");
    assert!(failed.usage.fuel > 0 && failed.usage.memory_bytes >= 131_072);
}
