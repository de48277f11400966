//! Forks: what the new session knows, also of a fork of a fork and of half a run.

use palyra_agent::{Exchange, ForkPoint, NewRun, SessionRow};
use palyra_common::{RunId, RunLifecyclePhase, RunStreamBody, SessionId, ToStableError as _};

use crate::support::{Bench, Setup, is_phase};

const ECHO: &str = "[[turn]]\ntext = \"You said: \"\necho = \"user\"";

async fn say(bench: &Bench, session: SessionId, prompt: &str) -> RunId {
    let new = NewRun { session_id: Some(session), ..bench.task(prompt) };
    let run = bench.engine.create_run(new).await.unwrap();
    bench.finish(run.run_id).await;
    run.run_id
}

/// What the run of a session knew.
async fn history(bench: &Bench, run: RunId) -> Vec<Exchange> {
    bench.engine.replay(run).await.unwrap().machine.spec().history.clone()
}

async fn prompts(bench: &Bench, run: RunId) -> Vec<String> {
    history(bench, run).await.into_iter().map(|exchange| exchange.prompt).collect()
}

async fn fork(bench: &Bench, from: SessionId, run_id: Option<RunId>, seq: Option<u64>) -> SessionRow {
    bench.engine.fork_session(from, ForkPoint { run_id, seq }, "ada", None, None).await.unwrap()
}

#[tokio::test]
async fn a_fork_knows_what_was_said_before_it_and_nothing_after() {
    let bench = Setup::script(ECHO).start().await;
    let (source, _) = bench.engine.resolve_session("local", "s", Some("source".into())).await.unwrap();
    let one = say(&bench, source.session_id, "one").await;
    say(&bench, source.session_id, "two").await;
    let first = fork(&bench, source.session_id, Some(one), None).await;
    assert_eq!((first.title.as_str(), first.owner.as_str(), first.key), ("source", "ada", None));
    assert_eq!(first.forked_from.unwrap().run_id, Some(one));
    let whole = fork(&bench, source.session_id, None, None).await;
    say(&bench, source.session_id, "three").await;

    let run = say(&bench, first.session_id, "other two").await;
    assert_eq!(prompts(&bench, run).await, ["one"]);
    let run = say(&bench, whole.session_id, "other three").await;
    assert_eq!(prompts(&bench, run).await, ["one", "two"]);

    // A fork of the fork, at its own run and at one that it inherited.
    let second = fork(&bench, whole.session_id, None, None).await;
    let run = say(&bench, second.session_id, "four").await;
    assert_eq!(prompts(&bench, run).await, ["one", "two", "other three"]);
    let third = fork(&bench, second.session_id, Some(one), None).await;
    let run = say(&bench, third.session_id, "late").await;
    assert_eq!(prompts(&bench, run).await, ["one"]);
    let replayed = bench.engine.replay(run).await.unwrap();
    assert_eq!(replayed.machine.spec().history_omitted, 0);
    let empty = bench.engine.resolve_session("local", "empty", None).await.unwrap().0;
    let nothing = fork(&bench, empty.session_id, None, None).await;
    let run = say(&bench, nothing.session_id, "first").await;
    assert!(prompts(&bench, run).await.is_empty());
}

#[tokio::test]
async fn a_fork_within_a_run_knows_what_was_said_up_to_there() {
    let script = r#"
[[turn]]
text = "I look first."
[[turn.call]]
tool = "palyra.fs.list"
arguments = {}
[[turn]]
text = "All done."
"#;
    let bench = Setup::script(script).start().await;
    let (run, events) = bench.run("look and\ndo").await;
    let proposal = events.iter().find(|event| matches!(event.body, RunStreamBody::ToolProposal(_))).unwrap().seq;
    let half = fork(&bench, run.session_id, Some(run.run_id), Some(proposal)).await;
    assert_eq!((half.title.as_str(), half.forked_from.unwrap().seq), ("look and do", Some(proposal)));
    let next = say(&bench, half.session_id, "go on").await;
    let known = history(&bench, next).await;
    assert_eq!(known[0].prompt, "look and\ndo");
    assert!(known[0].answer.starts_with("I look first.") && !known[0].answer.contains("All done"), "{known:?}");
    // A fork of that fork at the same run has no more of it.
    let again = fork(&bench, half.session_id, Some(run.run_id), None).await;
    assert_eq!(again.forked_from.unwrap().seq, Some(proposal));
    let beyond = ForkPoint { run_id: Some(run.run_id), seq: Some(proposal + 1) };
    let error = bench.engine.fork_session(half.session_id, beyond, "ada", None, None).await.unwrap_err();
    assert_eq!(error.to_stable().code, "fork_point_invalid");
    let end = fork(&bench, run.session_id, Some(run.run_id), Some(events.len() as u64)).await;
    assert_eq!(end.forked_from.unwrap().seq, None, "the last event is the whole run");
    let next = say(&bench, end.session_id, "go on").await;
    assert_eq!(history(&bench, next).await[0].answer, "All done.");
}

#[tokio::test]
async fn a_run_that_is_at_work_can_be_forked_as_far_as_it_is() {
    let bench = Setup::script("[[turn]]\ntext = \"slow\"\ndelay_ms = 60000").start().await;
    let run = bench.engine.create_run(bench.task("wait")).await.unwrap();
    bench.follow_until(run.run_id, is_phase(RunLifecyclePhase::Running)).await;
    let id = SessionId::generate();
    let point = ForkPoint::default();
    let made = bench.engine.fork_session(run.session_id, point, "ada", Some("mine".into()), Some(id)).await.unwrap();
    assert!(made.forked_from.unwrap().seq.is_some());
    bench.engine.cancel(run.run_id, "me", None).await.unwrap();
    bench.finish(run.run_id).await;
    let again = bench.engine.fork_session(run.session_id, point, "ada", Some("mine".into()), Some(id)).await.unwrap();
    assert_eq!(again, made, "the same request gives the same fork");
    let other = bench.engine.fork_session(run.session_id, point, "bob", None, Some(id)).await.unwrap_err();
    assert_eq!(other.to_stable().code, "session_exists");
}

#[tokio::test]
async fn points_that_are_not_there_are_refused() {
    let bench = Setup::script(ECHO).start().await;
    let (run, _) = bench.run("here").await;
    let (other, _) = bench.run("elsewhere").await;
    for point in [
        ForkPoint { run_id: Some(other.run_id), seq: None },
        ForkPoint { run_id: Some(RunId::generate()), seq: None },
        ForkPoint { run_id: Some(run.run_id), seq: Some(0) },
        ForkPoint { run_id: Some(run.run_id), seq: Some(10_000) },
        ForkPoint { run_id: None, seq: Some(1) },
    ] {
        let error = bench.engine.fork_session(run.session_id, point, "ada", None, None).await.unwrap_err();
        assert_eq!(error.to_stable().code, "fork_point_invalid", "{point:?}");
    }
    let error = bench.engine.fork_session(SessionId::generate(), ForkPoint::default(), "ada", None, None).await;
    assert_eq!(error.unwrap_err().to_stable().code, "session_not_found");
}
