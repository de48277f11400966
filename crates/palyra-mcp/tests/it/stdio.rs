//! Programs of this machine.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use palyra_mcp::{McpError, McpOptions, McpProgress, Sent, Withheld};
use serde_json::json;

use crate::place::{Place, call, call_of, echo_works, options};

#[tokio::test]
async fn every_revision_of_the_protocol_is_spoken() {
    for (greeting, revision) in [("2026", "2026-07-28"), ("2025", "2025-11-25"), ("2024", "2024-11-05")] {
        let place = Place::new(options());
        let server = place.pinned(greeting).await;
        let outcome = call(&server, "echo", json!({ "text": "hello" })).await.unwrap();
        assert_eq!(outcome.text, "hello");
        assert_eq!(outcome.structured.unwrap(), json!({ "said": "hello", "effect": "effect-1" }));
        assert!(!outcome.is_error);
        let status = server.status();
        assert!(status.connected);
        assert_eq!(status.protocol.as_deref(), Some(revision));
        assert_eq!(status.introduced_as.as_deref(), Some("played 1"));
        server.shutdown().await;
        assert_eq!(place.starts(), 1, "{greeting}");
    }
}

#[tokio::test]
async fn a_server_that_ignores_what_it_does_not_know_is_greeted_the_older_way() {
    let place = Place::new(McpOptions { connect_timeout: Duration::from_secs(2), ..options() });
    let server = place.pinned("deaf").await;
    echo_works(&server).await;
    assert_eq!(server.status().protocol.as_deref(), Some("2025-11-25"));
    assert_eq!(place.starts(), 1);
}

#[tokio::test]
async fn the_list_is_read_to_its_last_page() {
    let place = Place::new(options());
    let tools = place.add("2025").list_tools().await.unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert!(names.contains(&"echo") && names.contains(&"more"), "{names:?}");
}

#[tokio::test]
async fn nothing_is_offered_before_the_operator_agreed() {
    let place = Place::new(options());
    let server = place.add("2025");
    let set = server.tools().await.unwrap();
    assert!(set.offered.is_empty());
    assert!(set.withheld.iter().all(|tool| tool.why == Withheld::New));
    let refused = call(&server, "echo", json!({ "text": "hello" })).await.unwrap_err();
    assert_eq!((refused.code().as_str(), refused.sent()), ("mcp_tool_withheld", Sent::Never));
}

#[tokio::test]
async fn a_list_that_changes_withholds_what_changed() {
    for greeting in ["2025", "2026"] {
        let place = Place::new(options());
        let server = place.pinned(greeting).await;
        echo_works(&server).await;
        let mut changes = server.changes();
        changes.mark_unchanged();
        call(&server, "change", json!({})).await.unwrap();
        tokio::time::timeout(Duration::from_secs(20), changes.changed()).await.expect("news of the list").unwrap();
        let refused = call(&server, "echo", json!({ "text": "hello" })).await.unwrap_err();
        assert_eq!(refused.code(), "mcp_tool_withheld", "{greeting}: {refused}");
        let set = server.tools().await.unwrap();
        let withheld: Vec<_> = set.withheld.iter().map(|tool| (tool.description.name.as_str(), tool.why)).collect();
        assert_eq!(withheld, [("echo", Withheld::Changed), ("newcomer", Withheld::New)]);
        // What did not change still works, and agreeing again brings the rest back.
        call(&server, "environment", json!({})).await.unwrap();
        place.registry.pin(server.name(), &server.list_tools().await.unwrap()).unwrap();
        echo_works(&server).await;
        call(&server, "environment", json!({})).await.unwrap();
    }
}

#[tokio::test]
async fn the_program_sees_what_its_entry_names_and_nothing_else() {
    let place = Place::new(options());
    let server = place.pinned("2025").await;
    let outcome = call(&server, "environment", json!({})).await.unwrap();
    assert_eq!(outcome.text, "PATH,PLAYED_SECRET in /");
}

#[tokio::test]
async fn arguments_that_the_schema_does_not_name_do_not_leave() {
    let place = Place::new(options());
    let server = place.pinned("2025").await;
    for arguments in [json!({ "text": "hello", "bcc": "x" }), json!(["text"]), json!("text")] {
        let refused = call(&server, "echo", arguments).await.unwrap_err();
        assert_eq!((refused.code().as_str(), refused.sent()), ("mcp_arguments_invalid", Sent::Never));
    }
    let missing = call(&server, "nowhere", json!({})).await.unwrap_err();
    assert_eq!(missing.code(), "mcp_tool_not_found");
}

#[tokio::test]
async fn a_server_that_dies_fails_the_call_and_is_started_again() {
    let place = Place::new(options());
    let server = place.pinned("2025").await;
    let died = call(&server, "die", json!({})).await.unwrap_err();
    assert_eq!((died.code().as_str(), died.sent()), ("mcp_server_disconnected", Sent::Perhaps));
    assert!(died.to_string().contains("exited with code 7"), "{died}");
    let words = server.status().last_words;
    assert!(words.contains("last words, with the secret [redacted]"), "{words}");
    echo_works(&server).await;
    assert_eq!(place.starts(), 2);
}

#[tokio::test]
async fn a_slow_call_ends_at_its_deadline_and_the_server_lives_on() {
    let place = Place::new(options());
    let server = place.pinned("2025").await;
    let mut slow = call_of("wait", json!({ "milliseconds": "3000" }));
    slow.deadline = Duration::from_millis(700);
    let late = server.call(slow).await.unwrap_err();
    assert_eq!((late.code().as_str(), late.sent()), ("mcp_call_timeout", Sent::Perhaps));
    echo_works(&server).await;
    assert_eq!(place.starts(), 1);
    // What a program writes to standard error arrives when it arrives.
    let told = async {
        while !server.status().last_words.contains("told to stop") {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(20), told).await.is_ok(), "{}", server.status().last_words);
}

#[tokio::test]
async fn a_server_that_goes_silent_is_given_up() {
    let place = Place::new(options());
    let server = place.pinned("2025").await;
    for tool in ["deaf", "echo"] {
        let mut silent = call_of(tool, json!({}));
        silent.deadline = Duration::from_millis(300);
        assert_eq!(server.call(silent).await.unwrap_err().code(), "mcp_call_timeout");
    }
    echo_works(&server).await;
    assert_eq!(place.starts(), 2);
}

#[tokio::test]
async fn a_cancelled_call_returns_and_the_server_is_told() {
    let place = Place::new(options());
    let server = place.pinned("2025").await;
    let waiting = call_of("wait", json!({ "milliseconds": "2000" }));
    let cancel = waiting.cancel.clone();
    let task = tokio::spawn({
        let server = Arc::clone(&server);
        async move { server.call(waiting).await }
    });
    // The request has left once the server says that it is busy with it; a call cancelled before that is told apart below.
    while !server.status().last_words.contains("waiting \"2000\"") {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    cancel.cancel();
    let cancelled = task.await.unwrap().unwrap_err();
    assert_eq!((cancelled.code().as_str(), cancelled.sent()), ("mcp_call_cancelled", Sent::Perhaps));
    echo_works(&server).await;
    // Its words come by another way than its answers, and may take longer.
    for _ in 0..500 {
        if server.status().last_words.contains("told to stop: \"cancelled\"") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(server.status().last_words.contains("told to stop: \"cancelled\""), "{}", server.status().last_words);

    let early = call_of("wait", json!({ "milliseconds": "2000" }));
    early.cancel.cancel();
    let cancelled = server.call(early).await.unwrap_err();
    assert_eq!((cancelled.code().as_str(), cancelled.sent()), ("mcp_call_cancelled", Sent::Never));
}

#[tokio::test]
async fn cancelling_while_connecting_does_not_wait_for_the_server() {
    let place = Place::new(McpOptions { connect_timeout: Duration::from_secs(600), ..options() });
    let server = place.add("mute");
    let waiting = call_of("echo", json!({}));
    let cancel = waiting.cancel.clone();
    let task = tokio::spawn(async move { server.call(waiting).await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    cancel.cancel();
    assert_eq!(task.await.unwrap().unwrap_err().code(), "mcp_call_cancelled");
}

#[tokio::test]
async fn an_answer_beyond_the_limit_fails_only_its_own_call() {
    let place = Place::new(options());
    let server = place.pinned("2025").await;
    let fits = call(&server, "huge", json!({ "bytes": "500000" })).await.unwrap();
    assert_eq!(fits.text.len(), 500_000);
    let refused = call(&server, "huge", json!({ "bytes": "3000000" })).await.unwrap_err();
    assert_eq!((refused.code().as_str(), refused.sent()), ("mcp_output_too_large", Sent::Perhaps));
    echo_works(&server).await;
    assert_eq!(place.starts(), 1);
}

#[tokio::test]
async fn a_server_that_babbles_or_floods_is_cut_off() {
    for tool in ["babble", "flood"] {
        let place = Place::new(options());
        let server = place.pinned("2025").await;
        let cut = call(&server, tool, json!({})).await.unwrap_err();
        assert_eq!(cut.code(), "mcp_server_disconnected", "{tool}: {cut}");
        echo_works(&server).await;
        assert_eq!(place.starts(), 2, "{tool}");
    }
}

#[tokio::test]
async fn progress_is_passed_on_within_bounds() {
    let place = Place::new(options());
    let server = place.pinned("2025").await;
    let seen = Arc::new(Mutex::new(Vec::<McpProgress>::new()));
    let mut call = call_of("progress", json!({}));
    let sink = Arc::clone(&seen);
    call.progress = Some(Arc::new(move |report| sink.lock().unwrap().push(report)));
    assert_eq!(server.call(call).await.unwrap().text, "done");
    let seen = seen.lock().unwrap();
    // The interval of these tests is an hour: of a thousand reports one gets through.
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].total, Some(1000.0));
    assert_eq!(seen[0].message.as_ref().unwrap().chars().count(), 500);
}

#[tokio::test]
async fn what_a_server_asks_of_its_client_is_refused() {
    let place = Place::new(options());
    let server = place.pinned("2025").await;
    let outcome = call(&server, "ask", json!({})).await.unwrap();
    assert_eq!(outcome.text, "901: -32601, 902: -32601, 903: -32601");
    let refused = call(&server, "more", json!({})).await.unwrap_err();
    assert_eq!(refused.code(), "mcp_input_refused");
}

#[tokio::test]
async fn failures_and_odd_parts_are_told() {
    let place = Place::new(options());
    let server = place.pinned("2025").await;
    let failed = call(&server, "fail", json!({})).await.unwrap();
    assert!(failed.is_error);
    assert_eq!(failed.text, "out of paper");
    let malformed = call(&server, "malformed", json!({})).await.unwrap_err();
    assert_eq!(malformed.code(), "mcp_answer_malformed");
    let parts = call(&server, "parts", json!({})).await.unwrap();
    assert_eq!(parts.text, "before\n[image image/png, 3 bytes]\n[resource file:///a]\ninside\n[link file:///b `b`]");
}

#[tokio::test]
async fn structure_that_breaks_its_promise_is_only_text() {
    let place = Place::new(options());
    let server = place.pinned("2025").await;
    let kept = call(&server, "promise", json!({ "value": "7" })).await.unwrap();
    assert_eq!((kept.structured, kept.text.as_str()), (Some(json!({ "value": 7 })), r#"{"value":7}"#));
    let broken = call(&server, "promise", json!({ "value": "\"eve\"" })).await.unwrap();
    assert_eq!((broken.structured, broken.text.as_str()), (None, r#"{"value":"eve"}"#));
}

#[tokio::test]
async fn a_server_that_cannot_be_had_is_left_alone_for_a_while() {
    let options = McpOptions {
        connect_timeout: Duration::from_millis(500),
        first_backoff: Duration::from_secs(3600),
        last_backoff: Duration::from_secs(3600),
        ..options()
    };
    for (greeting, code) in
        [("mute", "mcp_connect_timeout"), ("quits", "mcp_connect_failed"), ("babbles", "mcp_connect_failed")]
    {
        let place = Place::new(McpOptions { ..options.clone() });
        let server = place.add(greeting);
        let first = server.tools().await.unwrap_err();
        assert_eq!((first.code().as_str(), first.sent()), (code, Sent::Never), "{greeting}: {first}");
        let second = call(&server, "echo", json!({})).await.unwrap_err();
        assert!(matches!(&second, McpError::Unavailable { .. }), "{greeting}: {second}");
        assert_eq!(place.starts(), 1, "{greeting}");
        let status = server.status();
        assert!(status.failures == 1 && status.last_words.contains("played server starts"), "{greeting}: {status:?}");
    }
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let place = Place::new(options());
    let config = palyra_mcp::ServerConfig::stdio(palyra_mcp::StdioConfig {
        command: "/nowhere/at/all".to_owned(),
        args: Vec::new(),
        env: Vec::new(),
        cwd: None,
    });
    let server = place.registry.add(&crate::place::played(), &config).unwrap();
    let error = server.tools().await.unwrap_err();
    assert_eq!(error.code(), "mcp_server_start_failed");
    assert!(error.to_string().contains("/nowhere/at/all"), "{error}");
}

fn runs(pid: &str) -> bool {
    // A process that has ended but was not waited for by its parent no longer runs.
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[tokio::test]
async fn no_process_stays_behind() {
    for orderly in [true, false] {
        let place = Place::new(options());
        let server = place.pinned("2025").await;
        let family = call(&server, "family", json!({})).await.unwrap().text;
        let pids: Vec<&str> = family.split(' ').collect();
        assert!(pids.iter().all(|pid| runs(pid)), "{family}");
        if orderly {
            server.shutdown().await;
        }
        drop((server, place));
        for _ in 0..500 {
            if !pids.iter().any(|pid| runs(pid)) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(!pids.iter().any(|pid| runs(pid)), "{family}");
    }
}
