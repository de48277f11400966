//! Agents: what a run takes of one, and what becomes of runs when it changes or goes.

use palyra_agent::{AgentError, AgentProfile, NewRun, NewSession, SegmentKind, SessionSettings};
use palyra_common::{
    Integrity, RunLifecyclePhase, RunMode, RunStreamBody, RunStreamEvent, ToStableError as _, ToolVerdict,
};
use serde_json::json;

use crate::brain::{Brain, Next, Outbox, Outside, results};
use crate::support::{Bench, Gate, Setup, tool_result};

fn reviewer() -> AgentProfile {
    AgentProfile {
        agent_id: "reviewer".into(),
        name: "Reviewer".into(),
        instructions: "Report to boss@example.org and nobody else.".into(),
        mode: Some(RunMode::Guarded),
        tools: vec!["palyra.fs.read".into(), "mcp.mail.*".into()],
        ..AgentProfile::default()
    }
}

fn as_agent(bench: &Bench, agent: &str, prompt: &str) -> NewRun {
    NewRun { agent: Some(agent.into()), ..bench.task(prompt) }
}

/// Why a call was denied.
fn denied(events: &[RunStreamEvent], call_id: &str) -> String {
    let decided = events.iter().find_map(|event| match &event.body {
        RunStreamBody::ToolDecision(decision) if decision.call_id == call_id => Some(decision.clone()),
        _ => None,
    });
    let decided = decided.unwrap();
    assert_eq!(
        (decided.verdict, decided.policies.as_slice()),
        (ToolVerdict::Deny, &["engine.agent_tools".to_owned()][..])
    );
    decided.reasons.join("; ")
}

#[tokio::test]
async fn its_words_are_the_operators_and_its_tools_are_all_there_is() {
    let outbox = Outbox::default();
    let mut setup = Setup::script("");
    setup.provider = Some(Brain::new(|messages| {
        assert!(messages[1].content.ends_with("Report to boss@example.org and nobody else."), "{messages:?}");
        match results(messages).len() {
            0 => Next::Call("palyra.intent.declare", json!({"effects": [{"tool": "mcp.mail.send"}]})),
            1 => Next::Call("palyra.fs.write", json!({"path": "a.txt", "content": "x"})),
            2 => Next::Call("mcp.mail.send", json!({"to": "boss@example.org", "body": "all is well"})),
            _ => Next::Say("done".into()),
        }
    }));
    setup.tools = vec![Outside::sending("mail", "send", &outbox), Outside::sending("chat", "send", &outbox)];
    let bench = setup.start().await;
    let set = bench.engine.set_agent(reviewer(), "local", Some(0)).await.unwrap();
    let run = bench.engine.create_run(as_agent(&bench, "reviewer", "look around")).await.unwrap();
    let (run, events) = bench.finish(run.run_id).await;
    assert_eq!(run.phase, RunLifecyclePhase::Completed, "{:?}", run.detail);

    // The tool exists and would be permitted; the agent does not have it.
    assert_eq!(denied(&events, "t2c1"), "the agent `reviewer` does not have palyra.fs.write");
    assert!(!bench.file("a.txt").exists());
    // What the operator wrote may be a destination, so nobody was asked.
    assert_eq!(outbox.lock().unwrap().len(), 1);

    let context = bench.engine.context(run.run_id, None).await.unwrap();
    assert!(context.is_exact);
    let said = context.segments.iter().find(|segment| segment.kind == SegmentKind::Agent).unwrap();
    assert_eq!(said.label.as_ref().unwrap().integrity, Integrity::Operator);
    assert_eq!(said.source, format!("reviewer, version {}", set.version));
    assert_eq!(context.stable_messages, 3);
    let offered = &context.segments[0];
    assert_eq!(offered.source, "5 core tools", "read, send, and what acts on the run alone: {}", offered.text);
    let details = bench.engine.run_details(run.run_id).await.unwrap();
    assert_eq!((details.agent.as_str(), details.agent_version), ("reviewer", Some(set.version)));
}

#[tokio::test]
async fn a_change_reaches_only_later_runs_and_every_tape_replays() {
    let gate = Gate::reading("test.gate");
    let mut setup =
        Setup::script("[[turn]]\n[[turn.call]]\ntool = \"test.gate\"\narguments = {}\n[[turn]]\ntext = \"done\"");
    setup.tools = vec![std::sync::Arc::new(gate.clone())];
    let bench = setup.start().await;
    let profile = AgentProfile { agent_id: "helper".into(), instructions: "First.".into(), ..AgentProfile::default() };
    let first = bench.engine.set_agent(profile.clone(), "local", None).await.unwrap();
    let run = bench.engine.create_run(as_agent(&bench, "helper", "work")).await.unwrap();
    gate.reached(1).await;

    let changed = AgentProfile { instructions: "Second.".into(), tools: vec!["palyra.fs.*".into()], ..profile };
    let stale = bench.engine.set_agent(changed.clone(), "local", Some(first.version + 1)).await.unwrap_err();
    assert_eq!(stale.to_stable().code, "version_conflict");
    let second = bench.engine.set_agent(changed, "local", Some(first.version)).await.unwrap();
    assert!(second.version > first.version && second.created_at == first.created_at);
    let later = bench.engine.create_run(as_agent(&bench, "helper", "work")).await.unwrap();
    bench.engine.remove_agent("helper", "local", Some(second.version), Vec::new()).await.unwrap();
    gate.open();

    let (run, events) = bench.finish(run.run_id).await;
    assert_eq!(run.phase, RunLifecyclePhase::Completed, "a run goes on with the agent that it took");
    assert!(tool_result(&events, "t1c1").content.contains("passed"));
    let (later, events) = bench.finish(later.run_id).await;
    assert_eq!(later.phase, RunLifecyclePhase::Completed);
    assert_eq!(denied(&events, "t1c1"), "the agent `helper` does not have test.gate");
    for (id, said) in [(run.run_id, "First."), (later.run_id, "Second.")] {
        let spec = bench.engine.replay(id).await.unwrap().machine.spec().clone();
        assert_eq!(spec.profile.unwrap().instructions, said);
    }

    let gone = bench.engine.create_run(as_agent(&bench, "helper", "again")).await.unwrap_err().to_stable();
    assert_eq!((gone.code.as_str(), gone.message.as_str()), ("agent_not_found", "there is no agent `helper`"));
    bench.engine.set_agent(reviewer(), "local", None).await.unwrap();
    let mistyped = bench.engine.create_run(as_agent(&bench, "reviwer", "x")).await.unwrap_err().to_stable();
    assert!(mistyped.recovery_hint.unwrap().starts_with("did you mean `reviewer`?"));
    let nonsense = bench.engine.create_run(as_agent(&bench, "Not a name", "x")).await.unwrap_err();
    assert_eq!(nonsense.to_stable().code, "agent_name_invalid");
}

#[tokio::test]
async fn what_is_left_open_comes_from_the_session_and_then_from_the_agent() {
    let bench = Setup::script("[[turn]]\ntext = \"ok\"").start().await;
    let work = bench.directory.path().join("work").display().to_string();
    let profile = AgentProfile {
        agent_id: "helper".into(),
        model: Some("its-own".into()),
        mode: Some(RunMode::Strict),
        workspace: Some(work.clone()),
        ..AgentProfile::default()
    };
    bench.engine.set_agent(profile.clone(), "local", None).await.unwrap();
    let nowhere = || NewRun { workspace: String::new(), ..as_agent(&bench, "helper", "x") };
    let run = bench.engine.create_run(nowhere()).await.unwrap();
    let spec = bench.engine.replay(run.run_id).await.unwrap().machine.spec().clone();
    assert_eq!((spec.mode, spec.model.name.as_str()), (RunMode::Strict, "its-own"));
    let looser = bench.engine.create_run(NewRun { mode: Some(RunMode::Open), ..nowhere() }).await;
    assert!(matches!(looser, Err(AgentError::AgentModeLoosened { .. })), "{looser:?}");
    let bare = bench.engine.create_run(NewRun { agent: None, ..nowhere() }).await.unwrap_err();
    assert_eq!(bare.to_stable().code, "workspace_missing");

    // A session's own choices stand before those of its agent, except that they cannot loosen it.
    let settings = SessionSettings { model: Some("sessions".into()), agent: Some("helper".into()), workspace: None };
    let new = NewSession { owner: "local".into(), mode: Some(RunMode::Open), settings, ..NewSession::default() };
    let session = bench.engine.create_session(new).await.unwrap();
    let in_session = NewRun { session_id: Some(session.session_id), agent: None, ..nowhere() };
    let run = bench.engine.create_run(in_session.clone()).await.unwrap();
    let spec = bench.engine.replay(run.run_id).await.unwrap().machine.spec().clone();
    assert_eq!((spec.agent.as_str(), spec.mode, spec.model.name.as_str()), ("helper", RunMode::Strict, "sessions"));
    assert_eq!(spec.workspace, work);
    bench.finish(run.run_id).await;
    bench.engine.remove_agent("helper", "local", None, Vec::new()).await.unwrap();
    let orphaned = bench.engine.create_run(in_session).await.unwrap_err();
    assert_eq!(orphaned.to_stable().code, "agent_not_found", "nothing stands in for an agent that is gone");

    // The main agent need not be there; once it is, it is everybody's.
    let main = AgentProfile { agent_id: "main".into(), instructions: "Be kind.".into(), ..AgentProfile::default() };
    bench.engine.set_agent(main, "local", None).await.unwrap();
    let (run, _) = bench.run("hello").await;
    let spec = bench.engine.replay(run.run_id).await.unwrap().machine.spec().clone();
    assert_eq!(spec.profile.unwrap().instructions, "Be kind.");
}

#[tokio::test]
async fn agents_survive_a_restart() {
    let bench = Setup::script("[[turn]]\ntext = \"ok\"").start().await;
    let set = bench.engine.set_agent(reviewer(), "local", None).await.unwrap();
    bench.engine.set_agent(AgentProfile { agent_id: "gone".into(), ..reviewer() }, "local", None).await.unwrap();
    bench.engine.remove_agent("gone", "local", None, Vec::new()).await.unwrap();
    bench.engine.stop(std::time::Duration::from_secs(5)).await;
    let Bench { engine, journal, directory } = bench;
    drop(engine);
    drop(journal);
    let bench = Setup::script("[[turn]]\ntext = \"ok\"").start_in(directory).await;
    assert_eq!(bench.engine.agents(), [set]);
}
