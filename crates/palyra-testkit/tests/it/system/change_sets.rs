//! What takes effect later, outside the sandbox, is accepted by a person at the end of a run, or taken back.

use std::path::Path;

use palyra_client::Client;
use palyra_client::api::{ApprovalView, RunDetail};
use palyra_common::{ApprovalDecision, RunId, RunLifecyclePhase, RunStreamBody, RunStreamEvent};
use palyra_testkit::{Answers, DaemonOptions, Model, Person, TestContext, TestDaemon};
use serde_json::{Value, json};

use super::contained::run;
use super::{call, finish, task, wait_for_phase, workspace};

const EVIL: &str = "mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit; echo evil > .envrc; echo good > result; \
                    printf '[core]\\n\\tfsmonitor = evil\\n' > .git/config";

async fn started(script: Value, place: &Path) -> (TestDaemon, RunId) {
    let daemon = DaemonOptions::new(Model::Scripted(script)).start().await.unwrap();
    let created = daemon.client().create_run(&task("go", place)).await.unwrap();
    (daemon, created.run_id)
}

async fn answered(client: &Client, run: RunId, answer: ApprovalDecision) -> RunDetail {
    let answers = Answers { may_it_run: answer, ..Answers::default() };
    Person::new(run).answering(answers).follow(client).await.unwrap();
    client.run(run).await.unwrap()
}

async fn open(client: &Client, run: RunId) -> Vec<ApprovalView> {
    client.run(run).await.unwrap().pending_approvals
}

fn text(place: &Path, name: &str) -> Option<String> {
    std::fs::read_to_string(place.join(name)).ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_restores_exactly_these_files_and_the_answer_is_delivered() {
    let place = workspace();
    std::fs::create_dir(place.path().join(".git")).unwrap();
    std::fs::write(place.path().join(".git/config"), "[core]\n\tbare = false\n").unwrap();
    let (daemon, id) = started(json!({ "turn": [run(&["sh", "-c", EVIL]), { "text": "done" }] }), place.path()).await;
    let client = daemon.client();
    wait_for_phase(&client, id, RunLifecyclePhase::WaitingForApproval).await;
    let [question] = open(&client, id).await.try_into().unwrap();
    for part in ["`.envrc`", "`.git/config`", "`.git/hooks/pre-commit`"] {
        assert!(question.summary.contains(part), "{part}: {}", question.summary);
    }
    assert!(!question.summary.contains("result"), "{}", question.summary);
    let shown = question.arguments.clone().unwrap().to_string();
    assert!(
        shown.contains("fsmonitor = evil") && shown.contains("-\\tbare = false"),
        "the difference is shown: {shown}"
    );
    assert_eq!(text(place.path(), ".envrc").as_deref(), Some("evil\n"), "nothing is taken back before the answer");
    let detail = answered(&client, id, ApprovalDecision::Deny).await;
    assert_eq!(detail.run.phase, RunLifecyclePhase::Completed, "{}", daemon.log());
    assert_eq!(detail.answer.as_deref(), Some("done"));
    let why = detail.run.detail.clone().unwrap();
    assert_eq!(why.code, "changes_taken_back", "{why:?}");
    let place = place.path();
    assert_eq!((text(place, ".envrc"), text(place, ".git/hooks/pre-commit")), (None, None));
    assert_eq!(text(place, ".git/config").as_deref(), Some("[core]\n\tbare = false\n"));
    assert_eq!(text(place, "result").as_deref(), Some("good\n"), "everything else stays");
    client.undo_run(id).await.unwrap();
    assert_eq!(text(place, "result"), None, "and can still be undone");
    daemon.finish().await.unwrap();
}

#[test]
fn what_was_taken_back_does_not_look_done() {
    let context = TestContext::new().unwrap();
    let refused = context.run(["run", "--on-approval", "deny", "write .envrc with \"export A=1\""]).unwrap();
    assert_eq!(refused.code, 7, "{refused}");
    assert!(refused.stderr.contains("failed (task_not_done) in "), "{refused}");
    assert!(refused.stderr.contains("`.envrc`") && refused.stderr.contains("it was removed"), "{refused}");
    assert!(!refused.stderr.contains("changed") && !refused.stderr.contains("+ .envrc"), "{refused}");
    assert!(!context.workspace().join(".envrc").exists());
    let shown = context.run(["runs", "show", "last", "--output", "json"]).unwrap().json().unwrap();
    assert_eq!((&shown["phase"], &shown["changes"]), (&json!("failed"), &json!([])), "{shown}");
    // What nobody refused is still among the changes, and can be undone.
    let task = "write .envrc with \"export A=1\", then write ok.txt with \"fine\"";
    let refused = context.run(["run", "--on-approval", "deny", task]).unwrap();
    assert_eq!(refused.code, 7, "{refused}");
    assert!(refused.stderr.contains("1 file changed (to undo: palyra runs undo "), "{refused}");
    assert!(refused.stderr.contains("  + ok.txt\n") && !refused.stderr.contains("+ .envrc"), "{refused}");
    let undone = context.run(["runs", "undo", "last"]).unwrap();
    assert!(undone.code == 0 && !context.workspace().join("ok.txt").exists(), "{undone}");
    context.finish().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_person_accepts_stays_and_is_asked_about_once() {
    let place = workspace();
    let script = json!({ "turn": [
        run(&["sh", "-c", EVIL]),
        run(&["sh", "-c", "echo more >> .envrc; rm .git/hooks/pre-commit"]),
        { "text": "done" },
    ] });
    let (daemon, id) = started(script, place.path()).await;
    let (detail, events) = finish(&daemon.client(), id).await;
    assert_eq!(detail.run.phase, RunLifecyclePhase::Completed);
    let asked = |event: &RunStreamEvent| match &event.body {
        RunStreamBody::ToolApprovalRequest(request) => Some(request.summary.clone()),
        _ => None,
    };
    let asked: Vec<String> = events.iter().filter_map(asked).collect();
    assert!(matches!(&asked[..], [one] if !one.contains("pre-commit")), "what is gone again is no question: {asked:?}");
    assert_eq!(text(place.path(), ".envrc").as_deref(), Some("evil\nmore\n"));
    daemon.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_question_survives_a_kill_and_a_refusal_after_it_takes_back() {
    let place = workspace();
    let (mut daemon, id) =
        started(json!({ "turn": [run(&["sh", "-c", EVIL]), { "text": "done" }] }), place.path()).await;
    wait_for_phase(&daemon.client(), id, RunLifecyclePhase::WaitingForApproval).await;
    let before = open(&daemon.client(), id).await;
    daemon.kill9().unwrap();
    daemon.restart().await.unwrap();
    let client = daemon.client();
    assert_eq!(open(&client, id).await[0].approval_id, before[0].approval_id);
    let detail = answered(&client, id, ApprovalDecision::Deny).await;
    assert_eq!(detail.run.phase, RunLifecyclePhase::Completed, "{}", daemon.log());
    assert_eq!((text(place.path(), ".envrc"), text(place.path(), ".git/config")), (None, None));
    daemon.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_is_stopped_leaves_nothing_that_takes_effect_later() {
    let place = workspace();
    let (daemon, id) = started(json!({ "turn": [run(&["sh", "-c", EVIL]), { "text": "done" }] }), place.path()).await;
    let client = daemon.client();
    wait_for_phase(&client, id, RunLifecyclePhase::WaitingForApproval).await;
    client.abort_run(id, &Default::default()).await.unwrap();
    wait_for_phase(&client, id, RunLifecyclePhase::Aborted).await;
    assert_eq!((text(place.path(), ".envrc"), text(place.path(), ".git/config")), (None, None));
    assert_eq!(text(place.path(), "result").as_deref(), Some("good\n"));
    daemon.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_are_executed_under_another_name_are_asked_about_and_what_is_cut_off_is_said() {
    let place = workspace();
    let root = place.path();
    std::fs::create_dir_all(root.join(".git")).unwrap();
    std::fs::write(root.join(".git/config"), "[core]\n\thooksPath = tools/hooks\n").unwrap();
    let line = "mkdir -p docs/c tools/hooks; ln -s docs/c .cargo; echo \"[build]\" > docs/c/config.toml; \
                for i in $(seq 4000); do echo '# padding'; done > tools/hooks/pre-commit; echo evil >> tools/hooks/pre-commit";
    let (daemon, id) = started(json!({ "turn": [run(&["sh", "-c", line]), { "text": "done" }] }), root).await;
    let client = daemon.client();
    wait_for_phase(&client, id, RunLifecyclePhase::WaitingForApproval).await;
    let [question] = open(&client, id).await.try_into().unwrap();
    for part in ["not all of this is shown", "`.cargo`", "`docs/c/config.toml`", "`tools/hooks/pre-commit`"] {
        assert!(question.summary.contains(part), "{part}: {}", question.summary);
    }
    let shown = question.arguments.clone().unwrap().to_string();
    assert!(shown.contains("+evil") && shown.contains("are not shown …"), "{shown}");
    answered(&client, id, ApprovalDecision::Deny).await;
    assert_eq!((text(root, ".cargo/config.toml"), text(root, "docs/c/config.toml")), (None, None));
    assert_eq!(text(root, "tools/hooks/pre-commit"), None);
    daemon.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ordinary_work_asks_nothing_at_the_end() {
    let place = workspace();
    let write = |path: &str, content: &str| call("palyra.fs.write", json!({ "path": path, "content": content }));
    let script = json!({ "turn": [
        run(&["git", "init", "-q"]),
        run(&["git", "config", "user.name", "Ada"]),
        write("Makefile", "all:\n\ttrue\n"),
        write("AGENTS.md", "be kind\n"),
        run(&["sh", "-c", "printf '[package]\\nname = \"a\"\\n' > Cargo.toml; mkdir src; echo 'fn main() {}' > src/main.rs"]),
        run(&["git", "add", "."]),
        { "text": "done" },
    ] });
    let (daemon, id) = started(script, place.path()).await;
    let (detail, events) = finish(&daemon.client(), id).await;
    assert_eq!(detail.run.phase, RunLifecyclePhase::Completed, "{}", daemon.log());
    let is_question = |event: &&RunStreamEvent| matches!(&event.body, RunStreamBody::ToolApprovalRequest(_));
    assert_eq!(events.iter().filter(is_question).count(), 0);
    daemon.finish().await.unwrap();
}
