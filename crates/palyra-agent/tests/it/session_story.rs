//! Telling a session's story: export, account, and summaries of what was said.

use palyra_agent::{NewRun, SessionEventKind, SessionExport};
use palyra_common::{ApprovalDecision, RunLifecyclePhase, RunStreamBody, SessionId, ToStableError as _, ToolVerdict};

use crate::support::{Bench, Setup, answer, is_phase};

const WRITE: &str = r##"
[[script]]
when = "write"
[[script.turn]]
[[script.turn.call]]
tool = "palyra.fs.write"
arguments = { path = "a.md", content = "```\n# not a heading of ours\n" }
[[script.turn]]
text = "# Written\n\n```\nall of it\n```"
[[script]]
[[script.turn]]
text = "Answer to "
echo = "user"
"##;

async fn written() -> (Bench, SessionId) {
    let mut setup = Setup::script(WRITE);
    setup.ask_before = vec!["palyra.fs.write".into()];
    let bench = setup.start().await;
    let (session, _) = bench.engine.resolve_session("ada", "s", Some("`title` # one".into())).await.unwrap();
    let new = NewRun { session_id: Some(session.session_id), owner: Some("local".into()), ..bench.task("write it") };
    let run = bench.engine.create_run(new).await.unwrap();
    let events = bench.follow_until(run.run_id, is_phase(RunLifecyclePhase::WaitingForApproval)).await;
    let asked = events.iter().find_map(|event| match &event.body {
        RunStreamBody::ToolApprovalRequest(request) => Some(request.approval_id),
        _ => None,
    });
    bench.engine.decide_approval(asked.unwrap(), answer(ApprovalDecision::Allow)).await.unwrap();
    bench.finish(run.run_id).await;
    bench.engine.rename_session(session.session_id, "renamed".into(), "bob", None).await.unwrap();
    (bench, session.session_id)
}

#[tokio::test]
async fn an_export_holds_what_was_said_decided_and_done() {
    let (bench, session) = written().await;
    let export = bench.engine.export_session(session).await.unwrap();
    let run = &export.runs[0];
    assert_eq!((run.prompt.as_str(), run.owner.as_str()), ("write it", "local"));
    assert!(run.answer.as_ref().unwrap().starts_with("# Written"));
    let call = &run.calls[0];
    assert_eq!((call.tool.as_str(), call.verdict), ("palyra.fs.write", Some(ToolVerdict::NeedsApproval)));
    assert!(call.outcome.as_ref().unwrap().error.is_none());
    assert_eq!(run.approvals[0].decision, Some(ApprovalDecision::Allow));
    assert_eq!((run.changes[0].path.as_str(), run.changes[0].before), ("a.md", None));
    let json = serde_json::to_string(&export).unwrap();
    assert_eq!(serde_json::from_str::<SessionExport>(&json).unwrap(), export);
    assert!(schemars::schema_for!(SessionExport).to_value().to_string().contains("verdict"));
    let document = export.to_markdown();
    assert!(document.starts_with("# Session `renamed`\n"), "{document}");
    for part in [
        "### Call `t1c1` `palyra.fs.write`",
        "- answered: allow by `local`",
        "- created: `a.md`",
        "\n````text\n# Written",
    ] {
        assert!(document.contains(part), "{part}\n{document}");
    }
    let fork = bench.engine.fork_session(session, Default::default(), "ada", None, None).await.unwrap();
    let export = bench.engine.export_session(fork.session_id).await.unwrap();
    assert_eq!((export.runs.len(), export.inherited[0].prompt.as_str()), (0, "write it"));
    assert!(export.to_markdown().contains(&format!("- forked from: session `{session}`")));
    let missing = bench.engine.export_session(SessionId::generate()).await.unwrap_err();
    assert_eq!(missing.to_stable().code, "session_not_found");
}

#[tokio::test]
async fn the_account_tells_what_happened_in_order() {
    let (bench, session) = written().await;
    let account = bench.engine.explain_session(session).await.unwrap();
    let told: Vec<&str> = account
        .events
        .iter()
        .map(|event| match &event.what {
            SessionEventKind::Created { .. } => "created",
            SessionEventKind::RunAccepted { .. } => "run accepted",
            SessionEventKind::ApprovalRequested { .. } => "asked",
            SessionEventKind::ApprovalClosed { decision: Some(ApprovalDecision::Allow), .. } => "allowed",
            SessionEventKind::RunEnded { phase: RunLifecyclePhase::Completed, .. } => "completed",
            SessionEventKind::Renamed { .. } => "renamed",
            _ => "something else",
        })
        .collect();
    // What shares a millisecond may change places across kinds, so only the ends are in a fixed order.
    assert_eq!((told[0], told.len()), ("created", 6), "{told:?}");
    for expected in ["run accepted", "asked", "allowed", "completed", "renamed"] {
        assert!(told.contains(&expected), "{told:?}");
    }
    let renamed = account.events.iter().find(|event| matches!(event.what, SessionEventKind::Renamed { .. })).unwrap();
    assert_eq!(renamed.by.as_deref(), Some("bob"));
    assert!(renamed.record.is_some());
    let fork = bench.engine.fork_session(session, Default::default(), "ada", None, None).await.unwrap();
    let account = bench.engine.explain_session(fork.session_id).await.unwrap();
    let from = match &account.events[0].what {
        SessionEventKind::Forked { from, inherited: 1, .. } => from.session_id,
        other => panic!("{other:?}"),
    };
    assert_eq!(from, session);
}

async fn talk(bench: &Bench, session: SessionId, texts: &[&str]) -> Vec<palyra_common::RunId> {
    let mut runs = Vec::new();
    for text in texts {
        let new = NewRun { session_id: Some(session), ..bench.task(text) };
        let run = bench.engine.create_run(new).await.unwrap();
        bench.finish(run.run_id).await;
        runs.push(run.run_id);
    }
    runs
}

#[tokio::test]
async fn a_summary_is_what_was_shown_and_later_runs_use_it() {
    let bench = Setup::script(WRITE).start().await;
    let session = bench.engine.resolve_session("local", "s", None).await.unwrap().0.session_id;
    let early = bench.engine.compact_preview(session, None).await.unwrap_err();
    assert_eq!(early.to_stable().code, "nothing_to_compact");
    let runs = talk(&bench, session, &["One. And more.", "Two! Yes.", "Three", "Four", "Five"]).await;
    let shown = bench.engine.compact_preview(session, Some(2)).await.unwrap();
    assert_eq!((shown.summarised.len(), shown.kept.len()), (3, 2));
    assert_eq!(shown.summary.asked, "- One.\n- Two!\n- Three\n");
    assert_eq!((shown.summary.through, shown.summary.method.as_str()), (runs[2], "extractive"));
    let stale = bench.engine.compact_apply(session, Some(2), "ada", Some(1)).await.unwrap_err();
    assert_eq!(stale.to_stable().code, "version_conflict");
    let (row, applied) = bench.engine.compact_apply(session, Some(2), "ada", Some(shown.version)).await.unwrap();
    assert_eq!((applied, row.version), (shown.clone(), shown.version + 1));
    let next = talk(&bench, session, &["Six"]).await[0];
    let spec = bench.engine.replay(next).await.unwrap().machine.spec().clone();
    assert_eq!((spec.history.len(), spec.history_omitted), (3, 0));
    assert!(spec.history[0].prompt.contains("summary of 3 earlier exchange(s)"), "{:?}", spec.history[0]);
    assert!(spec.history[0].answer.contains("- Answer to One."), "{:?}", spec.history[0]);
    assert_eq!((spec.history[1].prompt.as_str(), spec.history[2].prompt.as_str()), ("Four", "Five"));
    // A second summary takes the first one over; forks take along what they hold all of.
    let (_, again) = bench.engine.compact_apply(session, Some(1), "ada", None).await.unwrap();
    assert_eq!((again.summary.replaces, again.summarised.len()), (5, 2));
    assert!(again.summary.asked.starts_with("- One.\n") && again.summary.asked.ends_with("- Five\n"));
    let point = |run_id| palyra_agent::ForkPoint { run_id: Some(run_id), seq: None };
    for (at, first, known) in [(next, "(summary of 5", 2), (runs[3], "One. And more.", 4)] {
        let fork = bench.engine.fork_session(session, point(at), "local", None, None).await.unwrap();
        let run = talk(&bench, fork.session_id, &["Seven"]).await[0];
        let spec = bench.engine.replay(run).await.unwrap().machine.spec().clone();
        assert_eq!(spec.history.len(), known, "{:?}", spec.history);
        assert!(spec.history[0].prompt.starts_with(first), "{:?}", spec.history[0]);
        assert_eq!(spec.history_omitted, 0);
    }
    let account = bench.engine.explain_session(session).await.unwrap();
    let compacted = |event: &&palyra_agent::SessionEvent| matches!(event.what, SessionEventKind::Compacted { .. });
    assert_eq!(account.events.iter().filter(compacted).count(), 2);
}

#[tokio::test]
async fn a_summary_is_taken_back_one_at_a_time() {
    let bench = Setup::script(WRITE).start().await;
    let session = bench.engine.resolve_session("local", "s", None).await.unwrap().0.session_id;
    let early = bench.engine.compact_revert(session, "ada", None).await.unwrap_err();
    assert_eq!(early.to_stable().code, "nothing_to_revert");
    let runs = talk(&bench, session, &["One", "Two", "Three", "Four"]).await;
    bench.engine.compact_apply(session, Some(3), "ada", None).await.unwrap();
    bench.engine.compact_apply(session, Some(1), "ada", None).await.unwrap();
    let stale = bench.engine.compact_revert(session, "ada", Some(1)).await.unwrap_err();
    assert_eq!(stale.to_stable().code, "version_conflict");
    let (_, first) = bench.engine.compact_revert(session, "ada", None).await.unwrap();
    assert_eq!((first.whole_again, first.still_summarised), (2, 1));
    let told = |run| {
        let engine = bench.engine.clone();
        async move {
            let spec = engine.replay(run).await.unwrap().machine.spec().clone();
            spec.history.iter().map(|exchange| exchange.prompt.clone()).collect::<Vec<_>>()
        }
    };
    let known = told(talk(&bench, session, &["Five"]).await[0]).await;
    assert!(known[0].starts_with("(summary of 1") && known[1..] == ["Two", "Three", "Four"], "{known:?}");
    let (_, second) = bench.engine.compact_revert(session, "ada", None).await.unwrap();
    assert_eq!((second.whole_again, second.still_summarised), (1, 0));
    assert_eq!(told(talk(&bench, session, &["Six"]).await[0]).await, ["One", "Two", "Three", "Four", "Five"]);
    assert_eq!(
        bench.engine.compact_revert(session, "ada", None).await.unwrap_err().to_stable().code,
        "nothing_to_revert"
    );

    bench.engine.compact_apply(session, Some(2), "ada", None).await.unwrap();
    let point = palyra_agent::ForkPoint::default();
    let fork = bench.engine.fork_session(session, point, "local", None, None).await.unwrap().session_id;
    let inherited = bench.engine.compact_revert(fork, "ada", None).await.unwrap_err();
    assert_eq!(inherited.to_stable().code, "nothing_to_revert", "what came with a fork stays with it");
    assert!(bench.engine.run(runs[0]).await.is_ok());
    let account = bench.engine.explain_session(session).await.unwrap();
    let reverted =
        |event: &&palyra_agent::SessionEvent| matches!(event.what, SessionEventKind::CompactionReverted { .. });
    assert_eq!(account.events.iter().filter(reverted).count(), 2);
}

#[tokio::test]
async fn a_long_prompt_reaches_the_next_run_whole() {
    let bench = Setup::script(WRITE).start().await;
    let session = bench.engine.resolve_session("local", "s", None).await.unwrap().0.session_id;
    let long = format!("{} the end", "word ".repeat(200));
    let runs = talk(&bench, session, &[&long, "next"]).await;
    let spec = bench.engine.replay(runs[1]).await.unwrap().machine.spec().clone();
    assert_eq!(spec.history[0].prompt, long);
    assert!(bench.engine.run(runs[0]).await.unwrap().prompt.chars().count() <= 201, "lists show the beginning");
}
