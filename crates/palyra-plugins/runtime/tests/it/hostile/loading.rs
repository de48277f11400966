//! Modules that should never run.

use std::time::Duration;

use palyra_common::ToStableError;
use palyra_plugins_runtime::{
    Allocation, CallOptions, PluginError, PluginRuntime, PoolSizes, RuntimeLimits, RuntimeOptions,
};

use super::{Hostile, all_end_as_they_should, hostile, limited};
use crate::harness::{RUNTIME, call, component, prepare, tool, tool_with};

fn text(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap()
}

/// A component that imports an empty interface.
fn importing(name: &str) -> Vec<u8> {
    text(&format!(r#"(component (import "{name}" (instance)))"#))
}

#[tokio::test]
async fn imports_that_are_not_offered() {
    let mut guests: Vec<Hostile> = [
        "wasi:filesystem/types@0.2.6",
        "wasi:filesystem/preopens@0.2.0",
        "wasi:sockets/tcp@0.2.6",
        "wasi:sockets/ip-name-lookup@0.2.6",
        "wasi:cli/environment@0.2.6",
        "wasi:cli/stdout@0.2.6",
        "wasi:random/random@0.2.6",
        "wasi:clocks/wall-clock@0.2.6",
        "wasi:http/incoming-handler@0.2.6",
        "wasi:http/types@0.3.0",
        "palyra:host/everything@1.0.0",
        "palyra:host/http@2.0.0",
        "palyra:host/http@1.0.1",
        "evil:host/http@1.0.0",
        "env",
    ]
    .into_iter()
    .map(|name| hostile(name, importing(name), "plugin_import_refused"))
    .collect();
    guests.extend([
        hostile("a function of the host", text(r#"(component (import "exec" (func)))"#), "plugin_import_refused"),
        hostile("a core module of the host", text(r#"(component (import "libc" (core module)))"#), "plugin_import_refused"),
        hostile("a component of the host", text(r#"(component (import "daemon" (component)))"#), "plugin_import_refused"),
        hostile(
            "a function that the interface does not have",
            text(
                r#"(component (import "palyra:host/log@1.0.0" (instance (export "read-all" (func (result string)))))
                (core module $m) (core instance (instantiate $m)))"#,
            ),
            "plugin_import_refused",
        ),
        hostile(
            "a function with another type",
            text(r#"(component (import "palyra:host/clock@1.0.0" (instance (export "monotonic" (func (result string))))))"#),
            "plugin_import_refused",
        ),
        hostile("preview 1 of WASI", text(r#"(module (import "wasi_snapshot_preview1" "fd_write" (func (param i32 i32 i32 i32) (result i32))) (func (export "run") (result i32) (i32.const 0)))"#), "plugin_import_refused"),
        hostile("an import by a name that only looks right", text(r#"(module (import "palyra:host/capabilities@1.0.0x" "http-count" (func (result i32))) (func (export "run") (result i32) (i32.const 0)))"#), "plugin_import_refused"),
        hostile("a core import that does not exist", text(r#"(module (import "palyra:host/capabilities@1.0.0" "http-send" (func)) (func (export "run") (result i32) (i32.const 0)))"#), "plugin_import_refused"),
        hostile("a memory of the host", text(r#"(module (import "palyra:host/capabilities@1.0.0" "memory" (memory 1)) (func (export "run") (result i32) (i32.const 0)))"#), "plugin_import_refused"),
    ]);
    all_end_as_they_should(guests).await;
    let error = RUNTIME.prepare(&importing("wasi:sockets/tcp@0.2.6")).unwrap_err();
    assert!(error.to_string().contains("`wasi:sockets/tcp@0.2.6`"), "{error}");
}

/// A module of so many functions that do nothing.
fn many_functions(count: u32) -> Vec<u8> {
    let number = |mut value: u32| {
        let mut bytes = Vec::new();
        loop {
            let low = u8::try_from(value & 0x7f).unwrap();
            value >>= 7;
            bytes.push(if value == 0 { low } else { low | 0x80 });
            if value == 0 {
                return bytes;
            }
        }
    };
    let section =
        |id: u8, content: Vec<u8>| [vec![id], number(u32::try_from(content.len()).unwrap()), content].concat();
    let times = |bytes: &[u8]| [number(count), bytes.repeat(count as usize)].concat();
    [
        b"\0asm\x01\0\0\0".to_vec(),
        section(1, vec![1, 0x60, 0, 0]),
        section(3, times(&[0])),
        section(10, times(&[2, 0, 0x0b])),
    ]
    .concat()
}

#[tokio::test]
async fn modules_that_are_none_or_too_much() {
    let whole = tool("", "unreachable");
    let instances = |count: usize| {
        text(&format!(
            "(component (core module $m) {})",
            (0..count).map(|number| format!("(core instance $i{number} (instantiate $m))")).collect::<String>()
        ))
    };
    let nested = (1..2000).fold(String::from("(type $t0 (list u8))"), |text, depth| {
        text + &format!("(type $t{depth} (list $t{}))", depth - 1)
    });
    let body = |size: usize| {
        format!(
            "(module (func (export \"run\") (result i32) {} (i32.const 0)))",
            "(drop (i64.const 0x7fffffffffffffff))".repeat(size / 12)
        )
    };
    all_end_as_they_should(vec![
        hostile("no bytes", Vec::new(), "plugin_malformed"),
        hostile("a text", b"(module)".to_vec(), "plugin_malformed"),
        hostile("an ELF program", b"\x7fELF\x02\x01\x01\0".to_vec(), "plugin_malformed"),
        hostile("half a component", whole[..whole.len() / 2].to_vec(), "plugin_malformed"),
        hostile("a component and something more", [whole.as_slice(), b"\xff\xff\xff\xff"].concat(), "plugin_malformed"),
        hostile(
            "machine code that calls itself compiled",
            [b"\x7fELF\x02\x01\x01\0wasmtime".as_slice(), &whole].concat(),
            "plugin_malformed",
        ),
        hostile("an empty component", text("(component)"), "plugin_export_missing"),
        hostile("an empty module", text("(module)"), "plugin_export_missing"),
        hostile(
            "`run` of another type",
            text(r#"(module (func (export "run") (param f64)))"#),
            "plugin_export_missing",
        ),
        hostile(
            "an interface that is empty",
            text(r#"(component (instance $i) (export "palyra:plugin/tool@1.0.0" (instance $i)))"#),
            "plugin_export_missing",
        ),
        hostile(
            "a function of another type",
            text(
                r#"(component
                (core module $m (func (export "f")) )
                (core instance $i (instantiate $m))
                (func $f (canon lift (core func $i "f")))
                (instance $tool (export "call" (func $f)) (export "describe" (func $f)))
                (export "palyra:plugin/tool@1.0.0" (instance $tool)))"#,
            ),
            "plugin_export_missing",
        ),
        hostile("seventy instances", instances(70), "plugin_too_large"),
        limited(
            "more instances than allowed",
            tool("storage.get", "unreachable"),
            RuntimeLimits { max_instances: 1, ..RuntimeLimits::default() },
            "plugin_instances_exceeded",
        ),
        hostile("types nested two thousand deep", text(&format!("(component {nested})")), "plugin_malformed"),
        hostile("a function of two megabytes", text(&body(2 << 20)), "plugin_too_large"),
        hostile(
            "fifty thousand local variables",
            text(&format!(
                "(module (func (export \"run\") (result i32) {} (i32.const 0)))",
                "(local i32)".repeat(50_000)
            )),
            "plugin_too_large",
        ),
        hostile("a quarter of a million functions", many_functions(250_000), "plugin_too_large"),
        hostile("a sound module of that make", many_functions(1000), "plugin_export_missing"),
        hostile("more bytes than allowed", vec![0; (32 << 20) + 1], "plugin_too_large"),
        hostile(
            "threads",
            text(r#"(module (memory 1 1 shared) (func (export "run") (result i32) (i32.const 0)))"#),
            "plugin_malformed",
        ),
        hostile(
            "garbage collection",
            text(r#"(module (type (struct (field i32))) (func (export "run") (result i32) (i32.const 0)))"#),
            "plugin_malformed",
        ),
        hostile("thousands of instances", instances(64 * 64), "plugin_malformed"),
    ])
    .await;
}

#[test]
fn a_module_that_takes_too_long_to_compile_is_given_up() {
    let options = RuntimeOptions {
        allocation: Allocation::OnDemand { calls: 1 },
        compile_deadline: Duration::ZERO,
        ..RuntimeOptions::default()
    };
    let impatient = PluginRuntime::new(options).unwrap();
    let functions = (0..3000).fold(String::new(), |text, number| {
        text + &format!("(func (param i32) (result i32) (i32.mul (local.get 0) (i32.const {number})))")
    });
    let wasm = tool_with("", &functions, "unreachable");
    let error = impatient.prepare(&wasm).unwrap_err();
    assert_eq!(error.to_stable().code, "plugin_compile_too_slow");
}

#[test]
fn where_no_pool_can_be_reserved_memory_comes_on_demand() {
    // More address space than there is.
    let sizes = PoolSizes { memories: 100_000, ..PoolSizes::default() };
    let options = RuntimeOptions { allocation: Allocation::Pool(sizes), ..RuntimeOptions::default() };
    let runtime = PluginRuntime::new(options).unwrap();
    assert_eq!(runtime.allocation(), Allocation::OnDemand { calls: sizes.calls });
}

#[tokio::test]
async fn a_runtime_without_a_pool_serves_and_limits_just_the_same() {
    let options = RuntimeOptions { allocation: Allocation::OnDemand { calls: 2 }, ..RuntimeOptions::default() };
    let runtime = PluginRuntime::new(options).unwrap();
    assert_eq!(runtime.allocation(), Allocation::OnDemand { calls: 2 });
    let ask = async |wasm: &[u8]| {
        let plugin = runtime.prepare(wasm).unwrap();
        let call = palyra_plugins_runtime::ToolCall {
            tool: "t".to_owned(),
            input: "{}".to_owned(),
            options: CallOptions::default(),
        };
        runtime.call_tool(&plugin, call).await
    };
    let honest = ask(&tool("", "(call $answer (local.get $input) (local.get $input_len))")).await.unwrap();
    assert_eq!(honest.value, "{}");
    let grow = "(if (i32.eq (i32.const -1) (memory.grow (i32.const 60000))) (then unreachable)) unreachable";
    assert!(matches!(ask(&tool("", grow)).await.unwrap_err().error, PluginError::MemoryExceeded { .. }));
    let large = component(
        "tools",
        r#"(module (memory (export "memory") 60000)
        (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 4096))
        (func (export "palyra:plugin/tool@1.0.0#describe") (result i32) (i32.const 1024))
        (func (export "palyra:plugin/tool@1.0.0#call") (param i32 i32 i32 i32) (result i32) unreachable))"#,
    );
    assert!(matches!(ask(&large).await.unwrap_err().error, PluginError::MemoryExceeded { .. }));
}

#[tokio::test]
async fn a_plugin_knows_what_it_is() {
    let plugin = prepare(&tool("log.write storage.get", "unreachable"));
    assert!(plugin.exports_tool() && !plugin.exports_hook());
    let mut imports = plugin.imports().to_vec();
    imports.sort();
    assert_eq!(
        imports,
        [
            "palyra:host/capabilities@1.0.0",
            "palyra:host/failures@1.0.0",
            "palyra:host/log@1.0.0",
            "palyra:host/storage@1.0.0"
        ]
    );
    // The same module is loaded once.
    let again = prepare(&tool("log.write storage.get", "unreachable"));
    assert!(std::sync::Arc::ptr_eq(&plugin, &again));
    let failed = call(&plugin, CallOptions::default()).await.unwrap_err();
    assert!(matches!(failed.error, PluginError::Trap { .. }));
}
