//! Bad input through the real command: one clear line with a stable code, a hint, the exit code of the contract, and nothing
//! half-done.
//!
//! Two tables. In the first the command itself refuses. In the second the model asks for something that a tool refuses: the run
//! goes on and completes, the line is the tool's, and the model is told why. The workspace is compared before and after.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;

use palyra_testkit::{Run, TestContext, Tree};
use serde_json::{Value, json};

/// The one error line and the hint line of a command that failed.
fn error_lines(run: &Run) -> (String, String) {
    let errors: Vec<&str> = run.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(errors.len(), 1, "not exactly one error line: {run}");
    let hint =
        run.stderr.lines().find_map(|line| line.strip_prefix("hint: ")).unwrap_or_else(|| panic!("no hint: {run}"));
    (errors[0].to_owned(), hint.to_owned())
}

/// A command that must be refused.
struct Refused {
    name: &'static str,
    prepare: fn(&TestContext),
    environment: &'static [(&'static str, &'static str)],
    arguments: &'static [&'static str],
    code: i32,
    stable_code: &'static str,
    says: &'static str,
}

const fn refused(
    name: &'static str,
    arguments: &'static [&'static str],
    code: i32,
    stable_code: &'static str,
) -> Refused {
    Refused { name, prepare: |_| {}, environment: &[], arguments, code, stable_code, says: "" }
}

fn config(context: &TestContext, text: &str) {
    let directory = context.root().join("home/.config/palyra");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("palyra.toml"), text).unwrap();
}

fn refusals() -> Vec<Refused> {
    vec![
        refused("an empty task", &["run", ""], 2, "task_empty"),
        refused("a task of blanks", &["run", "  ", " "], 2, "task_empty"),
        Refused {
            says: "`nowhere`",
            ..refused("a missing workspace", &["run", "--workspace", "nowhere", "list files"], 8, "workspace_not_found")
        },
        Refused {
            prepare: |context| drop(context.file("a-file", "x").unwrap()),
            ..refused("a file as workspace", &["run", "--workspace", "a-file", "list files"], 8, "workspace_not_found")
        },
        refused("no journal to verify", &["journal", "verify"], 8, "journal_not_found"),
        Refused {
            environment: &[("PALYRA_CONFIG", "/nonexistent/palyra.toml")],
            says: "/nonexistent/palyra.toml",
            ..refused("a named config file that is missing", &["run", "list files"], 2, "config_missing")
        },
        Refused {
            prepare: |context| config(context, "version = 1\n[run\nmax_turns = 3\n"),
            says: "palyra.toml:2",
            ..refused("a config file that is no TOML", &["config", "validate"], 2, "config_invalid")
        },
        Refused {
            prepare: |context| {
                fs::create_dir_all(context.root().join("home/.config/palyra/palyra.toml")).unwrap();
            },
            ..refused("a directory as config file", &["config", "validate"], 2, "config_unreadable")
        },
        Refused {
            prepare: |context| config(context, "version = 1\n[run]\nmax_turn = 3\n"),
            says: "did you mean `run.max_turns`?",
            ..refused("an unknown key", &["run", "list files"], 2, "config_unknown_key")
        },
        Refused {
            prepare: |context| config(context, "version = 1\n[run]\nmax_turns = \"many\"\n"),
            says: "palyra.toml:3",
            ..refused("a value of the wrong type", &["run", "list files"], 2, "config_wrong_type")
        },
        Refused {
            prepare: |context| config(context, "version = 2\n"),
            ..refused("a config file of the future", &["config", "validate"], 2, "config_version_unsupported")
        },
        Refused {
            environment: &[("PALYRA_RUN_MAX_TURNS", "many")],
            says: "PALYRA_RUN_MAX_TURNS",
            ..refused("a variable of the wrong type", &["run", "list files"], 2, "config_wrong_type")
        },
        Refused {
            environment: &[("PALYRA_DAEMON_HTTP_BIND", "0.0.0.0:7142")],
            ..refused("a public bind", &["run", "list files"], 2, "public_bind_refused")
        },
        refused("an unknown key to explain", &["config", "explain", "run.max_turn"], 2, "config_unknown_key"),
        refused("a wrong value to set", &["config", "set", "run.max_turns", "many"], 2, "config_wrong_type"),
    ]
}

#[test]
fn a_command_refuses_bad_input_with_one_line_and_leaves_everything_as_it_was() {
    let mut failures = Vec::new();
    for case in refusals() {
        let mut context = TestContext::new().unwrap();
        for (name, value) in case.environment {
            context = context.env(name, value);
        }
        (case.prepare)(&context);
        let before = Tree::of(context.root()).unwrap();
        let run = context.run(case.arguments).unwrap();
        let result = std::panic::catch_unwind(|| {
            let (error, _) = error_lines(&run);
            assert_eq!(run.code, case.code, "{run}");
            assert!(error.contains(&format!("[{}]", case.stable_code)), "{run}");
            assert!(error.contains(case.says), "`{}` is not said: {run}", case.says);
        });
        if result.is_err() {
            failures.push(format!("{}: {run}", case.name));
        }
        if Tree::of(context.root()).unwrap() != before {
            failures.push(format!(
                "{}: something was left behind: {:?}",
                case.name,
                Tree::of(context.root()).unwrap().names()
            ));
        }
        let mut as_json = case.arguments.to_vec();
        as_json.extend(["--output", "json"]);
        let json = context.run(&as_json).unwrap();
        let told = json.json().unwrap_or_default();
        if json.code != case.code
            || told["error"]["code"] != case.stable_code
            || !told["error"]["recovery_hint"].is_string()
        {
            failures.push(format!("{}, as JSON: {json}", case.name));
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn an_error_reads_like_this() {
    let context = TestContext::new().unwrap();
    config(&context, "version = 1\n[run]\nmax_turn = 3\n");
    let run = context.run(["run", "list files"]).unwrap();
    assert_eq!(
        run.snapshot(&context.filters()),
        "exit: 2\n--- stdout\n--- stderr\n\
         error: [HOME]/.config/palyra/palyra.toml:3: unknown key `run.max_turn`; did you mean `run.max_turns`? [config_unknown_key]\n\
         hint: run `palyra config list` to see every key\n"
    );
}

#[test]
fn with_a_daemon_running_unknown_ids_and_a_second_daemon_are_refused() {
    let context = TestContext::new().unwrap();
    context.file("notes.md", "one\n").unwrap();
    let done = context.run(["run", "read notes.md"]).unwrap();
    assert_eq!(done.code, 0, "{done}");
    let unknown = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    for (arguments, code, stable_code) in [
        (vec!["runs", "show", unknown], 8, "run_not_found"),
        (vec!["runs", "show", "zzzz"], 8, "id_not_found"),
        (vec!["runs", "abort", "last"], 7, "run_wrong_phase"),
        (vec!["runs", "undo", "last"], 7, "cannot_undo"),
        (vec!["approvals", "decide", unknown, "allow"], 8, "approval_not_found"),
        (vec!["sessions", "show", unknown], 8, "session_not_found"),
        (vec!["run", "--session", unknown, "read notes.md"], 8, "session_not_found"),
        (vec!["run", "look at @file:missing.md"], 2, "file_reference_invalid"),
        (vec!["daemon", "run"], 7, "state_in_use"),
        (vec!["journal", "prove", "999999"], 8, "record_not_found"),
    ] {
        let run = context.run(&arguments).unwrap();
        let (error, _) = error_lines(&run);
        assert!(
            error.contains(&format!("[{stable_code}]")) && run.code == code,
            "{arguments:?} → {code} {stable_code}, but: {run}"
        );
    }
    let status = context.run(["daemon", "status"]).unwrap();
    assert_eq!(status.code, 0, "the daemon suffered: {status}");
}

/// A call that a tool must refuse.
struct BadCall {
    name: &'static str,
    tool: &'static str,
    arguments: Value,
    stable_code: &'static str,
}

fn bad_calls() -> Vec<BadCall> {
    let bad = |name, tool, arguments, stable_code| BadCall { name, tool, arguments, stable_code };
    let (read, write, patch) = ("palyra.fs.read", "palyra.fs.write", "palyra.fs.apply_patch");
    let update = |file: &str, old: &str| json!({ "patch": format!("*** Begin Patch\n*** Update File: {file}\n-{old}\n+new\n*** End Patch\n") });
    let two_files = "*** Begin Patch\n*** Update File: notes.md\n-one\n+two\n*** Update File: other.md\n-wrong\n+new\n*** End Patch\n";
    vec![
        bad("a binary file", read, json!({ "path": "blob.bin" }), "binary_file"),
        bad("a file that is not UTF-8", read, json!({ "path": "latin1.txt" }), "not_utf8"),
        bad("a missing file", read, json!({ "path": "nothing.md" }), "path_not_found"),
        bad("a directory", read, json!({ "path": "docs" }), "path_is_directory"),
        bad("a path above the workspace", read, json!({ "path": "../home/secret" }), "path_outside_workspace"),
        bad("an absolute path", read, json!({ "path": "/etc/passwd" }), "path_outside_workspace"),
        bad("a link that leads out", read, json!({ "path": "way-out" }), "path_outside_workspace"),
        bad("a pipe", read, json!({ "path": "pipe" }), "special_file"),
        bad("writing outside", write, json!({ "path": "../escaped", "content": "x" }), "path_outside_workspace"),
        bad("writing over a directory", write, json!({ "path": "docs", "content": "x" }), "path_is_directory"),
        bad("patching a file of a gigabyte", patch, update("huge.txt", "x"), "file_too_large"),
        bad("a patch that does not apply", patch, update("notes.md", "not there"), "patch_does_not_apply"),
        bad("a patch of two files, one wrong", patch, json!({ "patch": two_files }), "patch_does_not_apply"),
        bad("a patch that is none", patch, json!({ "patch": "hello" }), "patch_malformed"),
        bad("a patch outside", patch, update("../home/secret", "x"), "path_outside_workspace"),
    ]
}

/// A workspace with one of everything that is awkward.
fn awkward_workspace(context: &TestContext) {
    context.file("notes.md", "one\n").unwrap();
    context.file("other.md", "other\n").unwrap();
    context.file("docs/deep.md", "deep\n").unwrap();
    context.file("blob.bin", [0, 159, 146, 150, 0, 1, 2, 3]).unwrap();
    context.file("latin1.txt", b"caf\xe9 au lait\n").unwrap();
    fs::write(context.root().join("home/secret"), "secret\n").unwrap();
    let workspace = context.workspace();
    std::os::unix::fs::symlink("/etc/passwd", workspace.join("way-out")).unwrap();
    fs::write(workspace.join(OsStr::from_bytes(b"bad\xffname.txt")), "reachable\n").unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, workspace.join("pipe"), 0o600.into()).unwrap();
    File::create(workspace.join("huge.txt")).unwrap().set_len(1 << 30).unwrap();
    fs::set_permissions(workspace.join("notes.md"), fs::Permissions::from_mode(0o644)).unwrap();
}

#[test]
fn a_tool_refuses_bad_input_with_one_line_and_the_run_goes_on() {
    let cases = bad_calls();
    let scenes: Vec<Value> = cases
        .iter()
        .map(|case| {
            json!({ "when": format!("[{}]", case.name), "turn": [
                { "call": [{ "tool": case.tool, "arguments": case.arguments }] },
                { "text": "told: ", "echo": "last_result" },
            ] })
        })
        .collect();
    let context = TestContext::new().unwrap().scripted(&json!({ "script": scenes })).unwrap();
    awkward_workspace(&context);
    let before = Tree::of(&context.workspace()).unwrap();
    let home = Tree::of(&context.root().join("home")).unwrap();
    let mut failures = Vec::new();
    for case in &cases {
        let run = context.run(["run", &format!("try [{}]", case.name)]).unwrap();
        let lines: Vec<&str> = run.stderr.lines().filter(|line| line.starts_with('✗')).collect();
        let code = format!("[{}]", case.stable_code);
        let shown = matches!(lines.as_slice(), [line] if line.contains(case.tool) && line.contains(&code));
        let told = run.stdout.contains("told: ") && run.stdout.contains("error");
        if run.code != 0 || !shown || !told {
            failures.push(format!("{}: {run}", case.name));
        }
        if Tree::of(&context.workspace()).unwrap() != before || Tree::of(&context.root().join("home")).unwrap() != home
        {
            failures.push(format!("{}: something was changed", case.name));
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
    context.finish().unwrap();
}

#[test]
fn awkward_but_good_input_works() {
    let huge = json!({ "path": "huge.txt", "offset": 1, "limit": 1 });
    let script = json!({ "script": [
        { "when": "list", "turn": [
            { "call": [{ "tool": "palyra.fs.list", "arguments": { "path": "." } }] }, { "text": "seen: ", "echo": "last_result" },
        ] },
        { "when": "odd name", "turn": [
            { "call": [{ "tool": "palyra.fs.read", "arguments": { "path": "bad\\xFFname.txt" } }] },
            { "text": "seen: ", "echo": "last_result" },
        ] },
        { "when": "huge", "turn": [
            { "call": [{ "tool": "palyra.fs.read", "arguments": huge }] }, { "text": "seen: ", "echo": "last_result" },
        ] },
    ] });
    let context = TestContext::new().unwrap().scripted(&script).unwrap();
    awkward_workspace(&context);
    // A gigabyte of lines, almost all of it a hole: reading its first line must not read the rest.
    let line = "the first line\n";
    let file = File::options().write(true).open(context.workspace().join("huge.txt")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, line.repeat(2000).as_bytes(), 0).unwrap();
    for (task, seen) in [("list", "bad\\xFFname.txt"), ("odd name", "reachable"), ("huge", "the first line")] {
        let run = context.run(["run", task]).unwrap();
        assert!(run.code == 0 && run.stdout.contains(seen), "{task}: `{seen}` is not seen: {run}");
    }
    context.finish().unwrap();
}
