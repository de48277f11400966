//! Approvals through the command line: asked, listed, answered from elsewhere, kept over a crash.

use std::time::{Duration, Instant};

use palyra_common::{ApprovalDecision, RunLifecyclePhase, TerminationReason};
use palyra_testkit::{Answers, DaemonOptions, Followed, Model, Person, TestContext};
use serde_json::{Value, json};

use super::{PATIENCE, call, finish, names, position, task, wait_for_phase, workspace};

fn script() -> Value {
    json!({ "turn": [
        call("palyra.fs.write", json!({ "path": "out.txt", "content": "written\n" })),
        call("palyra.fs.write", json!({ "path": "out.txt", "content": "written\n" })),
        { "text": "done" },
    ] })
}

#[test]
fn a_question_is_answered_from_another_terminal() {
    let context =
        TestContext::new().unwrap().scripted(&script()).unwrap().env("PALYRA_RUN_ASK_BEFORE", "palyra.fs.write");
    let mut asking = context.command(["run", "--wait", "write it"]).unwrap();
    asking.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut child = asking.spawn().unwrap();
    for answered in 0..2 {
        let id = wait_for_question(&context);
        assert_eq!(context.workspace().join("out.txt").exists(), answered == 1, "written before it was allowed");
        let decided = context.run(["approvals", "decide", &id, "allow"]).unwrap();
        assert_eq!(decided.code, 0, "{decided}");
        let again = context.run(["approvals", "decide", &id, "deny"]).unwrap();
        assert_ne!(again.code, 0, "an answered question was answered again: {again}");
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(std::fs::read_to_string(context.workspace().join("out.txt")).unwrap(), "written\n");
    context.finish().unwrap();
}

fn wait_for_question(context: &TestContext) -> String {
    let began = Instant::now();
    loop {
        let listed = context.run(["approvals", "list", "--output", "json"]).unwrap();
        let document = listed.json().unwrap_or_default();
        if let Some(id) = document["approvals"][0]["approval_id"].as_str() {
            return id.to_owned();
        }
        assert!(began.elapsed() < PATIENCE, "nothing was asked: {listed}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusing_the_same_thing_twice_ends_the_run_and_nothing_happened() {
    let options = DaemonOptions::new(Model::Scripted(script())).env("PALYRA_RUN_ASK_BEFORE", "palyra.fs.write");
    let daemon = options.start().await.unwrap();
    let (client, workspace) = (daemon.client(), workspace());
    let run = client.create_run(&task("write it", workspace.path())).await.unwrap();
    let answers = Answers { may_it_run: ApprovalDecision::Deny, ..Answers::default() };
    let mut person = Person::new(run.run_id).answering(answers);
    assert_eq!(person.follow(&client).await.unwrap(), Followed::ToItsEnd);
    let detail = client.run(run.run_id).await.unwrap();
    assert_eq!(detail.run.reason, Some(TerminationReason::ApprovalDenied), "{:#?}", names(person.seen()));
    assert!(!workspace.path().join("out.txt").exists());
    daemon.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_is_still_open_after_a_crash() {
    let options = DaemonOptions::new(Model::Scripted(script())).env("PALYRA_RUN_ASK_BEFORE", "palyra.fs.write");
    let mut daemon = options.start().await.unwrap();
    let (client, workspace) = (daemon.client(), workspace());
    let run = client.create_run(&task("write it", workspace.path())).await.unwrap();
    wait_for_phase(&client, run.run_id, RunLifecyclePhase::WaitingForApproval).await;
    let asked = client.run(run.run_id).await.unwrap().pending_approvals;
    daemon.kill9().unwrap();
    daemon.restart().await.unwrap();
    assert_eq!(client.run(run.run_id).await.unwrap().pending_approvals, asked);
    let (detail, events) = finish(&client, run.run_id).await;
    assert_eq!(detail.run.phase, RunLifecyclePhase::Completed);
    let names = names(&events);
    assert!(position(&names, "answer allow") < position(&names, "result ok"), "{names:#?}");
    daemon.finish().await.unwrap();
}
