//! `wasi:http/outgoing-handler` is another way to the same grants.

use std::sync::Arc;

use palyra_plugins_runtime::{CallOptions, CapabilityGrantSet, HostCallLimits, PluginError, Revocation, RuntimeLimits};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use crate::harness::{Desk, all_grants, call_with, core_of, options, prepare};

/// As much of WASI as the guest uses; the types are those of the published packages.
const WASI: &str = r#"
package test:wasi;

world guest {
    import wasi:io/poll@0.2.6;
    import wasi:io/streams@0.2.6;
    import wasi:http/types@0.2.6;
    import wasi:http/outgoing-handler@0.2.6;
    export palyra:plugin/tool@1.0.0;
}

package wasi:io@0.2.6 {
    interface error { resource error; }
    interface poll { resource pollable { block: func(); } }
    interface streams {
        use error.{error};
        variant stream-error { last-operation-failed(error), closed }
        resource input-stream { blocking-read: func(len: u64) -> result<list<u8>, stream-error>; }
    }
}

package wasi:http@0.2.6 {
    interface types {
        use wasi:io/streams@0.2.6.{input-stream};
        use wasi:io/poll@0.2.6.{pollable};
        variant scheme { HTTP, HTTPS, other(string) }
        record DNS-error-payload { rcode: option<string>, info-code: option<u16> }
        record TLS-alert-received-payload { alert-id: option<u8>, alert-message: option<string> }
        record field-size-payload { field-name: option<string>, field-size: option<u32> }
        variant error-code {
            DNS-timeout, DNS-error(DNS-error-payload), destination-not-found, destination-unavailable,
            destination-IP-prohibited, destination-IP-unroutable, connection-refused, connection-terminated,
            connection-timeout, connection-read-timeout, connection-write-timeout, connection-limit-reached,
            TLS-protocol-error, TLS-certificate-error, TLS-alert-received(TLS-alert-received-payload),
            HTTP-request-denied, HTTP-request-length-required, HTTP-request-body-size(option<u64>),
            HTTP-request-method-invalid, HTTP-request-URI-invalid, HTTP-request-URI-too-long,
            HTTP-request-header-section-size(option<u32>), HTTP-request-header-size(option<field-size-payload>),
            HTTP-request-trailer-section-size(option<u32>), HTTP-request-trailer-size(field-size-payload),
            HTTP-response-incomplete, HTTP-response-header-section-size(option<u32>),
            HTTP-response-header-size(field-size-payload), HTTP-response-body-size(option<u64>),
            HTTP-response-trailer-section-size(option<u32>), HTTP-response-trailer-size(field-size-payload),
            HTTP-response-transfer-coding(option<string>), HTTP-response-content-coding(option<string>),
            HTTP-response-timeout, HTTP-upgrade-failed, HTTP-protocol-error, loop-detected, configuration-error,
            internal-error(option<string>),
        }
        resource fields { constructor(); }
        resource outgoing-request {
            constructor(headers: fields);
            set-scheme: func(scheme: option<scheme>) -> result;
            set-authority: func(authority: option<string>) -> result;
            set-path-with-query: func(path-with-query: option<string>) -> result;
        }
        resource request-options { constructor(); }
        resource incoming-body { %stream: func() -> result<input-stream>; }
        resource incoming-response { status: func() -> u16; consume: func() -> result<incoming-body>; }
        resource future-incoming-response {
            subscribe: func() -> pollable;
            get: func() -> option<result<result<incoming-response, error-code>>>;
        }
    }
    interface outgoing-handler {
        use types.{outgoing-request, request-options, future-incoming-response, error-code};
        handle: func(request: outgoing-request, options: option<request-options>) -> result<future-incoming-response, error-code>;
    }
}
"#;

/// Asks for `https://<input>` once and answers with the body, or with the number of the error.
fn guest() -> Vec<u8> {
    guest_that("")
}

/// The same, after it did something else.
fn guest_that(first: &str) -> Vec<u8> {
    let imports = r#"
        (import "wasi:http/types@0.2.6" "[constructor]fields" (func $fields (result i32)))
        (import "wasi:http/types@0.2.6" "[constructor]outgoing-request" (func $request (param i32) (result i32)))
        (import "wasi:http/types@0.2.6" "[method]outgoing-request.set-scheme" (func $scheme (param i32 i32 i32 i32 i32) (result i32)))
        (import "wasi:http/types@0.2.6" "[method]outgoing-request.set-authority" (func $authority (param i32 i32 i32 i32) (result i32)))
        (import "wasi:http/types@0.2.6" "[method]outgoing-request.set-path-with-query" (func $path (param i32 i32 i32 i32) (result i32)))
        (import "wasi:http/outgoing-handler@0.2.6" "handle" (func $handle (param i32 i32 i32 i32)))
        (import "wasi:http/types@0.2.6" "[method]future-incoming-response.subscribe" (func $subscribe (param i32) (result i32)))
        (import "wasi:http/types@0.2.6" "[method]future-incoming-response.get" (func $get (param i32 i32)))
        (import "wasi:io/poll@0.2.6" "[method]pollable.block" (func $block (param i32)))
        (import "wasi:http/types@0.2.6" "[method]incoming-response.status" (func $status (param i32) (result i32)))
        (import "wasi:http/types@0.2.6" "[method]incoming-response.consume" (func $consume (param i32 i32)))
        (import "wasi:http/types@0.2.6" "[method]incoming-body.stream" (func $stream (param i32 i32)))
        (import "wasi:io/streams@0.2.6" "[method]input-stream.blocking-read" (func $read (param i32 i64 i32)))"#;
    let items = &r#"
        (func (export "palyra:plugin/tool@1.0.0#describe") (result i32) (i64.store (i32.const 1040) (i64.const 0)) (i32.const 1040))
        (func (export "palyra:plugin/tool@1.0.0#call") (param $tool i32) (param $tool_len i32) (param $input i32) (param $input_len i32) (result i32)
            (local $request i32) (local $future i32) (local $response i32)
            FIRST
            (local.set $request (call $request (call $fields)))
            (drop (call $scheme (local.get $request) (i32.const 1) (i32.const 1) (i32.const 0) (i32.const 0)))
            (if (call $authority (local.get $request) (i32.const 1) (local.get $input) (local.get $input_len))
                (then (return (call $number (i64.const 1000)))))
            (i32.store8 (i32.const 128) (i32.const 47))
            (drop (call $path (local.get $request) (i32.const 1) (i32.const 128) (i32.const 1)))
            (call $handle (local.get $request) (i32.const 0) (i32.const 0) (i32.const 256))
            (if (i32.load8_u (i32.const 256)) (then (return (call $number (i64.load8_u (i32.const 264))))))
            (local.set $future (i32.load (i32.const 264)))
            (call $block (call $subscribe (local.get $future)))
            (call $get (local.get $future) (i32.const 512))
            (if (i32.load8_u (i32.const 528)) (then (return (call $number (i64.load8_u (i32.const 536))))))
            (local.set $response (i32.load (i32.const 536)))
            (if (i32.ne (call $status (local.get $response)) (i32.const 200)) (then unreachable))
            (call $consume (local.get $response) (i32.const 256))
            (call $stream (i32.load (i32.const 260)) (i32.const 256))
            (call $read (i32.load (i32.const 260)) (i64.const 4096) (i32.const 256))
            (call $answer (i32.load (i32.const 260)) (i32.load (i32.const 264))))"#
        .replace("FIRST", first);
    let core = core_of("", items).replacen("(module\n", &format!("(module\n{imports}"), 1);
    let mut resolve = Resolve::default();
    resolve.push_str("palyra-sdk.wit", palyra_plugins::SDK_WIT).unwrap();
    let package = resolve.push_str("wasi.wit", WASI).unwrap();
    let world = resolve.select_world(&[package], Some("guest")).unwrap();
    let mut module = wat::parse_str(core).unwrap();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    ComponentEncoder::default().module(&module).unwrap().validate(true).encode().unwrap()
}

/// Number of `HTTP-request-denied`.
const DENIED: &str = "15";

#[tokio::test]
async fn requests_are_under_the_same_grants() {
    let plugin = prepare(&guest());
    assert!(plugin.imports().iter().any(|import| import == "wasi:http/outgoing-handler@0.2.6"));
    let desk = Arc::new(Desk::default());
    let ask = async |authority: &str, grants| call_with(&plugin, authority, options(&desk, grants)).await.unwrap();
    let done = ask("api.example", all_grants()).await;
    assert_eq!((done.value.as_str(), done.usage.host_calls["wasi:http"]), ("hello from afar", 1));
    let (rule, request) = desk.http.lock().unwrap().pop().unwrap();
    assert_eq!(rule, "GET https://api.example");
    assert_eq!((request.method.as_str(), request.url.as_str()), ("GET", "https://api.example/"));
    assert!(request.headers.is_empty() && request.credentials.is_empty());

    let refused = ask("evil.test", all_grants()).await;
    assert_eq!((refused.value.as_str(), refused.usage.denials), (DENIED, 1), "another host");
    assert_eq!(ask("api.example:8443", all_grants()).await.value, DENIED, "another port");
    assert_eq!(ask("api.example", CapabilityGrantSet::default()).await.value, DENIED, "no grant");
    assert_ne!(ask("x@api.example", all_grants()).await.value, "hello from afar", "a user name");
    assert!(desk.http.lock().unwrap().is_empty());
}

#[tokio::test]
async fn taken_back_and_used_up() {
    let plugin = prepare(&guest());
    let desk = Arc::new(Desk::default());
    let revocation = Revocation::default();
    revocation.revoke();
    let revoked = CallOptions { revocation, ..options(&desk, all_grants()) };
    assert_eq!(call_with(&plugin, "api.example", revoked).await.unwrap().value, DENIED);
    let host_calls = HostCallLimits { http: 0, ..HostCallLimits::default() };
    let limits = RuntimeLimits { host_calls, ..RuntimeLimits::default() };
    let none = CallOptions { limits, ..options(&desk, all_grants()) };
    assert_eq!(call_with(&plugin, "api.example", none).await.unwrap().value, "11", "connection-limit-reached");
    assert!(desk.http.lock().unwrap().is_empty());
}

#[tokio::test]
async fn resources_of_the_host_are_not_hoarded() {
    let plugin = prepare(&guest_that("(loop $again (drop (call $fields)) (br $again))"));
    let desk = Arc::new(Desk::default());
    let failed = call_with(&plugin, "api.example", options(&desk, all_grants())).await.unwrap_err();
    assert!(matches!(failed.error, PluginError::HostCallsExhausted { limit: 512, .. }), "{:?}", failed.error);
}
