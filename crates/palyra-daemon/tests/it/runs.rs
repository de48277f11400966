//! Runs through the API: with the offline planner, with a script, and what survives a restart.

use palyra_client::api::{
    AbortRunParams, DecideApprovalParams, ListApprovalsParams, ListRunsParams, LoadSessionParams, ResumeRunParams,
    RunInputParams,
};
use palyra_client::api::{FileChangeKind, UndoAction};
use palyra_client::{Client, Follow};
use palyra_common::InputMode;
use palyra_common::{
    ApprovalDecision, ApprovalScope, RunLifecyclePhase, RunStreamBody, TerminationReason, ToStableError as _,
};

use crate::support::{Place, code};

const WRITES: &str = r#"
[[turn]]
text = ["Writing ", "it."]
[[turn.call]]
tool = "palyra.fs.write"
arguments = { path = "made.txt", content = "one\n" }
[[turn]]
text = "Done."
"#;

const SLOW: &str = r#"
[[turn]]
text = ["thinking", " for", " a", " long", " time"]
delay_ms = 20000
"#;

#[tokio::test]
async fn the_offline_planner_finishes_a_task() {
    let place = Place::new();
    place.write("notes.md", "hello\n");
    let daemon = place.start().await;
    let run = daemon.create("list the files").await;
    assert!(run.last_seq >= 1);
    let events = daemon.follow(run.run_id, 1).await;
    let positions: Vec<_> = events.iter().map(|event| event.seq).collect();
    assert_eq!(positions, (1..=events.len() as u64).collect::<Vec<_>>());
    let named = |event: &palyra_common::RunStreamEvent| match &event.body {
        RunStreamBody::ToolResult(result) => result.ok && result.content.contains("notes.md"),
        _ => false,
    };
    assert!(events.iter().any(named), "{events:?}");

    let detail = daemon.client.run(run.run_id).await.unwrap();
    assert_eq!(detail.run.phase, RunLifecyclePhase::Completed, "{detail:?}");
    assert_eq!(detail.run.reason, Some(TerminationReason::FinalAnswer));
    assert_eq!(detail.run.last_seq, events.len() as u64);
    assert!(detail.answer.is_some());
    assert!(detail.changes.is_empty());

    // Any position is a place to go on from.
    let middle = events.len() as u64 / 2;
    assert_eq!(daemon.follow(run.run_id, middle).await, events[middle as usize - 1..]);
    let mut stored = daemon.client.tape(run.run_id, middle, Follow::No);
    let mut read = Vec::new();
    while let Some(event) = stored.next().await.unwrap() {
        read.push(event);
    }
    assert_eq!(read, events[middle as usize - 1..]);
    assert!(daemon.follow(run.run_id, events.len() as u64 + 1).await.is_empty());

    let replay = daemon.client.replay_run(run.run_id).await.unwrap();
    assert!(replay.identical, "{replay:?}");
    assert_eq!(code(daemon.client.abort_run(run.run_id, &AbortRunParams::default()).await), "run_wrong_phase");
}

#[tokio::test]
async fn a_written_file_is_shown_and_taken_back() {
    let place = Place::new().with_script(WRITES);
    let daemon = place.start().await;
    let run = daemon.create("write it").await;
    daemon.follow(run.run_id, 1).await;
    assert_eq!(std::fs::read_to_string(place.workspace().join("made.txt")).unwrap(), "one\n");
    let detail = daemon.client.run(run.run_id).await.unwrap();
    assert_eq!(detail.answer.as_deref(), Some("Done."));
    assert_eq!(detail.changes.len(), 1);
    assert_eq!((detail.changes[0].path.as_str(), detail.changes[0].kind), ("made.txt", FileChangeKind::Created));

    let undone = daemon.client.undo_run(run.run_id).await.unwrap();
    assert_eq!(undone.files.len(), 1);
    assert_eq!(undone.files[0].action, UndoAction::Removed);
    assert!(!place.workspace().join("made.txt").exists());
    assert!(daemon.client.run(run.run_id).await.unwrap().run.undone);
    assert_eq!(code(daemon.client.undo_run(run.run_id).await), "cannot_undo");
}

#[tokio::test]
async fn lists_have_pages_and_sessions_have_runs() {
    let place = Place::new().with_script("[[turn]]\ntext = \"yes\"\n");
    let daemon = place.start().await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        let mut task = daemon.task("say yes");
        task.session_key = Some("mine".to_owned());
        let run = daemon.client.create_run(&task).await.unwrap();
        daemon.follow(run.run_id, 1).await;
        ids.push(run.run_id);
    }
    let other = daemon.create("say yes").await;
    daemon.follow(other.run_id, 1).await;

    let session_id = daemon.client.run(ids[0]).await.unwrap().run.session_id;
    let mut listed = Vec::new();
    let mut before = None;
    loop {
        let params = ListRunsParams { session_id: Some(session_id), limit: Some(2), before, ..Default::default() };
        let page = daemon.client.runs(&params).await.unwrap();
        assert!(page.runs.len() <= 2);
        assert!(page.runs.iter().all(|run| run.last_seq > 1));
        listed.extend(page.runs.into_iter().map(|run| run.run_id));
        before = page.next_before;
        if before.is_none() {
            break;
        }
    }
    listed.reverse();
    assert_eq!(listed, ids);
    let page = async |limit, before| {
        daemon.client.session(session_id, &LoadSessionParams { limit: Some(limit), before }).await
    };
    let (mut loaded, mut before) = (Vec::new(), None);
    loop {
        let detail = page(2, before).await.unwrap();
        assert!(detail.runs.len() <= 2);
        assert_eq!(detail.session.run_count, 5);
        loaded.splice(0..0, detail.runs.into_iter().map(|run| run.run_id));
        before = detail.next_before;
        if before.is_none() {
            break;
        }
    }
    assert_eq!(loaded, ids);
    assert_eq!(code(page(0, None).await), "request_invalid");
    let detail = daemon.client.session(session_id, &LoadSessionParams::default()).await.unwrap();
    assert_eq!(detail.session.session_key.as_deref(), Some("mine"));
    assert_eq!(detail.session.run_count, 5);
    assert_eq!(detail.runs.iter().map(|run| run.run_id).collect::<Vec<_>>(), ids);
    assert_eq!(daemon.client.sessions(&Default::default()).await.unwrap().sessions.len(), 2);
}

#[tokio::test]
async fn the_same_key_gives_the_same_run() {
    let place = Place::new();
    let daemon = place.start().await;
    let mut task = daemon.task("list the files");
    task.idempotency_key = Some("once".to_owned());
    let first = daemon.client.create_run(&task).await.unwrap();
    daemon.follow(first.run_id, 1).await;
    assert_eq!(daemon.client.create_run(&task).await.unwrap().run_id, first.run_id);
    task.prompt = "list the files again".to_owned();
    assert_eq!(code(daemon.client.create_run(&task).await), "idempotency_conflict");
}

#[tokio::test]
async fn a_run_can_be_held_steered_and_ended() {
    let place = Place::new().with_script(SLOW);
    let daemon = place.start().await;
    let run = daemon.create("think").await;
    let health = daemon.client.health().await.unwrap();
    let runs = health.components.iter().find(|component| component.component == "runs").unwrap();
    assert_eq!(runs.summary, "1 unfinished");
    let paused = daemon.client.pause_run(run.run_id).await.unwrap();
    assert_eq!(paused.phase, RunLifecyclePhase::Paused);
    let resumed = daemon.client.resume_run(run.run_id, &ResumeRunParams::default()).await.unwrap();
    assert_eq!(resumed.phase, RunLifecyclePhase::Running);
    let input = RunInputParams { text: "and now this".to_owned(), mode: InputMode::FollowUp };
    daemon.client.send_input(run.run_id, &input).await.unwrap();
    let reason = AbortRunParams { reason: Some("enough".to_owned()) };
    let aborted = daemon.client.abort_run(run.run_id, &reason).await.unwrap();
    assert_eq!(aborted.phase, RunLifecyclePhase::Aborted);
    assert_eq!(aborted.reason, Some(TerminationReason::Cancellation));
    let events = daemon.follow(run.run_id, 1).await;
    assert!(events.last().unwrap().is_terminal());
}

#[tokio::test]
async fn a_question_survives_a_restart_and_is_answered() {
    let place = Place::new().with_script(WRITES).with("PALYRA_RUN_ASK_BEFORE", "palyra.fs.write");
    let daemon = place.start().await;
    let run = daemon.create("write it").await;
    let pending = wait_for_question(&daemon.client).await;
    assert_eq!(pending.run_id, Some(run.run_id));
    assert_eq!(pending.tool.as_deref(), Some("palyra.fs.write"));
    daemon.kill();

    let daemon = place.start().await;
    let again = wait_for_question(&daemon.client).await;
    assert_eq!(again.approval_id, pending.approval_id);
    assert!(!place.workspace().join("made.txt").exists());
    let allow = DecideApprovalParams {
        decision: ApprovalDecision::Allow,
        scope: ApprovalScope::Once,
        minutes: None,
        reason: None,
    };
    daemon.client.decide_approval(again.approval_id, &allow).await.unwrap();
    daemon.follow(run.run_id, 1).await;
    assert!(place.workspace().join("made.txt").exists());
    // Whoever comes second hears what was decided.
    let late = daemon.client.decide_approval(again.approval_id, &allow).await.unwrap_err().to_stable();
    assert_eq!(late.code, "approval_closed");
    assert!(late.message.contains("was already decided: allow by uid:"), "{late:?}");
    let decided =
        ListApprovalsParams { run_id: Some(run.run_id), state: Some("decided".parse().unwrap()), ..Default::default() };
    let decided = daemon.client.approvals(&decided).await.unwrap().approvals;
    let answer = decided[0].answer.as_ref().unwrap();
    assert_eq!(answer.decision, ApprovalDecision::Allow);
    assert!(answer.by.starts_with("uid:"), "{answer:?}");
}

async fn wait_for_question(client: &Client) -> palyra_client::api::ApprovalView {
    for _ in 0..3000 {
        let listed = client.approvals(&ListApprovalsParams::default()).await.unwrap();
        if let Some(approval) = listed.approvals.into_iter().next() {
            return approval;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("nobody asks");
}
