//! Honest questions and honest endings, through the real programs: what is asked is true, what failed looks failed, what was refused looks refused.

use std::os::unix::fs::PermissionsExt as _;

use palyra_common::{ChangeAttribution, RunLifecyclePhase, RunStreamBody, RunStreamEvent, TerminationReason};
use palyra_testkit::{DaemonOptions, Model, TestContext};
use serde_json::{Value, json};

use super::{call, finish, names, task, wait_for_phase, workspace};

/// What was asked on a tape: the reason, and all evidence as text.
fn asked(events: &[RunStreamEvent]) -> Vec<String> {
    let question = |event: &RunStreamEvent| match &event.body {
        RunStreamBody::ToolApprovalRequest(request) => Some(format!("{} {:?}", request.reason, request.evidence)),
        _ => None,
    };
    events.iter().filter_map(question).collect()
}

#[test]
fn a_command_line_of_the_users_own_is_recognised_through_quotes_and_blanks() {
    let context = TestContext::new().unwrap();
    context.file("notes.md", "Water is wet.\n").unwrap();
    for task in ["run grep \"Water\" notes.md", "run grep  Water  notes.md", "run grep 'Water is' notes.md"] {
        // Nobody could answer a question here: the run would wait for ever.
        let ran = context.run(["run", task]).unwrap();
        assert_eq!(ran.code, 0, "{task}: {ran}");
        assert!(ran.stdout.contains("Water is wet."), "{task}: {ran}");
        assert!(ran.stderr.contains("• palyra.process.run grep"), "{task}: {ran}");
    }
    context.finish().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pipe_is_run_by_a_shell_after_a_question_that_is_true() {
    // With network a shell is not contained.
    let options = DaemonOptions::new(Model::Offline).env("PALYRA_PROCESS_NETWORK", "https://crates.io");
    let daemon = options.start().await.unwrap();
    let (client, place) = (daemon.client(), workspace());
    let run = client.create_run(&task("run cat notes.md | wc -l", place.path())).await.unwrap();
    wait_for_phase(&client, run.run_id, RunLifecyclePhase::WaitingForApproval).await;
    let pending = client.run(run.run_id).await.unwrap().pending_approvals;
    assert!(pending[0].reason.contains("a shell would interpret the command as a script"), "{pending:?}");
    assert!(!pending[0].reason.contains("the model"), "no model is involved: {pending:?}");
    let [shown] = pending[0].evidence.as_slice() else { panic!("{pending:?}") };
    assert_eq!(shown.source.as_deref(), Some("your request"));
    assert_eq!(shown.sentence.as_deref(), Some("cat notes.md | wc -l"));
    let (detail, events) = finish(&client, run.run_id).await;
    assert_eq!(detail.run.phase, RunLifecyclePhase::Completed, "{:?}", names(&events));
    let ran = |event: &RunStreamEvent| matches!(&event.body, RunStreamBody::ToolResult(result) if result.ok);
    assert!(events.iter().any(ran), "{:?}", detail.answer);
    daemon.finish().await.unwrap();
}

#[test]
fn what_was_not_done_does_not_look_done() {
    let context = TestContext::new().unwrap();
    for task in ["compose a symphony", "run ls nosuchfile", "read nosuchfile.md", "list files; water the plants"] {
        let ran = context.run(["run", task]).unwrap();
        assert_eq!(ran.code, 7, "{task}: {ran}");
        assert!(ran.stderr.contains("failed (task_not_done)"), "{task}: {ran}");
        assert!(!ran.stderr.contains("completed"), "{task}: {ran}");
    }
    let told = context.run(["run", "compose a symphony"]).unwrap();
    assert_eq!(told.stdout.matches("palyra models discover").count(), 1, "{told}");
    assert!(!told.stdout.contains("remember"), "{told}");
    let shown = context.run(["runs", "show", "last"]).unwrap();
    assert!(shown.stdout.contains("I did not understand"), "the answer is kept: {shown}");
    let done = context.run(["run", "list files"]).unwrap();
    assert!(done.code == 0 && done.stderr.contains("completed in "), "{done}");
    context.finish().unwrap();
}

#[test]
fn the_end_says_why_a_task_was_not_done_and_repeats_nothing() {
    let context = TestContext::new().unwrap();
    context.file("notes.md", "Water is wet.\n").unwrap();
    let failed = context.run(["run", "run ls nosuchfile"]).unwrap();
    assert!(failed.stderr.contains("✗ palyra.process.run ls nosuchfile"), "{failed}");
    assert!(failed.stderr.contains("failed: exit code 2"), "{failed}");
    assert!(failed.stdout.contains("`ls nosuchfile` failed with exit code 2:\n"), "{failed}");
    assert_eq!(format!("{}{}", failed.stdout, failed.stderr).matches("No such file").count(), 1, "{failed}");
    let several = context.run(["run", "read notes.md, then read nosuch.md"]).unwrap();
    let reason = "\n  1 of 2 steps done: could not read `nosuch.md`: it does not exist";
    assert!(several.stderr.contains(reason), "{several}");
    let shown = context.run(["runs", "show", "last"]).unwrap();
    assert!(shown.stdout.contains("reason     1 of 2 steps done"), "{shown}");
    assert!(!shown.stdout.contains("usage "), "no model was asked: {shown}");
    assert!(!several.stderr.contains("token"), "{several}");
    context.finish().unwrap();
}

#[test]
fn creating_never_replaces_what_exists() {
    let context = TestContext::new().unwrap();
    context.file("notes.md", "Water is wet.\n").unwrap();
    for task in ["create notes.md", "create notes.md with \"x\"", "copy notes.md to notes.md"] {
        let refused = context.run(["run", task]).unwrap();
        assert_eq!(refused.code, 7, "{task}: {refused}");
        assert!(refused.stdout.contains("it exists already"), "{task}: {refused}");
        assert_eq!(std::fs::read_to_string(context.workspace().join("notes.md")).unwrap(), "Water is wet.\n");
    }
    let written = context.run(["run", "write", "a  b", "to", "notes.md"]).unwrap();
    assert_eq!(written.code, 0, "{written}");
    assert_eq!(std::fs::read_to_string(context.workspace().join("notes.md")).unwrap(), "a  b\n");
    let found = context.run(["run", "run", "grep", "a  b", "notes.md"]).unwrap();
    assert!(found.code == 0 && found.stdout.contains("a  b"), "{found}");
    let moved = context.run(["run", "rename notes.md to my notes.md"]).unwrap();
    assert_eq!(moved.code, 7, "which words are the name is not certain: {moved}");
    let moved = context.run(["run", "rename", "notes.md", "to", "my notes.md"]).unwrap();
    assert_eq!(moved.code, 0, "{moved}");
    let read = context.run(["run", "read my notes.md"]).unwrap();
    assert!(read.code == 0 && read.stdout.contains("Read `my notes.md` (1 line, 2 words):\na  b\n"), "{read}");
    context.finish().unwrap();
}

#[test]
fn a_text_on_standard_input_can_be_summarised() {
    let context = TestContext::new().unwrap();
    let ran = context.run_with_input(["run", "summarise this"], "One thing. Two.\n\nMore here.\n").unwrap();
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.starts_with("Summary of standard input (3 lines, 5 words)"), "{ran}");
    assert!(ran.stdout.ends_with(":\n- One thing.\n- More here.\n"), "{ran}");
    context.finish().unwrap();
}

#[test]
fn that_no_model_is_configured_is_said_once() {
    let context = TestContext::new().unwrap().env("PALYRA_MODEL_PROVIDER", "auto");
    let first = context.run(["run", "list files"]).unwrap();
    assert!(first.stderr.contains("\n  no model is configured: the offline planner answers"), "{first}");
    let second = context.run(["run", "list files"]).unwrap();
    assert!(!second.stderr.contains("no model is configured"), "{second}");
    assert!(second.stderr.contains("offline/offline-planner"), "{second}");
    context.finish().unwrap();
}

#[test]
fn a_test_of_no_model_is_not_a_success() {
    let context = TestContext::new().unwrap().env("PALYRA_MODEL_PROVIDER", "auto");
    let ran = context.run(["models", "test"]).unwrap();
    assert_eq!(ran.code, 7, "{ran}");
    assert_eq!(ran.stdout.lines().count(), 1, "{ran}");
    assert!(ran.stdout.starts_with("nothing to test: no model is configured"), "{ran}");
    assert!(ran.stdout.contains("palyra models discover"), "{ran}");
}

#[test]
fn lines_of_a_part_are_not_counted_as_those_of_the_whole() {
    let context = TestContext::new().unwrap();
    context.file("big.txt", "a line\n".repeat(200_000)).unwrap();
    let ran = context.run(["run", "read big.txt"]).unwrap();
    assert!(ran.code == 0 && ran.stdout.contains("Read the beginning of `big.txt` ("), "{ran}");
    assert!(ran.stdout.contains("of 1400000 bytes)"), "{ran}");
    context.finish().unwrap();
}

#[test]
fn an_answer_after_a_failed_program_is_marked() {
    let script = json!({ "turn": [
        call("palyra.process.run", json!({ "argv": ["false"] })),
        { "text": "All is well." },
    ] });
    let context = TestContext::new().unwrap().scripted(&script).unwrap();
    let ran = context.run(["run", "run false"]).unwrap();
    assert_eq!(ran.code, 0, "the answer is for the person to judge: {ran}");
    assert!(ran.stderr.contains("✗ palyra.process.run false"), "{ran}");
    assert!(ran.stderr.contains("completed (last_call_failed)"), "{ran}");
    assert!(ran.stderr.contains("palyra.process.run: exit code 1"), "{ran}");
    context.finish().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_asked_about_a_call_that_cannot_be_made() {
    let script = json!({ "turn": [
        call("palyra.process.run", json!({ "argv": ["no-such-program-here"] })),
        call("palyra.process.run", json!({ "argv": ["sh", "-c", "ls"] })),
        call("palyra.process.run", json!({ "argv": ["ls"], "cwd": "../elsewhere" })),
        call("palyra.process.run", json!({ "argv": ["ls"], "timeout_seconds": 0 })),
        call("palyra.http.fetch", json!({ "url": "not an address" })),
        { "text": "done" },
    ] });
    let daemon = DaemonOptions::new(Model::Scripted(script)).start().await.unwrap();
    let (client, place) = (daemon.client(), workspace());
    let run = client.create_run(&task("do something", place.path())).await.unwrap();
    let (detail, events) = finish(&client, run.run_id).await;
    assert!(asked(&events).is_empty(), "{:?}", names(&events));
    let codes: Vec<&str> = detail.not_run.iter().map(|call| call.error.code.as_str()).collect();
    let expected = ["sandbox_program_not_found", "invalid_arguments", "path_outside_workspace", "invalid_arguments"];
    assert_eq!(codes[..4], expected);
    assert_eq!(codes.len(), 5, "{codes:?}");
    let kinds = names(&events);
    assert!(!kinds.contains(&"tool.intent".to_owned()), "{kinds:?}");
    daemon.finish().await.unwrap();
}

#[test]
fn a_call_that_the_agents_rules_refuse_is_shown_as_refused_everywhere() {
    let script = json!({ "turn": [
        call("palyra.fs.write", json!({ "path": "a.txt", "content": "x" })),
        { "text": "I wrote a.txt." },
    ] });
    let context = TestContext::new().unwrap().scripted(&script).unwrap();
    let started = context.run(["daemon", "start"]).unwrap();
    assert_eq!(started.code, 0, "{started}");
    let set = context.run(["agents", "set", "reader", "--instructions", "Look.", "--tool", "palyra.fs.read"]).unwrap();
    assert_eq!(set.code, 0, "{set}");
    let ran = context.run(["run", "--agent", "reader", "write something"]).unwrap();
    let refused = "palyra.fs.write a.txt refused: the agent `reader` does not have palyra.fs.write";
    assert!(ran.stderr.contains(&format!("✗ {refused}")), "{ran}");
    let shown = context.run(["runs", "show", "last"]).unwrap();
    assert!(shown.stdout.contains(&format!("calls not made\n  ✗ {refused}")), "{shown}");
    let tape = context.run(["runs", "tape", "last"]).unwrap();
    assert!(tape.stdout.contains("t1c1 refused: the agent `reader` does not have palyra.fs.write"), "{tape}");
    assert!(!context.workspace().join("a.txt").exists());
    context.finish().unwrap();
}

/// A server in shell that writes what it is told to a file, wherever that is.
const FILES: &str = r#"#!/bin/sh
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"server/discover"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"files","version":"1"}}}\n' "$id" ;;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"write_file","inputSchema":{"type":"object","properties":{"path":{"type":"string"},"text":{"type":"string"}}}}]}}\n' "$id" ;;
    *'"tools/call"'*)
      path=$(printf '%s' "$line" | sed -n 's/.*"path":"\([^"]*\)".*/\1/p')
      text=$(printf '%s' "$line" | sed -n 's/.*"text":"\([^"]*\)".*/\1/p')
      printf '%s\n' "$text" > "$path"
      printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"written"}]}}\n' "$id" ;;
  esac
done
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_a_server_writes_are_among_the_changed_ones_and_can_be_taken_back() {
    let place = workspace();
    let target = |name: &str| place.path().canonicalize().unwrap().join(name).display().to_string();
    let write = |name: &str| call("mcp.files.write_file", json!({ "path": target(name), "text": "by the server" }));
    let script: Value = json!({ "turn": [write("notes.md"), write("new.txt"), { "text": "done" }] });
    let context = TestContext::new().unwrap().scripted(&script).unwrap();
    let program = context.root().join("server.sh");
    std::fs::write(&program, FILES).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
    let added = context.run(["mcp", "add", "files", "--", &program.display().to_string()]).unwrap();
    assert_eq!(added.code, 0, "{added}");
    let options = DaemonOptions::new(Model::Scripted(script)).state_root(&context.state_root());
    let daemon = options.start().await.unwrap();
    let client = daemon.client();
    let run = client.create_run(&task("note it", place.path())).await.unwrap();
    let (detail, events) = finish(&client, run.run_id).await;
    // The server is not confined, so a path that the model chose is shown; what is said about it is true.
    assert!(!asked(&events).is_empty() && !asked(&events).iter().any(|text| text.contains("outside the workspace")));
    let changed: Vec<&str> = detail.changes.iter().map(|change| change.path.as_str()).collect();
    assert_eq!(changed, ["new.txt", "notes.md"], "{}", daemon.log());
    // Nothing shows that it was not the server.
    assert!(detail.changes.iter().all(|change| change.attribution == ChangeAttribution::Observed));
    assert_eq!(detail.run.reason, Some(TerminationReason::FinalAnswer));
    client.undo_run(run.run_id).await.unwrap();
    assert_eq!(std::fs::read_to_string(place.path().join("notes.md")).unwrap(), "first line\nsecond line\n");
    assert!(!place.path().join("new.txt").exists());
    daemon.finish().await.unwrap();
}
