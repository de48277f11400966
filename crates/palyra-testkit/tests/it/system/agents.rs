//! `palyra agents`: set up by flags and by file, shown, used and removed.

use palyra_testkit::TestContext;
use serde_json::json;

use super::call;

#[test]
fn an_agent_is_set_up_changed_used_and_removed() {
    let script = json!({ "turn": [
        call("palyra.fs.write", json!({ "path": "a.txt", "content": "x" })),
        { "echo": "last_result" },
    ] });
    let context = TestContext::new().unwrap().scripted(&script).unwrap();
    let palyra = |arguments: &[&str]| context.run(arguments).unwrap();
    let started = palyra(&["daemon", "start"]);
    assert_eq!(started.code, 0, "{started}");
    let none = palyra(&["agents", "list"]);
    assert!(none.code == 0 && none.stderr.contains("no agents"), "{none}");

    let set = palyra(&[
        "agents",
        "set",
        "reader",
        "--instructions",
        "Only look.",
        "--tool",
        "palyra.fs.read",
        "--mode",
        "strict",
    ]);
    assert!(set.code == 0 && set.stdout.starts_with("Created agent reader, version "), "{set}");
    // What is not named stays as it is.
    let changed = palyra(&["agents", "set", "reader", "--name", "The reader", "--tool", "palyra.fs.*"]);
    assert!(changed.stdout.starts_with("Updated agent reader"), "{changed}");
    let shown = palyra(&["agents", "show", "reader", "--output", "json"]).json().unwrap();
    assert_eq!(
        (&shown["name"], &shown["instructions"], &shown["mode"], &shown["tools"]),
        (&json!("The reader"), &json!("Only look."), &json!("strict"), &json!(["palyra.fs.*"]))
    );
    // A file says everything.
    context.file("reader.toml", "instructions = \"\"\"\nRead.\nSay.\"\"\"\ntools = [\"palyra.fs.read\"]\n").unwrap();
    let from_file = palyra(&["agents", "set", "reader", "--from", "reader.toml"]);
    assert_eq!(from_file.code, 0, "{from_file}");
    let shown = palyra(&["agents", "show", "reader"]);
    assert!(shown.stdout.contains("tools      palyra.fs.read\n") && shown.stdout.ends_with("Read.\nSay.\n"), "{shown}");
    assert!(!shown.stdout.contains("The reader"), "{shown}");
    context.file("wrong.toml", "instruction = \"typo\"").unwrap();
    for wrong in [
        &["agents", "set", "reader", "--from", "wrong.toml"][..],
        &["agents", "set", "Reader"],
        &["agents", "set", "reader", "--tool", "a*b"],
    ] {
        assert_eq!(palyra(wrong).code, 2, "{wrong:?}: {}", palyra(wrong));
    }

    let run = palyra(&["run", "--agent", "reader", "write something"]);
    assert!(run.code == 0 && run.stdout.contains("this agent does not have palyra.fs.write"), "{run}");
    let page = palyra(&["runs", "show", "last"]);
    assert!(page.stdout.contains("agent      reader, version "), "{page}");
    let seen = palyra(&["runs", "context", "last"]);
    assert!(seen.stdout.contains("operator  reader, version "), "{seen}");
    let seen = palyra(&["runs", "context", "last", "--full"]);
    assert!(seen.stdout.contains("which you are:\nRead.\nSay.\n"), "{seen}");
    let mistyped = palyra(&["run", "--agent", "raeder", "x"]);
    assert!(mistyped.code == 8 && mistyped.stderr.contains("did you mean `reader`?"), "{mistyped}");

    let session = palyra(&["sessions", "new", "--key", "mine", "--agent", "reader"]);
    assert_eq!(session.code, 0, "{session}");
    let removed = palyra(&["agents", "remove", "reader"]);
    assert_eq!((removed.code, removed.stdout.as_str()), (0, "Removed agent reader\n"), "{removed}");
    let orphaned = palyra(&["run", "--session", "mine", "x"]);
    assert!(orphaned.code == 8 && orphaned.stderr.contains("[agent_not_found]"), "{orphaned}");
    context.finish().unwrap();
}
