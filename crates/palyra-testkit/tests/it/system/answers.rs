//! What commands that steer runs say about what became of them: the end of an aborted run, a question that is closed, a call that nobody was asked
//! about, a file that cannot be put back.

use palyra_testkit::{Run, TestContext};
use serde_json::{Value, json};

use super::call;

/// A home where writing a file is asked about first.
fn asking(turns: usize) -> TestContext {
    let write = call("palyra.fs.write", json!({ "path": "out.txt", "content": "written\n" }));
    let mut script = vec![write; turns];
    script.push(json!({ "text": "all done" }));
    let context = TestContext::new().unwrap().scripted(&json!({ "turn": script })).unwrap();
    context.env("PALYRA_RUN_ASK_BEFORE", "palyra.fs.write")
}

/// The one open question.
fn open_question(context: &TestContext) -> String {
    let listed = context.run(["approvals", "list", "--output", "ndjson"]).unwrap();
    let question: Value = serde_json::from_str(listed.stdout.lines().next().unwrap()).unwrap();
    question["approval_id"].as_str().unwrap().to_owned()
}

fn assert_closed(ran: &Run, why: &str) {
    assert_eq!(ran.code, 7, "{ran}");
    assert!(ran.stderr.contains("[approval_closed]") && ran.stderr.contains(why), "{ran}");
}

#[test]
fn an_aborted_run_is_told_when_it_has_ended() {
    let slow = json!({ "turn": [{ "text": "slow", "delay_ms": 600_000 }] });
    let context = TestContext::new().unwrap().scripted(&slow).unwrap();
    let started = context.run(["run", "--detach", "wait"]).unwrap();
    let id = started.stdout.trim();
    let aborted = context.run(["runs", "abort", "last"]).unwrap();
    assert_eq!((aborted.code, aborted.stdout.as_str()), (0, format!("run {id}: cancelled\n").as_str()), "{aborted}");
    context.finish().unwrap();
}

#[test]
fn a_question_that_is_closed_says_what_closed_it() {
    let context = asking(1);
    assert_eq!(context.run(["run", "write it"]).unwrap().code, 6);
    let id = open_question(&context);
    assert_eq!(context.run(["approvals", "decide", &id, "allow"]).unwrap().code, 0);
    assert_closed(&context.run(["approvals", "decide", &id, "deny"]).unwrap(), "was already decided: allow by ");
    let end = &id[20..];
    assert_closed(&context.run(["approvals", "decide", end, "deny"]).unwrap(), "was already decided: allow by ");
    assert_eq!(context.run(["runs", "attach", "last"]).unwrap().code, 0);

    assert_eq!(context.run(["run", "write it"]).unwrap().code, 6);
    let id = open_question(&context);
    assert_eq!(context.run(["runs", "abort", "last"]).unwrap().code, 0);
    assert_closed(&context.run(["approvals", "decide", &id, "allow"]).unwrap(), "was cancelled");
    context.finish().unwrap();
}

#[test]
fn a_call_that_nobody_was_asked_about_is_not_refused_by_a_person() {
    let context = asking(1);
    let denied = context.run(["run", "--on-approval", "deny", "write it"]).unwrap();
    assert!(denied.stderr.contains("refused: it was denied (`--on-approval deny`)"), "{denied}");
    assert!(!denied.stderr.contains("a person"), "{denied}");
    let shown = context.run(["runs", "show", "last"]).unwrap();
    assert!(shown.stdout.contains("it was denied (`--on-approval deny`)"), "{shown}");
    let tape = context.run(["runs", "tape", "last"]).unwrap();
    for told in [&denied, &shown, &tape] {
        assert!(!format!("{told}").contains("propose it again"), "advice for the model is shown to a person: {told}");
    }

    assert_eq!(context.run(["run", "write it"]).unwrap().code, 6);
    let id = open_question(&context);
    let decided = context.run(["approvals", "decide", &id, "deny", "--reason", "use the other folder"]).unwrap();
    assert_eq!(decided.code, 0, "{decided}");
    context.run(["runs", "attach", "last"]).unwrap();
    let told = context.run(["runs", "context", "last", "--full"]).unwrap();
    assert!(told.stdout.contains("this call was denied (use the other folder); do not propose it again"), "{told}");
    let long = "x".repeat(501);
    let refused = context.run(["approvals", "decide", &id, "deny", "--reason", &long]).unwrap();
    assert_eq!(refused.code, 2, "{refused}");
    context.finish().unwrap();
}

#[test]
fn undo_names_each_file_and_where_its_old_content_is() {
    let script = json!({ "turn": [
        call("palyra.fs.write", json!({ "path": "new.txt", "content": "new\n" })),
        call("palyra.fs.write", json!({ "path": "old.txt", "content": "changed\n" })),
        { "text": "all done" },
    ] });
    let context = TestContext::new().unwrap().scripted(&script).unwrap();
    let none = context.run(["runs", "undo", "last"]).unwrap();
    assert_eq!(none.code, 8, "{none}");
    assert!(none.stderr.contains("there is no run yet") && none.stderr.contains("hint: start a run with"), "{none}");

    let old = context.workspace().join("old.txt");
    std::fs::write(&old, "before\n").unwrap();
    let run = context.run(["run", "change them"]).unwrap();
    assert_eq!(run.code, 0, "{run}");
    std::fs::write(&old, "mine\n").unwrap();
    let conflict = context.run(["runs", "undo", "last"]).unwrap();
    assert_eq!(conflict.code, 7, "{conflict}");
    let kept = conflict.stderr.lines().find_map(|line| line.trim().strip_prefix("old.txt: ")).unwrap();
    assert_eq!(std::fs::read_to_string(kept).unwrap(), "before\n");

    std::fs::write(&old, "changed\n").unwrap();
    let undone = context.run(["runs", "undo", "last"]).unwrap();
    assert_eq!(undone.code, 0, "{undone}");
    assert!(undone.stdout.contains(": 1 file restored, 1 removed\n"), "{undone}");
    assert!(undone.stdout.contains("\n  new.txt: removed; it was not there before the run\n"), "{undone}");
    assert!(undone.stdout.contains("\n  old.txt: restored to what it was before the run\n"), "{undone}");
    context.finish().unwrap();
}

#[test]
fn people_are_not_given_the_advice_that_is_meant_for_a_model() {
    let context = TestContext::new().unwrap().env("PALYRA_RUN_ASK_BEFORE", "palyra.process.run");
    let refused = context.run(["run", "--on-approval", "deny", "run sh -c \"exit 3\""]).unwrap();
    let shown = context.run(["runs", "show", "last"]).unwrap();
    for told in [&refused, &shown] {
        let text = format!("{}{}", told.stdout, told.stderr);
        assert!(text.contains("this call was denied (`--on-approval deny`)") && !text.contains("propose"), "{told}");
    }
    context.finish().unwrap();
}

#[test]
fn a_hint_names_no_option_that_the_command_does_not_have() {
    let context = TestContext::new().unwrap();
    let refused = context.run(["workspaces", "grant", "user:ci", "nowhere"]).unwrap();
    assert_eq!(refused.code, 8, "{refused}");
    assert!(
        refused.stderr.contains("hint: name a directory that exists") && !refused.stderr.contains("--"),
        "{refused}"
    );
    // Nothing ran, so there is nothing that the end of a test replays.
    assert_eq!(context.run(["daemon", "stop"]).unwrap().code, 0);
}

/// The words of the first command that a hint names.
fn named_command(ran: &Run) -> Vec<String> {
    let hint = ran.stderr.lines().find_map(|line| line.strip_prefix("hint: `palyra ")).unwrap();
    hint.split('`').next().unwrap().split(' ').map(str::to_owned).collect()
}

#[test]
fn a_conflict_of_an_undo_names_the_commands_that_go_on() {
    let write = |path: &str| call("palyra.fs.write", json!({ "path": path, "content": "changed\n" }));
    let script = json!({ "turn": [write("a.txt"), write("d/b.txt"), write("new.txt"), { "text": "all done" }] });
    let context = TestContext::new().unwrap().scripted(&script).unwrap();
    let file = |name: &str| context.workspace().join(name);
    std::fs::create_dir(file("d")).unwrap();
    for name in ["a.txt", "d/b.txt"] {
        std::fs::write(file(name), "before\n").unwrap();
    }
    let text = |name: &str| std::fs::read_to_string(file(name)).ok();
    assert_eq!(context.run(["run", "change them"]).unwrap().code, 0);
    std::fs::write(file("a.txt"), "mine\n").unwrap();

    let conflict = context.run(["runs", "undo", "last"]).unwrap();
    assert_eq!(conflict.code, 7, "{conflict}");
    assert!(conflict.stderr.contains("nothing was undone: changed since the run: `a.txt`"), "{conflict}");
    assert!(conflict.stderr.contains("undoes the other 2 files"), "{conflict}");
    assert_eq!(text("new.txt").as_deref(), Some("changed\n"));
    let nothing = context.run(["runs", "undo", "last", "elsewhere"]).unwrap();
    assert!(nothing.code == 7 && nothing.stderr.contains("it changed nothing at `elsewhere`"), "{nothing}");

    let part = context.run(["runs", "undo", "last", "d"]).unwrap();
    assert_eq!(part.code, 0, "{part}");
    assert!(part.stdout.contains(": 1 file restored\n"), "{part}");
    assert!(part.stdout.contains("\n  new.txt: left as it is; not asked for\n"), "{part}");
    assert_eq!((text("d/b.txt").as_deref(), text("new.txt").as_deref()), (Some("before\n"), Some("changed\n")));

    let conflict = context.run(["runs", "undo", "last"]).unwrap();
    assert!(conflict.code == 7 && conflict.stderr.contains("undoes the other 1 file;"), "{conflict}");
    let rest = context.run(named_command(&conflict)).unwrap();
    assert_eq!(rest.code, 0, "{rest}");
    assert!(rest.stdout.contains("\n  a.txt: left as it is; changed since the run\n"), "{rest}");
    assert_eq!((text("a.txt").as_deref(), text("new.txt")), (Some("mine\n"), None));

    let alone = context.run(["runs", "undo", "last"]).unwrap();
    assert!(alone.code == 7 && !alone.stderr.contains("skip"), "nothing else is left: {alone}");
    let all = context.run(named_command(&alone)).unwrap();
    assert_eq!(all.code, 0, "{all}");
    assert!(all.stdout.starts_with("undid run "), "{all}");
    assert_eq!(text("a.txt").as_deref(), Some("before\n"));
    let kept = all.stderr.lines().find_map(|line| line.trim().strip_prefix("a.txt: "));
    assert_eq!(std::fs::read_to_string(kept.unwrap()).unwrap(), "mine\n", "what was overwritten can be found");
    let again = context.run(["runs", "undo", "last"]).unwrap();
    assert!(again.code == 7 && again.stderr.contains("it was undone before"), "{again}");
    context.finish().unwrap();
}

/// The command that a list names for its next page, as words.
fn next(ran: &Run) -> Vec<String> {
    let line = ran.stderr.lines().find_map(|line| line.strip_prefix("next: palyra "));
    line.unwrap_or_else(|| panic!("no next page: {ran}")).split(' ').map(str::to_owned).collect()
}

#[test]
fn the_next_page_is_named_with_the_filters_of_the_first() {
    let context = TestContext::new().unwrap();
    for task in ["list files", "dance", "list files"] {
        context.run(["run", task]).unwrap();
    }
    let first = context.run(["runs", "list", "-n", "1", "--phase", "completed"]).unwrap();
    let words = next(&first);
    assert!(words.join(" ").starts_with("runs list --phase completed --limit 1 --before "), "{words:?}");
    let second = context.run(words).unwrap();
    assert!(second.code == 0 && second.stdout.contains("list files"), "{second}");
    assert!(!second.stderr.contains("next:") || !second.stdout.contains("dance"), "{second}");

    let first = context.run(["sessions", "list", "-n", "2"]).unwrap();
    let second = context.run(next(&first)).unwrap();
    assert_eq!((second.code, second.stdout.lines().count()), (0, 2), "{second}");
    assert!(!second.stderr.contains("next:"), "{second}");
    context.finish().unwrap();
}
