//! Guests that want grants they were not given.

use std::sync::Arc;
use std::time::Duration;

use palyra_plugins_runtime::{CallOptions, ChannelGrant, StorageGrant};

use super::{all_end_as_they_should, hostile};
use crate::harness::{Desk, all_grants, call, call_with, options, prepare, tool, tool_with};

/// Reads a number in decimal from the input into `$handle`.
const READ_NUMBER: &str = "(local $handle i64) (local $at i32)
    (loop $next
        (local.set $handle (i64.add (i64.mul (local.get $handle) (i64.const 10))
            (i64.sub (i64.load8_u (i32.add (local.get $input) (local.get $at))) (i64.const 48))))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br_if $next (i32.lt_u (local.get $at) (local.get $input_len))))";

#[tokio::test]
async fn guessing() {
    let guess = |first: &str, step: &str| {
        tool(
            "storage.get",
            &format!(
                "(local $handle i64) (local $n i32)
                (local.set $handle (i64.const {first}))
                (loop $next
                    (call $storage.get (local.get $handle) (i32.const 0) (i32.const 1) (i32.const 256))
                    (if (i32.eqz (i32.load8_u (i32.const 256))) (then unreachable))
                    (local.set $handle (i64.add (local.get $handle) (i64.const {step})))
                    (local.set $n (i32.add (local.get $n) (i32.const 1)))
                    (br_if $next (i32.lt_u (local.get $n) (i32.const 4000))))
                (call $digit (i32.load8_u (i32.const 264)))"
            ),
        )
    };
    let with_handle = |kind: &str, usage: &str| {
        tool(
            &format!("capabilities.{kind}-handle {usage}"),
            &format!(
                "(call $capabilities.{kind}-handle (i32.const 0) (i32.const 128))
                {}
                (call $digit (i32.load8_u (i32.const 264)))",
                match usage {
                    "storage.get" =>
                        "(call $storage.get (i64.load (i32.const 136)) (i32.const 0) (i32.const 1) (i32.const 256))",
                    "channel.send" =>
                        "(call $channel.send (i64.load (i32.const 136)) (i32.const 0) (i32.const 1) (i32.const 260))",
                    _ => "(call $secret-reveal.reveal (i64.load (i32.const 136)) (i32.const 260))",
                }
            ),
        )
    };
    all_end_as_they_should(vec![
        hostile("handles from zero", guess("0", "1"), "=failure:0"),
        hostile("handles from the top", guess("-1", "-1"), "=failure:0"),
        hostile("handles in steps", guess("1", "4294967297"), "=failure:0"),
        hostile("a request's handle for storage", with_handle("http", "storage.get"), "=failure:0"),
        hostile("a secret's handle for storage", with_handle("secret", "storage.get"), "=failure:0"),
        hostile("a storage handle for a channel", with_handle("storage", "channel.send"), "=failure:0"),
        hostile("a channel's handle for a secret", with_handle("channel", "secret-reveal.reveal"), "=failure:0"),
    ])
    .await;
}

#[tokio::test]
async fn a_handle_is_dead_after_its_call() {
    let tell = prepare(&tool(
        "capabilities.storage-handle",
        "(call $capabilities.storage-handle (i32.const 0) (i32.const 128)) (call $number (i64.load (i32.const 136)))",
    ));
    let reuse = prepare(&tool(
        "storage.get",
        &format!(
            "{READ_NUMBER}
            (call $storage.get (local.get $handle) (i32.const 0) (i32.const 1) (i32.const 256))
            (call $digit (i32.load8_u (i32.const 264)))"
        ),
    ));
    let desk = Arc::new(Desk::default());
    let mut seen = Vec::new();
    for _ in 0..10 {
        let handle = call(&tell, options(&desk, all_grants())).await.unwrap().value;
        assert!(handle.len() > 12, "{handle} could be guessed");
        let answer = call_with(&reuse, &handle, options(&desk, all_grants())).await.unwrap();
        assert_eq!((answer.value.as_str(), answer.usage.denials), ("failure:0", 1), "no grant");
        seen.push(handle);
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 10, "handles are drawn anew each time");
}

#[tokio::test]
async fn a_handle_of_a_call_at_the_same_time_is_worth_nothing() {
    // The first call tells its handle and then waits for a request that is never answered.
    let waiting = prepare(&tool_with(
        "capabilities.storage-handle capabilities.http-handle log.write http.send",
        r#"(data (i32.const 3072) "GET") (data (i32.const 3080) "https://api.example/path")"#,
        "(call $capabilities.storage-handle (i32.const 0) (i32.const 128))
        (drop (call $number (i64.load (i32.const 136))))
        (call $log.write (i32.const 1) (i32.load (i32.const 1028)) (i32.load (i32.const 1032)))
        (call $capabilities.http-handle (i32.const 0) (i32.const 128))
        (call $http.send (i64.load (i32.const 136)) (i32.const 3072) (i32.const 3) (i32.const 3080) (i32.const 24)
            (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 256))
        unreachable",
    ));
    let thief = prepare(&tool(
        "storage.get",
        &format!(
            "{READ_NUMBER}
            (call $storage.get (local.get $handle) (i32.const 0) (i32.const 1) (i32.const 256))
            (call $digit (i32.load8_u (i32.const 264)))"
        ),
    ));
    let desk = Arc::new(Desk { hangs: true, ..Desk::default() });
    let first = options(&desk, all_grants());
    let cancel = first.cancel.clone();
    let running = tokio::spawn(async move { call(&waiting, first).await });
    let handle = loop {
        if let Some((_, handle)) = desk.lines.lock().unwrap().pop() {
            break handle;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    let stolen = call_with(&thief, &handle, options(&desk, all_grants())).await.unwrap();
    assert_eq!(stolen.value, "failure:0");
    cancel.cancel();
    assert!(matches!(running.await.unwrap().unwrap_err().error, palyra_plugins_runtime::PluginError::Cancelled));
}

#[tokio::test]
async fn a_skill_reaches_its_own_space_alone() {
    let read = prepare(&tool_with(
        "capabilities.storage-handle storage.get",
        r#"(data (i32.const 3072) "../other/diary")"#,
        "(call $capabilities.storage-handle (i32.const 0) (i32.const 128))
        (call $storage.get (i64.load (i32.const 136)) (i32.const 3072) (i32.const 14) (i32.const 256))
        (call $digit (i32.load8_u (i32.const 264)))",
    ));
    let desk = Arc::new(Desk::default());
    let entry = palyra_plugins_runtime::StorageEntry { value: b"secret".to_vec(), version: 1 };
    desk.stored.lock().unwrap().insert(("other".to_owned(), "diary".to_owned()), entry);
    let mut grants = all_grants();
    grants.storage = vec![StorageGrant { name: "mine".to_owned(), max_bytes: 100, max_keys: 1 }];
    grants.channels = vec![ChannelGrant { name: "other".to_owned() }];
    let done = call(&read, CallOptions { grants, ..options(&desk, all_grants()) }).await.unwrap();
    assert_eq!(done.value, "failure:0", "nothing is there: the key is a key and no path");
}
