//! Guests that want to reach another place than the one they were granted.

use std::sync::Arc;
use std::time::Duration;

use palyra_plugins_runtime::{CallOptions, PluginError, RuntimeLimits};

use crate::harness::{Desk, all_grants, call_with, options, prepare, tool_with};

/// Sends `GET <input>` and answers with the failure or `failure:9`.
fn fetch() -> Vec<u8> {
    tool_with(
        "capabilities.http-handle http.send",
        r#"(data (i32.const 3072) "GET")"#,
        "(call $capabilities.http-handle (i32.const 0) (i32.const 128))
        (call $http.send (i64.load (i32.const 136)) (i32.const 3072) (i32.const 3) (local.get $input) (local.get $input_len)
            (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 256))
        (if (result i32) (i32.load8_u (i32.const 256)) (then (call $digit (i32.load8_u (i32.const 260)))) (else (call $digit (i32.const 9))))",
    )
}

#[tokio::test]
async fn no_spelling_of_an_address_leaves_the_rule() {
    let plugin = prepare(&fetch());
    let desk = Arc::new(Desk::default());
    for (url, expected) in [
        ("https://api.example/", "failure:9"),
        ("HTTPS://API.EXAMPLE:443/x", "failure:9"),
        ("https://evil.test/", "failure:1"),
        ("https://api.example.evil.test/", "failure:1"),
        ("https://c2VjcmV0.api.example/", "failure:1"),
        ("https://api.example:8443/", "failure:1"),
        ("http://api.example/", "failure:1"),
        ("https://api.example@evil.test/", "failure:2"),
        ("https://evil.test\\@api.example/", "failure:2"),
        ("https://api.example%00.evil.test/", "failure:2"),
        ("https://api.example./", "failure:2"),
        ("ftp://api.example/", "failure:2"),
        ("file:///etc/passwd", "failure:2"),
        ("https://api.example/\r\nHost: evil.test", "failure:2"),
        ("https://127.0.0.1/", "failure:1"),
        ("https://[::1]/", "failure:1"),
        ("https://2130706433/", "failure:1"),
        ("", "failure:2"),
    ] {
        let done = call_with(&plugin, url, options(&desk, all_grants())).await.unwrap();
        assert_eq!(done.value, expected, "{url}");
    }
    assert_eq!(desk.http.lock().unwrap().len(), 2, "only the granted place was asked");
}

#[tokio::test]
async fn headers_cannot_be_smuggled() {
    let plugin = prepare(&tool_with(
        "capabilities.http-handle http.send",
        r#"(data (i32.const 3072) "GET") (data (i32.const 3080) "https://api.example/path")"#,
        // The input is `name=value`, with a name of one to four letters before the sign.
        "(local $name i32)
        (loop $next (local.set $name (i32.add (local.get $name) (i32.const 1)))
            (br_if $next (i32.ne (i32.load8_u (i32.add (local.get $input) (local.get $name))) (i32.const 61))))
        (i32.store (i32.const 512) (local.get $input)) (i32.store (i32.const 516) (local.get $name))
        (i32.store (i32.const 520) (i32.add (i32.add (local.get $input) (local.get $name)) (i32.const 1)))
        (i32.store (i32.const 524) (i32.sub (i32.sub (local.get $input_len) (local.get $name)) (i32.const 1)))
        (call $capabilities.http-handle (i32.const 0) (i32.const 128))
        (call $http.send (i64.load (i32.const 136)) (i32.const 3072) (i32.const 3) (i32.const 3080) (i32.const 24)
            (i32.const 512) (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 256))
        (if (result i32) (i32.load8_u (i32.const 256)) (then (call $digit (i32.load8_u (i32.const 260)))) (else (call $digit (i32.const 9))))",
    ));
    let desk = Arc::new(Desk::default());
    for (header, expected) in [
        ("x=fine", "failure:9"),
        ("x=a\r\nHost: evil.test", "failure:2"),
        ("x=a\nb", "failure:2"),
        ("x\n=a", "failure:2"),
        ("Host=evil.test", "failure:2"),
        ("te=trailers", "failure:2"),
    ] {
        let done = call_with(&plugin, header, options(&desk, all_grants())).await.unwrap();
        assert_eq!(done.value, expected, "{header:?}");
    }
    assert_eq!(desk.http.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn waiting_for_an_answer_is_part_of_the_time() {
    let plugin = prepare(&fetch());
    let desk = Arc::new(Desk { hangs: true, ..Desk::default() });
    let limits = RuntimeLimits { wall_clock: Duration::from_millis(100), ..RuntimeLimits::default() };
    let options = CallOptions { limits, ..options(&desk, all_grants()) };
    let failed = call_with(&plugin, "https://api.example/", options).await.unwrap_err();
    assert!(matches!(failed.error, PluginError::DeadlineExceeded { milliseconds: 100 }), "{:?}", failed.error);
    assert!(failed.usage.wall >= Duration::from_millis(100));
    assert_eq!(failed.usage.host_calls["http.send"], 1);
}
