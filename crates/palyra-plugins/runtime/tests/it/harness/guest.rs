//! Guests as text: a core module in WAT, made a component by the published WIT.
//!
//! A test writes the body of `call`. Around it stand the imports it names and a few helpers:
//!
//! - `$tool $tool_len $input $input_len` are the arguments; the result is the place of the answer.
//! - `($answer place length)`, `($failed place length)`, `($invalid place length)` make answers.
//! - `($digit n)` answers the text `failure:n`; `($number n)` answers a number in decimal.
//! - `$heap` grows upwards from 64 KiB; bytes below 1 KiB and strings from 3 KiB on are the test's own.

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// Core signatures of all host functions, as the canonical ABI lowers them.
const IMPORTS: &[(&str, &str, &str)] = &[
    ("capabilities", "http-count", "(result i32)"),
    ("capabilities", "http-handle", "(param i32 i32)"),
    ("capabilities", "http-rule", "(param i64 i32)"),
    ("capabilities", "secret-count", "(result i32)"),
    ("capabilities", "secret-handle", "(param i32 i32)"),
    ("capabilities", "secret-name", "(param i64 i32)"),
    ("capabilities", "storage-count", "(result i32)"),
    ("capabilities", "storage-handle", "(param i32 i32)"),
    ("capabilities", "storage-name", "(param i64 i32)"),
    ("capabilities", "channel-count", "(result i32)"),
    ("capabilities", "channel-handle", "(param i32 i32)"),
    ("capabilities", "channel-name", "(param i64 i32)"),
    ("http", "send", "(param i64 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32)"),
    ("secret-reveal", "reveal", "(param i64 i32)"),
    ("storage", "get", "(param i64 i32 i32 i32)"),
    ("storage", "set", "(param i64 i32 i32 i32 i32 i32)"),
    ("storage", "delete", "(param i64 i32 i32 i32)"),
    ("storage", "keys", "(param i64 i32 i32 i32 i32 i32 i32 i32)"),
    ("storage", "apply", "(param i64 i32 i32 i32 i32 i32)"),
    ("channel", "send", "(param i64 i32 i32 i32)"),
    ("log", "write", "(param i32 i32 i32)"),
    ("progress", "report", "(param i32 i32 i32 i32)"),
    ("clock", "now", "(param i32)"),
    ("clock", "monotonic", "(result i64)"),
    ("random", "bytes", "(param i32 i32)"),
    ("config", "get", "(param i32 i32 i32)"),
    ("config", "keys", "(param i32)"),
];

/// Memory, allocation and answers.
const HELPERS: &str = r#"
    (memory (export "memory") 2)
    (global $heap (mut i32) (i32.const 65536))
    (func (export "cabi_realloc") (param $old i32) (param $old_size i32) (param $align i32) (param $size i32) (result i32)
        (local $place i32) (local $end i32)
        (local.set $place (i32.and (i32.add (global.get $heap) (i32.const 15)) (i32.const -16)))
        (local.set $end (i32.add (local.get $place) (local.get $size)))
        (if (i32.gt_u (local.get $end) (i32.mul (memory.size) (i32.const 65536)))
            (then
                (if (i32.eq (i32.const -1) (memory.grow (i32.add (i32.const 1) (i32.div_u (local.get $size) (i32.const 65536)))))
                    (then unreachable))))
        (global.set $heap (local.get $end))
        (local.get $place))
    (func $answer (param $place i32) (param $length i32) (result i32)
        (i32.store8 (i32.const 1024) (i32.const 0))
        (i32.store (i32.const 1028) (local.get $place))
        (i32.store (i32.const 1032) (local.get $length))
        (i32.const 1024))
    (func $failure (param $which i32) (param $place i32) (param $length i32) (result i32)
        (i32.store8 (i32.const 1024) (i32.const 1))
        (i32.store8 (i32.const 1028) (local.get $which))
        (i32.store (i32.const 1032) (local.get $place))
        (i32.store (i32.const 1036) (local.get $length))
        (i32.const 1024))
    (func $invalid (param $place i32) (param $length i32) (result i32)
        (call $failure (i32.const 0) (local.get $place) (local.get $length)))
    (func $failed (param $place i32) (param $length i32) (result i32)
        (call $failure (i32.const 1) (local.get $place) (local.get $length)))
    (data (i32.const 2040) "failure:0")
    (func $digit (param $number i32) (result i32)
        (i32.store8 (i32.const 2048) (i32.add (i32.const 48) (local.get $number)))
        (call $answer (i32.const 2040) (i32.const 9)))
    (func $number (param $number i64) (result i32)
        (local $place i32)
        (local.set $place (i32.const 2100))
        (loop $next
            (local.set $place (i32.sub (local.get $place) (i32.const 1)))
            (i32.store8 (local.get $place) (i32.wrap_i64 (i64.add (i64.const 48) (i64.rem_u (local.get $number) (i64.const 10)))))
            (local.set $number (i64.div_u (local.get $number) (i64.const 10)))
            (br_if $next (i64.ne (local.get $number) (i64.const 0))))
        (call $answer (local.get $place) (i32.sub (i32.const 2100) (local.get $place))))
"#;

/// A `describe` that lists nothing.
const DESCRIBE: &str = r#"
    (func (export "palyra:plugin/tool@1.0.0#describe") (result i32)
        (i64.store (i32.const 1040) (i64.const 0))
        (i32.const 1040))
"#;

/// A plugin of one tool with these imports (`http.send storage.get`) and this body.
pub(crate) fn tool(imports: &str, body: &str) -> Vec<u8> {
    tool_with(imports, "", body)
}

/// The same with further items of the module.
pub(crate) fn tool_with(imports: &str, items: &str, body: &str) -> Vec<u8> {
    let core = core_of(
        imports,
        &format!(
            r#"{items} {DESCRIBE}
            (func (export "palyra:plugin/tool@1.0.0#call")
                (param $tool i32) (param $tool_len i32) (param $input i32) (param $input_len i32) (result i32)
                {body})"#
        ),
    );
    component("tools", &core)
}

/// A plugin of one hook; the body gives the place of `result<decision, string>`.
pub(crate) fn hook(body: &str) -> Vec<u8> {
    let core = core_of(
        "",
        &format!(
            r#"(func (export "palyra:plugin/hook@1.0.0#handle")
                (param $name i32) (param $name_len i32) (param $at i64) (param $has_run i32) (param $run i32)
                (param $run_len i32) (param $payload i32) (param $payload_len i32) (result i32)
                {body})"#
        ),
    );
    component("hooks", &core)
}

/// A core module with imports, helpers and items.
pub(crate) fn core_of(imports: &str, items: &str) -> String {
    let mut text = String::from("(module\n");
    for wanted in imports.split_ascii_whitespace() {
        let (interface, name, signature) = IMPORTS
            .iter()
            .find(|(interface, name, _)| format!("{interface}.{name}") == wanted)
            .expect("a known import");
        text.push_str(&format!(
            "(import \"palyra:host/{interface}@1.0.0\" \"{name}\" (func ${interface}.{name} {signature}))\n"
        ));
    }
    text.push_str(HELPERS);
    text.push_str(items);
    text.push(')');
    text
}

/// Makes a component of a core module, by a world of the published WIT.
pub(crate) fn component(world: &str, core: &str) -> Vec<u8> {
    let mut resolve = Resolve::default();
    let package = resolve.push_str("palyra-sdk.wit", palyra_plugins::SDK_WIT).expect("the WIT is sound");
    let world = resolve.select_world(&[package], Some(world)).expect("the world exists");
    let mut module = wat::parse_str(core).expect("the text is sound");
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    ComponentEncoder::default().module(&module).unwrap().validate(true).encode().unwrap()
}
