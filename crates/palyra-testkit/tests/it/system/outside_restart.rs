//! Outside servers after a restart: runs that are resumed and calls that were approved before have the tools that they had, and whoever has to do without one is told.

use std::time::Duration;

use palyra_common::{RunLifecyclePhase, RunStreamBody, RunStreamEvent};
use serde_json::json;

use super::outside::{daemon, sent, with_server};
use super::{call, finish, task, wait_for_phase, workspace};

/// How long a server takes to start that is slower than a run waits: 5 s.
const SLOW_START: &str = "8";

fn results_of<'a>(events: &'a [RunStreamEvent], tool: &str) -> Vec<&'a palyra_common::ToolResult> {
    let of_tool = |event: &'a RunStreamEvent| match &event.body {
        RunStreamBody::ToolResult(result) if result.tool == tool => Some(result),
        _ => None,
    };
    events.iter().filter_map(of_tool).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_approved_after_a_restart_reaches_its_server() {
    let script = json!({ "turn": [
        call("mcp.mail.send_mail", json!({ "to": "ada@example.org", "body": "hello" })),
        { "text": "done" },
    ] });
    let (context, out) = with_server(&script);
    let mut daemon = daemon(&context, script).await;
    let place = workspace();
    let run = daemon.client().create_run(&task("answer the mail", place.path())).await.unwrap();
    wait_for_phase(&daemon.client(), run.run_id, RunLifecyclePhase::WaitingForApproval).await;
    let before = daemon.client().run(run.run_id).await.unwrap().run.last_seq;
    daemon.kill9().unwrap();
    daemon.restart().await.unwrap();
    let waiting = daemon.client().run(run.run_id).await.unwrap();
    assert_eq!(waiting.run.last_seq, before, "a run that waits needs no record of the restart");
    let (detail, events) = finish(&daemon.client(), run.run_id).await;
    assert_eq!(detail.run.phase, RunLifecyclePhase::Completed);
    let results = results_of(&events, "mcp.mail.send_mail");
    assert!(results.iter().all(|result| result.ok), "{results:?}");
    assert_eq!(sent(&out), 1);
    daemon.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_is_resumed_after_a_restart_has_the_tools_of_its_servers() {
    let mut thinking = call("mcp.mail.read_mail", json!({}));
    thinking["delay_ms"] = json!(1500);
    let script = json!({ "turn": [thinking, { "text": "done" }] });
    let (context, _) = with_server(&script);
    let mut daemon = daemon(&context, script).await;
    let place = workspace();
    let run = daemon.client().create_run(&task("read the mail", place.path())).await.unwrap();
    wait_for_phase(&daemon.client(), run.run_id, RunLifecyclePhase::Running).await;
    daemon.kill9().unwrap();
    daemon.restart().await.unwrap();
    let (detail, events) = finish(&daemon.client(), run.run_id).await;
    let results = results_of(&events, "mcp.mail.read_mail");
    assert!(matches!(results.as_slice(), [result] if result.ok), "{results:?}");
    assert!(detail.unavailable_tools.is_empty(), "{detail:?}");
    daemon.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_dies_in_the_middle_of_a_call_leaves_the_outcome_to_a_person() {
    let script = json!({ "turn": [
        call("mcp.mail.send_mail", json!({ "to": "ada@example.org", "body": "hello" })),
        { "text": "done" },
    ] });
    let (context, out) = with_server(&script);
    std::fs::write(out.with_extension("die"), "").unwrap();
    let daemon = daemon(&context, script).await;
    let (client, place) = (daemon.client(), workspace());
    let run = client.create_run(&task("answer the mail", place.path())).await.unwrap();
    // Whoever follows allows the call and does not let it run again.
    let (detail, events) = finish(&client, run.run_id).await;
    let asked: Vec<String> = events
        .iter()
        .filter_map(|event| match &event.body {
            RunStreamBody::ToolApprovalRequest(request) => Some(request.reason.clone()),
            _ => None,
        })
        .collect();
    assert!(asked.last().is_some_and(|reason| reason.contains("outcome is unknown")), "{asked:?}");
    let [.., not_run] = detail.not_run.as_slice() else { panic!("{detail:?}") };
    assert_eq!(not_run.error.code, "outcome_unknown");
    assert_eq!(sent(&out), 1, "nobody runs it again unasked");
    daemon.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_says_which_server_it_does_without_and_the_server_goes_on_starting() {
    let script = json!({ "turn": [call("mcp.mail.read_mail", json!({})), { "text": "done" }] });
    let (context, out) = with_server(&script);
    std::fs::write(out.with_extension("slow"), SLOW_START).unwrap();
    let daemon = daemon(&context, script).await;
    let (client, place) = (daemon.client(), workspace());
    let run = client.create_run(&task("read the mail", place.path())).await.unwrap();
    let (detail, events) = finish(&client, run.run_id).await;
    let [missing] = detail.unavailable_tools.as_slice() else { panic!("{detail:?}") };
    assert_eq!(missing.source, "mcp:mail");
    assert!(missing.reason.contains("had not listed its tools"), "{missing:?}");
    let is_told = |event: &RunStreamEvent| matches!(&event.body, RunStreamBody::JournalEvent(event) if event.kind == "tools.unavailable");
    assert!(events.iter().any(is_told), "{events:#?}");
    let page = context.run(["runs", "show", &run.run_id.to_string()]).unwrap();
    assert!(page.stdout.contains("tools not available\n  mcp:mail: "), "{page}");
    // Nobody waits for it any more, and yet it comes up: the next run has it.
    for _ in 0..10 {
        let next = client.create_run(&task("read the mail", place.path())).await.unwrap();
        let (detail, events) = finish(&client, next.run_id).await;
        if results_of(&events, "mcp.mail.read_mail").iter().any(|result| result.ok) {
            assert!(detail.unavailable_tools.is_empty(), "{detail:?}");
            return daemon.finish().await.unwrap();
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("the server never came up\n{}", daemon.log());
}
