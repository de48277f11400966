//! Questions to a person, inside the engine.

use palyra_agent::machine::{Action, ApprovalRequest, Question};
use palyra_agent::tape::EntryRef;
use palyra_agent::{AgentProfile, Answer, ApprovalFilter, ApprovalPage, NewRun, SessionInput, Submitted};
use palyra_common::{
    ApprovalDecision, ApprovalId, ApprovalSubject, Digest, InputMode, Risk, RunId, RunLifecyclePhase, RunStreamBody,
    SessionId, TerminationReason, Timestamp, ToStableError as _,
};
use palyra_journal::NewRecord;

use crate::support::{Bench, Setup, answer, is_phase, program};

const WRITE: &str = r#"
[[turn]]
[[turn.call]]
tool = "palyra.fs.write"
arguments = { path = "a.txt", content = "x" }
[[turn]]
echo = "last_result"
"#;

async fn asked(bench: &Bench) -> (palyra_common::RunId, palyra_common::ApprovalId) {
    let run = bench.engine.create_run(bench.task("write it")).await.unwrap();
    bench.follow_until(run.run_id, is_phase(RunLifecyclePhase::WaitingForApproval)).await;
    let asked = bench.engine.approvals(ApprovalFilter { run_id: Some(run.run_id), open: None }).await.unwrap();
    assert_eq!(asked.len(), 1);
    assert!(asked[0].summary.contains("a.txt"), "{}", asked[0].summary);
    assert!(!bench.file("a.txt").exists(), "nothing happens before the answer");
    (run.run_id, asked[0].approval_id)
}

fn asking() -> Setup {
    let mut setup = Setup::script(WRITE);
    setup.ask_before = vec!["palyra.fs.write".into()];
    setup
}

#[tokio::test]
async fn an_allowed_call_runs_and_the_answer_counts_once() {
    let bench = asking().start().await;
    let (run_id, approval) = asked(&bench).await;
    let decide = async || bench.engine.decide_approval(approval, answer(ApprovalDecision::Allow)).await;
    assert_eq!(decide().await.unwrap(), run_id);
    let (run, events) = bench.finish(run_id).await;
    assert_eq!(run.phase, RunLifecyclePhase::Completed);
    assert!(bench.file("a.txt").exists());
    assert!(decide().await.is_err());
    let by = events.iter().find_map(|event| match &event.body {
        RunStreamBody::ToolApprovalResponse(response) => Some(response.by.clone()),
        _ => None,
    });
    assert_eq!(by.as_deref(), Some("local"));
}

#[tokio::test]
async fn a_refused_call_does_not_run_and_the_model_is_told() {
    let bench = asking().start().await;
    let (run_id, approval) = asked(&bench).await;
    bench.engine.decide_approval(approval, answer(ApprovalDecision::Deny)).await.unwrap();
    let (run, _) = bench.finish(run_id).await;
    assert!(run.answer.unwrap().contains("refused"));
    assert!(!bench.file("a.txt").exists());
}

#[tokio::test]
async fn a_policy_about_answers_knows_the_agent_of_the_run() {
    let mut setup = asking();
    setup.policies = r#"@id("no_answers_for_the_clerk")
        forbid (principal, action == Action::"approval.decide", resource)
        when { resource in Agent::"clerk" };"#;
    let bench = setup.start().await;
    let clerk = AgentProfile { agent_id: "clerk".into(), name: "Clerk".into(), ..AgentProfile::default() };
    bench.engine.set_agent(clerk, "local", None).await.unwrap();
    for (agent, may) in [(None, true), (Some("clerk".to_owned()), false)] {
        let run = bench.engine.create_run(NewRun { agent, ..bench.task("write it") }).await.unwrap();
        bench.follow_until(run.run_id, is_phase(RunLifecyclePhase::WaitingForApproval)).await;
        let filter = ApprovalFilter { run_id: Some(run.run_id), open: None };
        let approval = bench.engine.approvals(filter).await.unwrap()[0].approval_id;
        let decided = bench.engine.decide_approval(approval, answer(ApprovalDecision::Deny)).await;
        assert_eq!(decided.is_ok(), may, "{decided:?}");
    }
}

#[tokio::test]
async fn an_approval_lapses_when_it_has_a_time() {
    let mut setup = asking();
    setup.limits.approval_timeout_ms = 150;
    let bench = setup.start().await;
    let (run_id, approval) = asked(&bench).await;
    let (run, events) = bench.finish(run_id).await;
    assert_eq!(run.reason, Some(TerminationReason::FinalAnswer));
    assert!(events.iter().any(|event| matches!(
        &event.body,
        RunStreamBody::ToolApprovalResponse(response)
            if response.decision == ApprovalDecision::Timeout && response.approval_id == approval
    )));
    assert!(!bench.file("a.txt").exists());
}

#[tokio::test]
async fn a_cancelled_run_takes_its_question_back() {
    let bench = asking().start().await;
    let (run_id, approval) = asked(&bench).await;
    bench.engine.cancel(run_id, "me", None).await.unwrap();
    assert_eq!(bench.finish(run_id).await.0.phase, RunLifecyclePhase::Aborted);
    let open = bench.engine.approvals(ApprovalFilter { run_id: None, open: Some(true) }).await.unwrap();
    assert!(open.is_empty());
    let late = bench.engine.decide_approval(approval, answer(ApprovalDecision::Allow)).await;
    assert!(late.is_err());
}

/// The record of a question, as a run's driver writes it.
fn question(number: u64) -> NewRecord {
    let request = Action::RequestApproval(Box::new(ApprovalRequest {
        approval_id: ApprovalId::from_u128(u128::from(number)),
        owner: "local".into(),
        call_id: "t1c1".into(),
        subject: ApprovalSubject::Tool,
        risk: Risk::Low,
        question: Question::MayItRun,
        tool: "palyra.fs.write".into(),
        arguments: serde_json::json!({}),
        summary: "write".into(),
        reasons: Vec::new(),
        evidence: Vec::new(),
        offer: None,
        binding: Digest::of(b""),
        expires_at: None,
    }));
    let entry = EntryRef::Action(&request);
    // Several are asked in the same millisecond.
    let at = Timestamp(1_000 + i64::try_from(number / 7).unwrap());
    NewRecord::new(entry.kind(), at, entry.payload().unwrap())
        .in_session(SessionId::from_u128(1))
        .on_tape(RunId::from_u128(1), number)
}

#[tokio::test]
async fn questions_are_listed_however_many_there_are_in_pages_or_at_once() {
    const COUNT: u64 = 1_203;
    let bench = asking().start().await;
    bench.journal.append((1..=COUNT).map(question).collect()).await.unwrap();
    let open = ApprovalFilter { run_id: None, open: Some(true) };
    let whole = bench.engine.approvals(open).await.unwrap();
    assert_eq!(whole.len() as u64, COUNT);
    let (mut after, mut listed) = (None, Vec::new());
    loop {
        let page = bench.engine.approvals_page(open, ApprovalPage { after, limit: 100 }).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some((last.requested_at, last.approval_id));
        listed.extend(page);
    }
    assert_eq!(listed, whole);
}

#[tokio::test]
async fn a_program_that_steered_a_run_does_not_answer_its_approvals() {
    let steered_by = ["message", "session input", "envelope"];
    for how in steered_by {
        let bench = asking().start().await;
        let (run_id, approval) = asked(&bench).await;
        let (engine, it) = (&bench.engine, program("local", "token it"));
        let by = |name: &str| Answer { program: Some(name.to_owned()), ..answer(ApprovalDecision::Allow) };
        match how {
            "message" => engine.steer(run_id, &it, "go on".into(), InputMode::FollowUp).await.unwrap(),
            "session input" => {
                let session_id = engine.run(run_id).await.unwrap().session_id;
                let input = SessionInput {
                    text: "go on".into(),
                    mode: InputMode::Steer,
                    workspace: None,
                    by: it.by.clone(),
                    given_with: it.with.clone(),
                    input_id: None,
                    agent: None,
                    from: None,
                    beside: Vec::new(),
                };
                let submitted = engine.submit_input(session_id, input).await.unwrap();
                assert!(matches!(submitted, Submitted::Steered(_)), "{submitted:?}");
            }
            _ => engine.edit_envelope(run_id, &it, Vec::new(), Vec::new()).await.unwrap(),
        }
        let refused = engine.decide_approval(approval, by("token it")).await.unwrap_err().to_stable();
        assert_eq!(refused.code, "approval_not_permitted", "{how}");
        assert_eq!(engine.decide_approval(approval, by("token other")).await.unwrap(), run_id, "{how}");
        assert_eq!(engine.replay(run_id).await.unwrap().difference, None, "{how}");
    }
}
