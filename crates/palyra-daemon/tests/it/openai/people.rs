//! Runs that wait for a person: a stream stays open, a whole answer is not waited for without end.

use std::time::Duration;

use palyra_client::Client;
use palyra_client::api::{ApprovalView, DecideApprovalParams, ListApprovalsParams};
use palyra_common::{ApprovalDecision, ApprovalScope};
use serde_json::json;

use super::wire::{asking, documents, post, post_once, unchunked, with};
use crate::support::Place;

const WRITES: &str = r#"
[[turn]]
[[turn.call]]
tool = "palyra.fs.write"
arguments = { path = "made.txt", content = "one\n" }
[[turn]]
text = "Done."
"#;

fn place() -> Place {
    Place::new()
        .with_script(WRITES)
        .with("PALYRA_RUN_ASK_BEFORE", "palyra.fs.write")
        .with("PALYRA_OPENAI_APPROVAL_WAIT_SECONDS", "1")
}

async fn question(client: &Client) -> ApprovalView {
    for _ in 0..3000 {
        let listed = client.approvals(&ListApprovalsParams::default()).await.unwrap();
        if let Some(approval) = listed.approvals.into_iter().next() {
            return approval;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("nobody asks");
}

async fn allow(client: &Client) {
    let allow = DecideApprovalParams {
        decision: ApprovalDecision::Allow,
        scope: ApprovalScope::Once,
        minutes: None,
        reason: None,
    };
    let approval = question(client).await;
    client.decide_approval(approval.approval_id, &allow).await.unwrap();
}

#[tokio::test]
async fn a_whole_answer_is_asked_for_again_when_the_person_has_answered() {
    let place = place();
    let daemon = place.start().await;
    let waiting = post_once(&daemon, "k", "chat/completions", &asking("write it"));
    assert_eq!(waiting.refusal(), (409, "run_waits_for_person".to_owned()));
    assert!(waiting.head.contains("x-should-retry: false"), "{waiting:?}");
    let run_id = question(&daemon.client).await.run_id.unwrap().to_string();
    let message = waiting.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains(&run_id) && message.contains("Idempotency-Key"), "{message}");
    allow(&daemon.client).await;
    let answer = post_once(&daemon, "k", "chat/completions", &asking("write it"));
    assert_eq!(answer.json()["choices"][0]["message"]["content"], "Done.", "{answer:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_stays_open_while_a_person_is_asked() {
    let place = place();
    let daemon = std::sync::Arc::new(place.start().await);
    let asking = tokio::task::spawn_blocking({
        let daemon = std::sync::Arc::clone(&daemon);
        move || post(&daemon, "chat/completions", &with(asking("write it"), json!({ "stream": true })))
    });
    let approval = question(&daemon.client).await;
    allow(&daemon.client).await;
    let text = unchunked(&asking.await.unwrap());
    let comment = format!(": waiting for approval {}", approval.approval_id);
    assert!(text.contains(&comment), "{text}");
    let said: String = documents(&text)
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(said, "Done.");
}
