//! Runs as text, as a person sees them.

use palyra_budget::MicroUsd;
use std::collections::{BTreeMap, BTreeSet};

use palyra_client::api::{
    CallNotRunView, FileChangeKind, FileChangeView, IntentView, ReducedIsolationView, RunDetail, RunTimings, RunUsage,
    RunView, UnavailableToolsView,
};
use palyra_common::{
    ChangeAttribution, DataOrigin, ErrorCategory, ExitCode, RunId, RunLifecyclePhase, RunMode, SandboxTier, SessionId,
    StableErrorEnvelope, StatusDetail, TerminationReason, Timestamp,
};

use serde_json::json;

use super::*;

fn run() -> RunView {
    RunView {
        owner: "uid:1000".to_owned(),
        run_id: RunId::from_u128(1),
        session_id: SessionId::from_u128(2),
        phase: RunLifecyclePhase::Completed,
        reason: Some(TerminationReason::FinalAnswer),
        detail: None,
        prompt: "replace \"a\" with \"b\" in notes.md".to_owned(),
        workspace: "/home/me/project".to_owned(),
        created_at: Timestamp(1_794_700_000_123),
        started_at: None,
        ended_at: Some(Timestamp(1_794_700_001_123)),
        turns: 3,
        tool_calls: 2,
        last_seq: 17,
        model: "offline".to_owned(),
        undone: false,
    }
}

fn detail() -> RunDetail {
    RunDetail {
        run: run(),
        answer: Some("Done.\nOne file\u{1b}[2J changed.".to_owned()),
        mode: RunMode::Guarded,
        agent: None,
        envelope: Vec::new(),
        plan: Vec::new(),
        changes: vec![FileChangeView {
            path: "notes.md".to_owned(),
            kind: FileChangeKind::Modified,
            before: None,
            after: None,
            attribution: ChangeAttribution::Written,
        }],
        not_run: Vec::new(),
        reduced_isolation: Vec::new(),
        unavailable_tools: Vec::new(),
        pending_approvals: Vec::new(),
        usage: RunUsage { input_tokens: 120, output_tokens: 30, cost: Some(MicroUsd(1_250)), cost_assumed: false },
        timings: RunTimings { total_ms: 1000, model_ms: 12, tools_ms: 5, waiting_ms: 0 },
    }
}

#[test]
fn the_end_of_a_run_tells_time_tokens_and_cost() {
    let id = RunId::from_u128(1);
    let end = format!(
        "completed in 1.0 s (model 12 ms, tools 5 ms), 120 tokens in, 30 out, $0.00125\n1 file changed (to undo: palyra \
         runs undo {id}):\n  ~ notes.md"
    );
    assert_eq!(summary(&detail(), Advice::None).join("\n"), end);
    assert_eq!(
        summary(&detail(), Advice::WhereToLook).join("\n"),
        format!(
            "{end}\nwhere to look next:\n  palyra runs show {id}  the answer, the changes, the time\n  palyra runs tape {id}  \
             every step\n  palyra journal verify                        check that the record is complete"
        )
    );
}

#[test]
fn usage_says_what_is_known() {
    let shown =
        |input_tokens, cost, cost_assumed| usage(&RunUsage { input_tokens, output_tokens: 0, cost, cost_assumed });
    assert_eq!(shown(0, None, false), None, "no language model was asked");
    assert_eq!(shown(7, None, false).as_deref(), Some("7 tokens in, 0 out"));
    assert_eq!(shown(7, Some(MicroUsd(0)), false).as_deref(), Some("7 tokens in, 0 out, $0.00"));
    assert_eq!(shown(7, Some(MicroUsd(2_000_000)), true).as_deref(), Some("7 tokens in, 0 out, at most $2.00"));
}

#[test]
fn a_page_shows_everything_and_obeys_nothing() {
    let page = page(&detail()).join("\n");
    assert!(page.contains("phase      completed\n"), "{page}");
    assert!(
        page.contains("usage      120 tokens in, 30 out, $0.00125\nwork       3 turns, 2 tool calls, 17 events"),
        "{page}"
    );
    assert!(page.contains("answer\n  Done.\n  One file\u{fffd}[2J changed.\n"), "{page}");
}

#[test]
fn a_page_lists_what_the_run_intends() {
    let intent = |tool: &str, destinations: &[&str]| IntentView {
        tool: tool.to_owned(),
        destinations: destinations.iter().map(|&name| name.to_owned()).collect(),
        arguments: BTreeMap::new(),
        times: None,
        from: BTreeSet::new(),
    };
    let bank = IntentView {
        arguments: [("amount".to_owned(), json!(50))].into(),
        times: Some(1),
        from: [DataOrigin::Workspace].into(),
        ..intent("mcp.bank.send_money", &["GB29", "with » and \u{200b}"])
    };
    let envelope = vec![bank, intent("mcp.chat.post", &[])];
    let text = page(&RunDetail { envelope, ..detail() }).join("\n");
    assert!(
        text.contains(
            "\nmode       guarded\nintends    mcp.bank.send_money to GB29, «with › and \u{fffd}» with amount = 50, once, may carry data of workspace\nintends    \
             mcp.chat.post with any values, any number of times\n"
        ),
        "{text}"
    );
    assert!(page(&detail()).contains(&"intends    nothing outside the workspace".to_owned()));
}

#[test]
fn a_list_is_aligned() {
    let lines = list(&[run()]);
    assert_eq!(
        lines,
        [
            "RUN                         CREATED (UTC)     OUTCOME    TASK",
            "00000000000000000000000001  2026-11-14 23:46  completed  replace \"a\" with \"b\" in notes.md",
        ]
    );
}

#[test]
fn exit_codes_follow_the_end() {
    let ended = |phase, reason| exit_code(&RunView { phase, reason, ..run() });
    use {RunLifecyclePhase as Phase, TerminationReason as Reason};
    assert_eq!(ended(Phase::Completed, Some(Reason::FinalAnswer)), ExitCode::Ok);
    assert_eq!(ended(Phase::Failed, Some(Reason::MaxTurns)), ExitCode::Precondition);
    assert_eq!(ended(Phase::Failed, Some(Reason::ProviderError)), ExitCode::Connectivity);
    assert_eq!(ended(Phase::Aborted, Some(Reason::ApprovalDenied)), ExitCode::Policy);
    assert_eq!(ended(Phase::Aborted, Some(Reason::Cancellation)), ExitCode::Precondition);
    assert_eq!(ended(Phase::Expired, None), ExitCode::Precondition);
    assert_eq!(ended(Phase::Failed, Some(Reason::FinalAnswer)), ExitCode::Precondition, "an answer that says no");
}

#[test]
fn an_end_is_told_in_one_word_where_one_will_do() {
    let told = |phase, reason, code: Option<&str>| {
        let detail = code.map(|code| StatusDetail { code: code.to_owned(), message: code.to_owned() });
        outcome(&RunView { phase, reason: Some(reason), detail, ..run() })
    };
    use {RunLifecyclePhase as Phase, TerminationReason as Reason};
    assert_eq!(told(Phase::Aborted, Reason::Cancellation, Some("cancelled")), "cancelled");
    assert_eq!(told(Phase::Completed, Reason::FinalAnswer, None), "completed");
    assert_eq!(told(Phase::Failed, Reason::FinalAnswer, Some("task_not_done")), "failed (task_not_done)");
    assert_eq!(told(Phase::Completed, Reason::FinalAnswer, Some("last_call_failed")), "completed (last_call_failed)");
    assert_eq!(told(Phase::Failed, Reason::MaxTurns, None), "failed (max_turns)");
    let cancelled = StatusDetail { code: "cancelled".to_owned(), message: "cancelled".to_owned() };
    let view = RunView { phase: Phase::Aborted, detail: Some(cancelled), ..run() };
    let lines = summary(&RunDetail { run: view, ..detail() }, Advice::None);
    assert!(!lines.contains(&"  cancelled".to_owned()), "{lines:?}");
}

#[test]
fn only_a_run_without_a_caveat_ended_well() {
    let well = |phase, code: Option<&str>| {
        let detail = code.map(|code| StatusDetail { code: code.to_owned(), message: String::new() });
        ended_well(&RunView { phase, detail, ..run() })
    };
    use RunLifecyclePhase as Phase;
    assert!(well(Phase::Completed, None) && well(Phase::Completed, Some("objective_met")));
    assert!(!well(Phase::Completed, Some("last_call_failed")) && !well(Phase::Completed, Some("answer_cut_off")));
    assert!(!well(Phase::Failed, None));
}

#[test]
fn calls_that_were_not_made_are_on_the_page() {
    let refused = CallNotRunView {
        call_id: "t1c1".to_owned(),
        tool: "palyra.fs.write".to_owned(),
        arguments: Some(serde_json::json!({ "path": "notes.md", "content": "x" })),
        error: StableErrorEnvelope::new("hook_blocked", ErrorCategory::Policy, "hook `quiet`: no writes"),
    };
    let text = page(&RunDetail { not_run: vec![refused], ..detail() }).join("\n");
    assert!(text.contains("calls not made\n  ✗ palyra.fs.write notes.md refused: hook `quiet`: no writes"), "{text}");
}

#[test]
fn programs_that_ran_with_less_isolation_than_asked_for_are_on_the_page() {
    let weaker = ReducedIsolationView {
        call_id: "t1c1".to_owned(),
        tool: "palyra.process.run".to_owned(),
        arguments: Some(serde_json::json!({ "argv": ["make", "all"] })),
        tier: SandboxTier::B,
        reasons: vec!["user namespaces are not available".to_owned()],
    };
    let text = page(&RunDetail { reduced_isolation: vec![weaker], ..detail() }).join("\n");
    let line =
        "palyra.process.run make all in tier B because tier C is not available: user namespaces are not available";
    assert!(text.contains(&format!("less isolation than asked for\n  {line}")), "{text}");
}

#[test]
fn sources_of_tools_that_were_missing_are_on_the_page() {
    let missing = UnavailableToolsView { source: "mcp:mail".to_owned(), reason: "it is slow".to_owned() };
    let text = page(&RunDetail { unavailable_tools: vec![missing], ..detail() }).join("\n");
    assert!(text.contains("tools not available\n  mcp:mail: it is slow"), "{text}");
}

#[test]
fn a_model_that_failed_ends_a_run_with_the_code_of_its_own_page() {
    let ended = |code: &str| {
        let detail = Some(StatusDetail { code: code.to_owned(), message: String::new() });
        let (phase, reason) = (RunLifecyclePhase::Failed, Some(TerminationReason::ProviderError));
        exit_code(&RunView { phase, reason, detail, ..run() })
    };
    assert_eq!(ended("model_request_rejected"), ExitCode::Precondition);
    assert_eq!(ended("model_auth_failed"), ExitCode::Auth);
    assert_eq!(ended("model_content_refused"), ExitCode::Policy);
    assert_eq!(ended("content_policy"), ExitCode::Policy);
    assert_eq!(ended("model_unreachable"), ExitCode::Connectivity);
    assert_eq!(ended("model_empty_answer"), ExitCode::Connectivity, "no page of a class");
}

#[test]
fn an_outcome_names_what_went_wrong() {
    let looped = StatusDetail { code: "loop_detected".to_owned(), message: "the same call".to_owned() };
    let run = RunView {
        phase: RunLifecyclePhase::Failed,
        reason: Some(TerminationReason::MaxToolCalls),
        detail: Some(looped),
        undone: true,
        ..run()
    };
    assert_eq!(outcome(&run), "failed (loop_detected), undone");
}

#[test]
fn an_outcome_says_nothing_twice() {
    let detail = |code: &str| Some(StatusDetail { code: code.to_owned(), message: String::new() });
    let shown = |phase, reason, code| outcome(&RunView { phase, reason: Some(reason), detail: detail(code), ..run() });
    use {RunLifecyclePhase as Phase, TerminationReason as Reason};
    assert_eq!(shown(Phase::Aborted, Reason::Cancellation, "cancelled"), "cancelled");
    assert_eq!(shown(Phase::Failed, Reason::MaxTurns, "max_turns"), "failed (max_turns)");
    assert_eq!(shown(Phase::Aborted, Reason::ApprovalDenied, "approval_denied"), "aborted (approval_denied)");
}

#[test]
fn a_question_says_why_it_is_asked() {
    let mut detail = detail();
    let mut question = crate::render::approvals::tests::approval();
    question.reason = "outcome unknown: the daemon stopped while this ran".to_owned();
    detail.pending_approvals = vec![question];
    let page = page(&detail);
    let at = page.iter().position(|line| line == "needs an answer: send money").unwrap();
    assert_eq!(page[at + 1], "  why: outcome unknown: the daemon stopped while this ran");
}
