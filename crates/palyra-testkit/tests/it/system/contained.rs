//! Contained programs through the real daemon: they run unasked in tier C, whoever chose them, and undo takes back every byte.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use palyra_common::{RunLifecyclePhase, RunStreamBody, RunStreamEvent, SandboxTier};
use palyra_testkit::{DaemonOptions, Model};
use serde_json::{Value, json};

use super::{call, finish, names, task, workspace};

pub(super) fn run(argv: &[&str]) -> Value {
    call("palyra.process.run", json!({ "argv": argv, "shell": argv.first() == Some(&"sh") }))
}

fn contents(events: &[RunStreamEvent]) -> Vec<String> {
    let content = |event: &RunStreamEvent| match &event.body {
        RunStreamBody::ToolResult(result) => Some(result.content.clone()),
        _ => None,
    };
    events.iter().filter_map(content).collect()
}

fn reasons(events: &[RunStreamEvent]) -> Vec<String> {
    let reason = |event: &RunStreamEvent| match &event.body {
        RunStreamBody::ToolApprovalRequest(request) => Some(request.reason.clone()),
        _ => None,
    };
    events.iter().filter_map(reason).collect()
}

fn git(root: &Path, arguments: &[&str]) {
    let ran = Command::new("git")
        .current_dir(root)
        .args(["-c", "user.name=A", "-c", "user.email=a@example.org"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
}

/// Everything in a directory: mode, content or target, and how many names it has.
fn whole(root: &Path) -> BTreeMap<PathBuf, (u32, u64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut left = vec![root.to_path_buf()];
    while let Some(here) = left.pop() {
        for entry in std::fs::read_dir(&here).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let content = if metadata.is_dir() {
                left.push(path.clone());
                Vec::new()
            } else if metadata.is_symlink() {
                std::fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else {
                std::fs::read(&path).unwrap()
            };
            let names = if metadata.is_dir() { 1 } else { metadata.nlink() };
            found.insert(path, (metadata.mode() & 0o7777, names, content));
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_that_the_model_words_itself_run_unasked_and_every_byte_comes_back() {
    let place = workspace();
    let root = place.path();
    std::fs::write(root.join(".gitignore"), "secret.env\ntarget/\n").unwrap();
    std::fs::write(root.join("secret.env"), "ignored and precious").unwrap();
    std::fs::write(root.join("large"), vec![b'x'; 40 << 20]).unwrap();
    std::fs::write(root.join("tool.sh"), "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(root.join("tool.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    symlink("notes.md", root.join("link")).unwrap();
    std::fs::hard_link(root.join("notes.md"), root.join("twin")).unwrap();
    std::fs::create_dir(root.join("empty")).unwrap();
    git(root, &["init", "-q"]);
    git(root, &["add", "notes.md", ".gitignore"]);
    git(root, &["commit", "-qm", "first"]);
    let before = whole(root);
    let line = "rm -r empty link secret.env; chmod 600 tool.sh; echo more >> twin; truncate -s 1 large; \
                mkdir -p target/debug deep/er; echo built > target/debug/app; ln -s nowhere dangling";
    let fed = call("palyra.process.run", json!({ "argv": ["python3", "-"], "stdin": "print(6 * 7)" }));
    let script = json!({ "turn": [
        run(&["git", "status", "--short"]),
        run(&["sh", "-c", line]),
        run(&["git", "commit", "-qam", "a message that the model made up"]),
        run(&["git", "gc", "-q"]),
        run(&["sh", "-c", "git log --oneline | wc -l"]),
        fed,
        { "text": "done" },
    ] });
    let daemon = DaemonOptions::new(Model::Scripted(script)).start().await.unwrap();
    let created = daemon.client().create_run(&task("tidy up", root)).await.unwrap();
    let (detail, events) = finish(&daemon.client(), created.run_id).await;
    assert_eq!(detail.run.phase, RunLifecyclePhase::Completed, "{}", daemon.log());
    assert_eq!(reasons(&events), Vec::<String>::new(), "nobody is asked");
    let said = contents(&events);
    assert!(said[4].contains("\n2\n") && said[5].contains("\n42\n"), "{said:?}");
    assert!(said[2].contains("in `.git` or ignored by it"), "git's own files are not listed: {}", said[2]);
    let mut tiers = events.iter().filter_map(|event| match &event.body {
        RunStreamBody::ToolAttestation(attested) => Some(attested.tier),
        _ => None,
    });
    assert!(tiers.all(|tier| tier == Some(SandboxTier::C)), "{:?}", names(&events));
    assert_ne!(whole(root), before);
    daemon.client().undo_run(created.run_id).await.unwrap();
    let after = whole(root);
    for (path, was) in &before {
        let is = after.get(path).map(|(mode, names, content)| (*mode, *names, content.len()));
        assert!(after.get(path) == Some(was), "{}: {is:?}", path.display());
    }
    assert_eq!(
        after.len(),
        before.len(),
        "{:?}",
        after.keys().filter(|path| !before.contains_key(*path)).collect::<Vec<_>>()
    );
    git(root, &["fsck", "--strict"]);
    daemon.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_decided_as_contained_and_cannot_be_any_more_is_not_run() {
    let place = workspace();
    // Both calls are decided before the first begins; the pipe that it makes leads out of the sandbox.
    let script = json!({ "turn": [
        { "call": [
            { "tool": "palyra.process.run", "arguments": { "argv": ["mkfifo", "pipe"] } },
            { "tool": "palyra.process.run", "arguments": { "argv": ["touch", "made"] } },
        ] },
        run(&["touch", "made_after_a_question"]),
        { "text": "done" },
    ] });
    let daemon = DaemonOptions::new(Model::Scripted(script)).start().await.unwrap();
    let created = daemon.client().create_run(&task("go", place.path())).await.unwrap();
    let (_, events) = finish(&daemon.client(), created.run_id).await;
    let said = contents(&events);
    assert!(said[1].contains("to be contained and cannot be any more") && said[1].contains("`pipe`"), "{said:?}");
    assert!(!place.path().join("made").exists(), "it did not run less confined");
    let asked = reasons(&events);
    assert!(matches!(&asked[..], [why] if why.contains("`pipe`, a named pipe")), "{asked:?}");
    assert!(place.path().join("made_after_a_question").exists());
    daemon.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_outside_a_variable_or_the_operators_word_bring_the_question_back() {
    let outside = workspace();
    let linked = workspace();
    std::fs::hard_link(outside.path().join("notes.md"), linked.path().join("inside")).unwrap();
    let plain = workspace();
    let listed = [("PALYRA_RUN_ASK_BEFORE", "palyra.process.run")];
    let variable = [("PALYRA_PROCESS_ENV", "SOME_TOKEN"), ("SOME_TOKEN", "hunter22")];
    type Case<'a> = (&'a Path, &'a [(&'a str, &'a str)], &'a str);
    let cases: [Case<'_>; 3] = [
        (linked.path(), &[], "also has a name elsewhere"),
        (plain.path(), &listed, "`run.ask_before` lists"),
        (plain.path(), &variable, "the variable `SOME_TOKEN`"),
    ];
    for (place, environment, expected) in cases {
        let script = json!({ "turn": [run(&["ls", "-a"]), { "text": "done" }] });
        let mut options = DaemonOptions::new(Model::Scripted(script));
        for (name, value) in environment {
            options = options.env(name, value);
        }
        let daemon = options.start().await.unwrap();
        let created = daemon.client().create_run(&task("what is here?", place)).await.unwrap();
        let (_, events) = finish(&daemon.client(), created.run_id).await;
        let asked = reasons(&events);
        assert!(matches!(&asked[..], [why] if why.contains(expected)), "{expected}: {asked:?}");
        daemon.finish().await.unwrap();
    }
}
