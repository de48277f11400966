//! Every capability three times: granted, not granted, taken back meanwhile.
//!
//! Each guest uses its capability twice and answers what the second use gave, so that a grant taken back by the first use is seen.

use std::sync::Arc;

use palyra_plugins_runtime::{
    CallOptions, CapabilityGrantSet, LogLevel, Placement, PluginError, Revocation, SecretUse, StorageEntry,
};

use crate::harness::{Desk, all_grants, call, call_with, options, prepare, tool, tool_with};

/// One capability: its name, the imports and the body of a guest that uses it once; the result of the use is at 256 with its discriminant first.
struct Case {
    name: &'static str,
    imports: &'static str,
    /// Gets the handle into `$handle`.
    handle: &'static str,
    /// Uses `$handle`; the discriminant of the failure is at the given place.
    usage: &'static str,
    failure_at: u32,
}

const CASES: &[Case] = &[
    Case {
        name: "http",
        imports: "capabilities.http-handle http.send",
        handle: "(call $capabilities.http-handle (i32.const 0) (i32.const 128))",
        usage: "(call $http.send (local.get $handle) (i32.const 3072) (i32.const 3) (i32.const 3080) (i32.const 24)
            (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 256))",
        failure_at: 260,
    },
    Case {
        name: "secret-reveal",
        imports: "capabilities.secret-handle secret-reveal.reveal",
        handle: "(call $capabilities.secret-handle (i32.const 0) (i32.const 128))",
        usage: "(call $secret-reveal.reveal (local.get $handle) (i32.const 256))",
        failure_at: 260,
    },
    Case {
        name: "storage.get",
        imports: "capabilities.storage-handle storage.get",
        handle: "(call $capabilities.storage-handle (i32.const 0) (i32.const 128))",
        usage: "(call $storage.get (local.get $handle) (i32.const 3072) (i32.const 3) (i32.const 256))",
        failure_at: 264,
    },
    Case {
        name: "storage.set",
        imports: "capabilities.storage-handle storage.set",
        handle: "(call $capabilities.storage-handle (i32.const 0) (i32.const 128))",
        usage: "(call $storage.set (local.get $handle) (i32.const 3072) (i32.const 3) (i32.const 3080) (i32.const 5) (i32.const 256))",
        failure_at: 260,
    },
    Case {
        name: "storage.delete",
        imports: "capabilities.storage-handle storage.delete",
        handle: "(call $capabilities.storage-handle (i32.const 0) (i32.const 128))",
        usage: "(call $storage.delete (local.get $handle) (i32.const 3072) (i32.const 3) (i32.const 256))",
        failure_at: 260,
    },
    Case {
        name: "storage.keys",
        imports: "capabilities.storage-handle storage.keys",
        handle: "(call $capabilities.storage-handle (i32.const 0) (i32.const 128))",
        usage: "(call $storage.keys (local.get $handle) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 9) (i32.const 256))",
        failure_at: 260,
    },
    Case {
        name: "storage.apply",
        imports: "capabilities.storage-handle storage.apply",
        handle: "(call $capabilities.storage-handle (i32.const 0) (i32.const 128))",
        usage: "(call $storage.apply (local.get $handle) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 256))",
        failure_at: 264,
    },
    Case {
        name: "channel",
        imports: "capabilities.channel-handle channel.send",
        handle: "(call $capabilities.channel-handle (i32.const 0) (i32.const 128))",
        usage: "(call $channel.send (local.get $handle) (i32.const 3072) (i32.const 3) (i32.const 256))",
        failure_at: 260,
    },
];

/// `failure:9` for success, `failure:n` for the n-th failure of the WIT (0 is no-grant).
fn guest(case: &Case) -> Vec<u8> {
    let Case { imports, handle, usage, failure_at, .. } = case;
    tool_with(
        imports,
        r#"(data (i32.const 3072) "GET") (data (i32.const 3080) "https://api.example/path")"#,
        &format!(
            "(local $handle i64)
            {handle}
            (local.set $handle (i64.load (i32.const 136)))
            {usage}
            {usage}
            (if (result i32) (i32.load8_u (i32.const 256))
                (then (call $digit (i32.load8_u (i32.const {failure_at}))))
                (else (call $digit (i32.const 9))))"
        ),
    )
}

#[tokio::test]
async fn each_capability_granted_not_granted_and_taken_back() {
    for case in CASES {
        let plugin = prepare(&guest(case));
        let desk = Arc::new(Desk::default());
        let granted = call(&plugin, options(&desk, all_grants())).await.unwrap();
        assert_eq!(granted.value, "failure:9", "{} is granted", case.name);
        assert_eq!(granted.usage.denials, 0);

        let refused = call(&plugin, options(&desk, CapabilityGrantSet::default())).await.unwrap();
        assert_eq!(refused.value, "failure:0", "{} is not granted", case.name);
        assert_eq!(refused.usage.denials, 2);

        let revocation = Revocation::default();
        let desk = Arc::new(Desk { revoked_by_use: Some(revocation.clone()), ..Desk::default() });
        let options = CallOptions { revocation, ..options(&desk, all_grants()) };
        let revoked = call(&plugin, options).await.unwrap();
        assert_eq!(revoked.value, "failure:0", "{} is taken back meanwhile", case.name);
        assert_eq!(revoked.usage.denials, 1, "{}: the first use went through", case.name);
    }
}

#[tokio::test]
async fn counters_and_names_tell_what_was_granted_until_it_is_taken_back() {
    for (kind, name, shown) in [
        ("http", "rule", "GET https://api.example"),
        ("secret", "name", "token"),
        ("storage", "name", "notes"),
        ("channel", "name", "ops"),
    ] {
        let plugin = prepare(&tool(
            &format!("capabilities.{kind}-count capabilities.{kind}-handle capabilities.{kind}-{name}"),
            &format!(
                "(if (i32.eqz (call $capabilities.{kind}-count)) (then (return (call $digit (i32.const 0)))))
                (call $capabilities.{kind}-handle (i32.const 1) (i32.const 128))
                (if (i32.load8_u (i32.const 128)) (then (unreachable)))
                (call $capabilities.{kind}-handle (i32.const 0) (i32.const 128))
                (call $capabilities.{kind}-{name} (i64.load (i32.const 136)) (i32.const 256))
                (call $answer (i32.load (i32.const 260)) (i32.load (i32.const 264)))"
            ),
        ));
        let desk = Arc::new(Desk::default());
        assert_eq!(call(&plugin, options(&desk, all_grants())).await.unwrap().value, shown);
        assert_eq!(call(&plugin, CallOptions::default()).await.unwrap().value, "failure:0", "{kind}");
        let revoked = options(&desk, all_grants());
        revoked.revocation.revoke();
        assert_eq!(call(&plugin, revoked).await.unwrap().value, "failure:0", "{kind}");
    }
}

#[tokio::test]
async fn a_request_arrives_as_it_was_made() {
    // One header `x: y` at 512, one credential at 640: the secret's handle and `header("k")`.
    let plugin = prepare(&tool_with(
        "capabilities.http-handle capabilities.secret-handle http.send",
        r#"(data (i32.const 3072) "POST") (data (i32.const 3080) "https://api.example/path?q=1")
           (data (i32.const 3200) "xyzk")"#,
        "(call $capabilities.http-handle (i32.const 0) (i32.const 128))
        (call $capabilities.secret-handle (i32.const 0) (i32.const 160))
        (i32.store (i32.const 512) (i32.const 3200)) (i32.store (i32.const 516) (i32.const 1))
        (i32.store (i32.const 520) (i32.const 3201)) (i32.store (i32.const 524) (i32.const 1))
        (i64.store (i32.const 640) (i64.load (i32.const 168)))
        (i32.store8 (i32.const 648) (i32.const 2))
        (i32.store (i32.const 652) (i32.const 3203)) (i32.store (i32.const 656) (i32.const 1))
        (call $http.send (i64.load (i32.const 136)) (i32.const 3072) (i32.const 4) (i32.const 3080) (i32.const 28)
            (i32.const 512) (i32.const 1) (local.get $input) (local.get $input_len) (i32.const 640) (i32.const 1) (i32.const 256))
        (if (i32.load8_u (i32.const 256)) (then (return (call $digit (i32.load8_u (i32.const 260))))))
        (call $answer (i32.load (i32.const 272)) (i32.load (i32.const 276)))",
    ));
    let desk = Arc::new(Desk::default());
    let mut grants = all_grants();
    grants.http[0].rule = "POST https://api.example".to_owned();
    let done = call_with(&plugin, "body", options(&desk, grants.clone())).await.unwrap();
    assert_eq!(done.value, "hello from afar");
    assert_eq!(done.usage.host_calls["http.send"], 1);
    let (rule, request) = desk.http.lock().unwrap().pop().unwrap();
    assert_eq!(rule, "POST https://api.example");
    assert_eq!((request.method.as_str(), request.url.as_str()), ("POST", "https://api.example/path?q=1"));
    assert_eq!(request.headers, [("x".to_owned(), b"y".to_vec())]);
    assert_eq!(request.body, b"body");
    assert_eq!(request.credentials[0].secret.name, "token");
    assert_eq!(request.credentials[0].placement, Placement::Header("k".to_owned()));

    grants.secrets[0].hosts = vec!["other.example".to_owned()];
    let kept = call_with(&plugin, "body", options(&desk, grants.clone())).await.unwrap();
    assert_eq!(kept.value, "failure:1", "the secret is for another host");
    grants.secrets.clear();
    let none = call_with(&plugin, "body", options(&desk, grants)).await.unwrap();
    assert_eq!(none.value, "failure:0", "there is no such secret");
    assert!(desk.http.lock().unwrap().is_empty(), "nothing was sent");
}

#[tokio::test]
async fn a_secret_is_read_only_where_reading_was_granted() {
    let plugin = prepare(&tool(
        "capabilities.secret-handle secret-reveal.reveal",
        "(call $capabilities.secret-handle (i32.const 0) (i32.const 128))
        (call $secret-reveal.reveal (i64.load (i32.const 136)) (i32.const 256))
        (if (i32.load8_u (i32.const 256)) (then (return (call $digit (i32.load8_u (i32.const 260))))))
        (call $answer (i32.load (i32.const 260)) (i32.load (i32.const 264)))",
    ));
    let desk = Arc::new(Desk::default());
    assert_eq!(call(&plugin, options(&desk, all_grants())).await.unwrap().value, "value of token");
    let mut grants = all_grants();
    grants.secrets[0].usage = SecretUse::Bind;
    assert_eq!(call(&plugin, options(&desk, grants)).await.unwrap().value, "failure:1");
}

#[tokio::test]
async fn storage_keeps_what_one_call_wrote_for_the_next() {
    let write = prepare(&tool(
        "capabilities.storage-handle storage.set",
        "(call $capabilities.storage-handle (i32.const 0) (i32.const 128))
        (call $storage.set (i64.load (i32.const 136)) (local.get $input) (i32.const 1) (local.get $input) (local.get $input_len) (i32.const 256))
        (call $digit (i32.load8_u (i32.const 256)))",
    ));
    // A batch with the expectation that `k` is absent: the first wins, the second meets a conflict.
    let once = prepare(&tool_with(
        "capabilities.storage-handle storage.apply",
        r#"(data (i32.const 3072) "k")"#,
        "(call $capabilities.storage-handle (i32.const 0) (i32.const 128))
        (i32.store (i32.const 512) (i32.const 3072)) (i32.store (i32.const 516) (i32.const 1)) (i32.store8 (i32.const 520) (i32.const 0))
        (i32.store (i32.const 640) (i32.const 3072)) (i32.store (i32.const 644) (i32.const 1))
        (i32.store8 (i32.const 648) (i32.const 1)) (i32.store (i32.const 652) (i32.const 3072)) (i32.store (i32.const 656) (i32.const 1))
        (call $storage.apply (i64.load (i32.const 136)) (i32.const 512) (i32.const 1) (i32.const 640) (i32.const 1) (i32.const 256))
        (if (i32.load8_u (i32.const 256)) (then (unreachable)))
        (call $digit (i32.load8_u (i32.const 264)))",
    ));
    let desk = Arc::new(Desk::default());
    assert_eq!(call_with(&write, "note", options(&desk, all_grants())).await.unwrap().value, "failure:0");
    let entry = desk.stored.lock().unwrap()[&("notes".to_owned(), "n".to_owned())].clone();
    assert_eq!(entry, StorageEntry { value: b"note".to_vec(), version: 1 });
    assert_eq!(call(&once, options(&desk, all_grants())).await.unwrap().value, "failure:0", "committed");
    assert_eq!(call(&once, options(&desk, all_grants())).await.unwrap().value, "failure:1", "conflict");
}

#[tokio::test]
async fn what_needs_no_grant_works_without_any() {
    let plugin = prepare(&tool_with(
        "log.write progress.report clock.now clock.monotonic random.bytes config.get config.keys",
        r#"(data (i32.const 3072) "one\0atwo") (data (i32.const 3100) "colour")"#,
        "(call $log.write (i32.const 2) (i32.const 3072) (i32.const 7))
        (call $progress.report (i32.const 1) (i32.const 250) (i32.const 3072) (i32.const 3))
        (call $clock.now (i32.const 128))
        (if (i64.lt_u (i64.load (i32.const 128)) (i64.const 1700000000)) (then (unreachable)))
        (drop (call $clock.monotonic))
        (call $random.bytes (i32.const 64) (i32.const 160))
        (if (i32.ne (i32.load (i32.const 164)) (i32.const 64)) (then (unreachable)))
        (call $config.keys (i32.const 176))
        (if (i32.ne (i32.load (i32.const 180)) (i32.const 1)) (then (unreachable)))
        (call $config.get (i32.const 3100) (i32.const 6) (i32.const 256))
        (call $answer (i32.load (i32.const 260)) (i32.load (i32.const 264)))",
    ));
    let config = [("colour".to_owned(), "green".to_owned())].into();
    let desk = Arc::new(Desk { config, ..Desk::default() });
    let done = call(&plugin, options(&desk, CapabilityGrantSet::default())).await.unwrap();
    assert_eq!(done.value, "green");
    assert_eq!(*desk.lines.lock().unwrap(), [(LogLevel::Warn, "one two".to_owned())]);
    assert_eq!(*desk.reports.lock().unwrap(), [(Some(100), "one".to_owned())]);
    assert_eq!(done.usage.host_calls.len(), 7);
}

#[tokio::test]
async fn a_guest_that_gives_up_after_a_refusal_says_what_was_refused() {
    for ending in ["(call $failed (i32.const 3072) (i32.const 3))", "unreachable"] {
        let plugin = prepare(&tool_with(
            "storage.get",
            r#"(data (i32.const 3072) "key")"#,
            &format!("(call $storage.get (i64.const 5) (i32.const 3072) (i32.const 3) (i32.const 256)) {ending}"),
        ));
        let failed = call(&plugin, CallOptions::default()).await.unwrap_err();
        assert!(matches!(failed.error, PluginError::HostDenied { call: "storage.get", .. }), "{:?}", failed.error);
        assert_eq!(failed.usage.denials, 1);
    }
}
