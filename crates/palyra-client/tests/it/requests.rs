//! Each method sends the request that the contract names.

use palyra_client::api::{
    AbortRunParams, BackupJournalParams, DecideApprovalParams, ListRunsParams, RunInputParams, VerifyLine,
};
use palyra_common::InputMode;
use palyra_common::{ApprovalDecision, ApprovalId, ApprovalScope, RunId, RunLifecyclePhase};

use crate::support::{Ending, FakeDaemon, RUN, json, run_view, stream};

#[tokio::test]
async fn methods_paths_queries_and_bodies() {
    let daemon = FakeDaemon::start(|_, request| match request.line.split('?').next().unwrap() {
        "GET /api/v1/runs" => json("200 OK", &serde_json::json!({ "runs": [run_view("running", 3)] })),
        line if line.contains("/decide") => {
            let approval = serde_json::json!({ "approval_id": ApprovalId::from_u128(3), "subject": "tool", "risk": "low",
                "summary": "write", "reason": "asked", "requested_at": 7 });
            json("200 OK", &serde_json::json!({ "approval": approval, "run": run_view("running", 3) }))
        }
        line if line.starts_with("GET /api/v1/runs HTTP") => panic!("the query is missing"),
        _ => json("200 OK", &run_view("running", 3)),
    });
    let client = daemon.client();
    let id = RunId::from_u128(RUN);
    let params = ListRunsParams { phase: Some(RunLifecyclePhase::Running), limit: Some(5), ..Default::default() };
    assert_eq!(client.runs(&params).await.unwrap().runs[0].run_id, id);
    client.abort_run(id, &AbortRunParams { reason: Some("enough".to_owned()) }).await.unwrap();
    client.pause_run(id).await.unwrap();
    client.resume_run(id, &palyra_client::api::ResumeRunParams::default()).await.unwrap();
    let input = RunInputParams { text: "also".to_owned(), mode: InputMode::FollowUp };
    client.send_input(id, &input).await.unwrap();
    let decision = DecideApprovalParams {
        decision: ApprovalDecision::Allow,
        scope: ApprovalScope::Once,
        minutes: None,
        reason: None,
    };
    assert_eq!(client.decide_approval(ApprovalId::from_u128(3), &decision).await.unwrap().run.unwrap().run_id, id);

    let sent: Vec<String> =
        daemon.received().iter().map(|request| format!("{} {}", request.line, request.body)).collect();
    let approval = ApprovalId::from_u128(3);
    assert_eq!(
        sent,
        [
            "GET /api/v1/runs?limit=5&phase=running HTTP/1.1 ".to_owned(),
            format!(r#"POST /api/v1/runs/{id}/abort HTTP/1.1 {{"reason":"enough"}}"#),
            format!("POST /api/v1/runs/{id}/pause HTTP/1.1 {{}}"),
            format!("POST /api/v1/runs/{id}/resume HTTP/1.1 {{}}"),
            format!(r#"POST /api/v1/runs/{id}/input HTTP/1.1 {{"text":"also","mode":"follow_up"}}"#),
            format!(r#"POST /api/v1/approvals/{approval}/decide HTTP/1.1 {{"decision":"allow","scope":"once"}}"#),
        ]
    );
    let head = daemon.received()[1].head.to_ascii_lowercase();
    assert!(head.contains("content-type: application/json") && !head.contains("authorization"), "{head}");
}

#[tokio::test]
async fn verification_gives_progress_and_then_the_report() {
    let body = concat!(
        "{\"progress\":{\"done\":10,\"total\":20}}\n\n",
        "{\"report\":{\"records\":20,\"segments\":0,\"checkpoints\":1,\"problems\":[",
        "{\"position\":\"record 4\",\"code\":\"hash_mismatch\",\"message\":\"changed\"}]}}\n"
    );
    let daemon = FakeDaemon::start(move |_, _| stream(body, &Ending::Proper));
    let mut lines = daemon.client().journal_verify().await.unwrap();
    assert!(matches!(lines.next().await.unwrap(), Some(VerifyLine::Progress(progress)) if progress.total == 20));
    let Some(VerifyLine::Report(report)) = lines.next().await.unwrap() else { panic!("no report") };
    assert_eq!(report.problems[0].position, "record 4");
    assert!(lines.next().await.unwrap().is_none());
}

#[tokio::test]
async fn a_deep_state_root_is_reached_too() {
    let daemon = FakeDaemon::start_deep(|_, _| {
        json("200 OK", &serde_json::json!({ "dest": "/b", "records": 3, "segments": 0, "artifacts": 1, "bytes": 9 }))
    });
    let params = BackupJournalParams { dest: "/b".to_owned() };
    assert_eq!(daemon.client().journal_backup(&params).await.unwrap().records, 3);
}
