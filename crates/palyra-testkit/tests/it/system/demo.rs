//! What a newcomer sees first: a task in plain words, with no key and no network, carried out, shown, replayed, undone.

use palyra_testkit::{TestContext, Tree};

const TASK: &str = "list files, then read README.md, then replace \"teh\" with \"the\" in README.md";

#[test]
fn a_task_really_lists_reads_and_patches_and_can_be_undone() {
    let context = TestContext::new().unwrap();
    context.file("README.md", "# Greenhouse\n\nA controller for teh greenhouse.\n").unwrap();
    context.file("docs/vents.md", "# Vents\n").unwrap();
    let before = Tree::of(&context.workspace()).unwrap();

    let run = context.run(["run", TASK]).unwrap();
    assert_eq!(run.code, 0, "{run}");
    for tool in ["palyra.fs.list", "palyra.fs.read", "palyra.fs.apply_patch"] {
        assert!(run.stderr.contains(&format!("• {tool}")), "{tool} is not shown: {run}");
    }
    assert!(run.stderr.contains("palyra runs undo"), "nothing says where to look next: {run}");
    let patched = std::fs::read_to_string(context.workspace().join("README.md")).unwrap();
    assert_eq!(patched, "# Greenhouse\n\nA controller for the greenhouse.\n");

    for command in [&["runs", "replay", "last"][..], &["journal", "verify"], &["runs", "show", "last"]] {
        let run = context.run(command).unwrap();
        assert_eq!(run.code, 0, "{command:?}: {run}");
    }
    let undo = context.run(["runs", "undo", "last"]).unwrap();
    assert_eq!(undo.code, 0, "{undo}");
    assert_eq!(Tree::of(&context.workspace()).unwrap(), before, "undo did not put everything back");
    let again = context.run(["runs", "undo", "last"]).unwrap();
    assert_eq!(again.code, 7, "{again}");

    // An undone run still replays.
    context.finish().unwrap();
}

#[test]
fn events_and_results_are_there_for_programs_too() {
    let context = TestContext::new().unwrap();
    context.file("notes.md", "one\n").unwrap();
    let run = context.run(["run", "--output", "ndjson", "read notes.md"]).unwrap();
    assert_eq!(run.code, 0, "{run}");
    let events: Vec<serde_json::Value> =
        run.stdout.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect();
    assert!(events.iter().map(|event| event["seq"].as_u64().unwrap()).eq(1..=events.len() as u64), "{run}");
    assert_eq!(events.last().unwrap()["status"]["phase"], "completed");

    let piped = context.run_with_input(["run", "--output", "json", "-"], "read notes.md\n").unwrap();
    assert_eq!(piped.code, 0, "{piped}");
    assert_eq!(piped.json().unwrap()["phase"], "completed");
    let listed = context.run(["runs", "list", "--output", "json"]).unwrap().json().unwrap();
    assert_eq!(listed["runs"].as_array().unwrap().len(), 2);
    context.finish().unwrap();
}
