//! The command line in scripts and pipes: no terminal, standard input that holds something, a daemon that comes and goes.

use palyra_testkit::TestContext;
use serde_json::json;

use super::call;

#[test]
fn a_script_gets_the_commands_that_answer_and_follows_to_the_end() {
    let script = json!({ "turn": [
        call("palyra.fs.write", json!({ "path": "out.txt", "content": "written\n" })),
        { "text": "all done" },
    ] });
    let context =
        TestContext::new().unwrap().scripted(&script).unwrap().env("PALYRA_RUN_ASK_BEFORE", "palyra.fs.write");
    let asked = context.run(["run", "write it"]).unwrap();
    assert_eq!(asked.code, 6, "{asked}");
    assert!(!context.workspace().join("out.txt").exists());
    let command = |label: &str| -> Vec<String> {
        let line = asked.stderr.lines().find_map(|line| line.trim_start().strip_prefix(label));
        line.unwrap_or_else(|| panic!("no `{label}`: {asked}")).split_whitespace().skip(1).map(str::to_owned).collect()
    };
    let details = context.run(command("details ")).unwrap();
    assert!(details.stdout.contains("out.txt"), "{details}");
    assert_eq!(context.run(command("allow ")).unwrap().code, 0);
    let attached = context.run(command("go on ")).unwrap();
    assert_eq!((attached.code, attached.stdout.as_str()), (0, "all done\n"), "{attached}");
    assert!(
        attached.stderr.contains("• palyra.fs.write out.txt") && attached.stderr.contains("\ncompleted in "),
        "{attached}"
    );
    assert_eq!(std::fs::read_to_string(context.workspace().join("out.txt")).unwrap(), "written\n");
    context.finish().unwrap();
}

#[test]
fn lists_work_after_the_daemon_was_stopped() {
    let context = TestContext::new().unwrap();
    assert_eq!(context.run(["run", "list files"]).unwrap().code, 0);
    assert_eq!(context.run(["daemon", "stop"]).unwrap().code, 0);
    let listed = context.run(["runs", "list"]).unwrap();
    assert!(listed.code == 0 && listed.stdout.contains("list files"), "{listed}");
    assert!(listed.stderr.contains("the daemon was not running; started it"), "{listed}");
    context.finish().unwrap();
}

#[test]
fn the_daemon_keeps_no_directory_of_whoever_started_it() {
    let context = TestContext::new().unwrap();
    let elsewhere = context.root().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let started = context.run_in(&elsewhere, ["daemon", "start", "--output", "json"]).unwrap();
    assert_eq!(started.code, 0, "{started}");
    let pid = started.json().unwrap()["pid"].as_u64().unwrap();
    assert_eq!(std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap(), std::path::Path::new("/"));
    std::fs::remove_dir(&elsewhere).unwrap();
    assert_eq!(context.run(["run", "list files"]).unwrap().code, 0);
    context.finish().unwrap();
}

#[test]
fn what_is_piped_in_beside_a_task_reaches_the_model_as_data() {
    let script = json!({ "turn": [{ "text": "two lines" }] });
    let context = TestContext::new().unwrap().scripted(&script).unwrap();
    let run = context.run_with_input(["run", "count the lines"], "first heron\nsecond heron\n").unwrap();
    assert_eq!(run.code, 0, "{run}");
    let seen = context.run(["runs", "context", "last", "--full"]).unwrap();
    assert!(seen.stdout.contains("attachment standard input") && seen.stdout.contains("second heron"), "{seen}");
    context.finish().unwrap();
}
