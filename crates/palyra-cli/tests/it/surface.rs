//! What holds for every command: help, suggestions, errors, exit codes.

use std::process::Stdio;

use crate::support::{FakeDaemon, Place, Ran, Story};

#[test]
fn without_a_daemon_only_its_own_commands_go_without() {
    let place = Place::new();
    let ran = place.run(&["daemon", "status"]);
    assert_eq!((ran.code, ran.out.as_str()), (4, ""));
    let lines: Vec<_> = ran.err.lines().collect();
    assert_eq!(lines.len(), 2, "{}", ran.err);
    assert!(lines[0].starts_with("error: no daemon answers at `") && lines[0].ends_with("[daemon_unreachable]"));
    assert!(lines[1].starts_with("hint: start it with `palyra daemon start`"));

    let ran = place.run(&["daemon", "status", "--output", "json"]);
    assert_eq!((ran.code, ran.err.as_str()), (4, ""));
    assert_eq!(ran.json()["error"]["code"], "daemon_unreachable");
    assert_eq!(ran.json()["error"]["category"], "availability");
    assert_eq!(place.run(&["daemon", "status", "--output", "ndjson"]).out.lines().count(), 1);
    assert_eq!(place.run(&["daemon", "stop"]).code, 0, "what was asked for is the case");

    // Everything else starts one, here in vain.
    place.install_daemon("exit 3");
    for command in [
        &["runs", "list"][..],
        &["sessions", "list"],
        &["approvals", "list"],
        &["approvals", "watch"],
        &["tokens", "list"],
        &["agents", "list"],
        &["canvas", "list"],
        &["devices", "list"],
        &["auxiliary", "list"],
        &["journal", "tail", "--follow"],
        &["usage"],
    ] {
        let ran = place.run(command);
        assert_eq!(ran.code, 3, "{command:?} {ran:?}");
        assert!(ran.err.contains("[daemon_start_failed]"), "{command:?} {}", ran.err);
    }
}

#[test]
fn a_daemon_of_which_a_part_fails_is_told_by_the_exit_code() {
    let place = Place::new();
    let daemon = FakeDaemon::start(&place, Story::Completes);
    assert_eq!(place.run(&["daemon", "status"]).code, 0);
    assert!(!place.run(&["run", "x"]).err.contains("warning"));
    for status in ["degraded", "failing"] {
        daemon.becomes(status);
        let ran = place.run(&["daemon", "status"]);
        assert_eq!(ran.code, 7, "{ran:?}");
        assert!(ran.out.starts_with(&format!("status    {status}\n")), "{}", ran.out);
        assert_eq!(place.run(&["daemon", "status", "--output", "json"]).code, 7);
        let warning = format!("warning: the daemon is {status} (journal: 7 records); see `palyra daemon status`\n");
        assert!(place.run(&["run", "x"]).err.contains(&warning));
    }
}

/// An output that takes nothing is an error of its own, whatever is printed and in whatever form.
#[test]
fn output_that_cannot_be_written_is_told() {
    let place = Place::new();
    let _daemon = FakeDaemon::start(&place, Story::Completes);
    let into = |path: &str, arguments: &[&str]| {
        let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
        Ran::from(place.command(arguments).stdout(file).output().unwrap())
    };
    for arguments in
        [&["version"][..], &["--help"], &["--version"], &["runs", "--help"], &["runs", "list"], &["run", "x"]]
    {
        for format in ["text", "json"] {
            let ran = into("/dev/full", &[arguments, &["--output", format]].concat());
            assert_eq!(ran.code, 7, "{arguments:?} {ran:?}");
            assert!(ran.err.contains("[output_failed]"), "{arguments:?} {format} {ran:?}");
            assert_eq!(into("/dev/null", &[arguments, &["--output", format]].concat()).code, 0);
        }
    }
    for arguments in [&["reference"][..], &["--help"]] {
        let mut child = place.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let ran = Ran::from(child.wait_with_output().unwrap());
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "whoever stops reading has read enough");
    }
}

#[test]
fn numbers_that_make_no_sense_are_refused_in_words() {
    let place = Place::new();
    for (arguments, reason) in [
        (&["run", "--max-turns", "x", "y"][..], "expected a whole number ≥ 1"),
        (&["run", "--wall-clock", "0", "y"], "expected a whole number ≥ 1"),
        (&["runs", "list", "-n", "0"], "expected a whole number ≥ 1"),
        (&["runs", "list", "-n", "-1"], "expected a whole number ≥ 1"),
        (&["tokens", "create", "--name", "ci", "--days", "-1"], "expected a whole number from 1 to 3650"),
        (&["tokens", "create", "--name", "ci", "--days", "999999999"], "expected a whole number from 1 to 3650"),
    ] {
        let ran = place.run(arguments);
        assert_eq!(ran.code, 2, "{arguments:?} {ran:?}");
        assert!(ran.err.contains(reason), "{arguments:?} {}", ran.err);
    }
}

#[test]
fn a_mistyped_command_gets_a_suggestion_and_two() {
    let place = Place::new();
    let ran = place.run(&["rnus", "list"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("did you mean `runs`? [command_line_invalid]\nhint: usage: "), "{}", ran.err);
    let ran = place.run(&["rnu", "x"]);
    assert!(ran.err.contains("did you mean `run` or `runs`?"), "{}", ran.err);
    let ran = place.run(&["rnus", "--output", "json"]);
    assert_eq!((ran.code, ran.err.as_str()), (2, ""));
    assert_eq!(ran.json()["error"]["code"], "command_line_invalid");
    assert_eq!(place.run(&["runs", "list", "--phase", "dancing"]).code, 2);
    assert_eq!(place.run(&["run", "--yes", "x"]).code, 2, "nothing answers approvals in advance");
}

#[test]
fn bad_tasks_and_workspaces_are_refused_before_anything_is_started() {
    let place = Place::new();
    place.install_daemon("touch \"$PALYRA_STATE_ROOT/started\"");
    for (arguments, exit, code) in [
        (&["run"][..], 2, "task_empty"),
        (&["run", "  "], 2, "task_empty"),
        (&["run", "-"], 2, "task_empty"),
        (&["run", "-w", "nope", "x"], 8, "workspace_not_found"),
        (&["run", "-w", "../palyra.toml", "x"], 8, "workspace_not_found"),
    ] {
        let ran = place.run(arguments);
        assert_eq!(ran.code, exit, "{arguments:?} {ran:?}");
        assert!(ran.err.contains(&format!("[{code}]\nhint: ")), "{arguments:?} {}", ran.err);
    }
    assert!(!place.path("state/started").exists());
}

#[test]
fn version_completions_and_reference_need_nothing() {
    let place = Place::new();
    assert!(place.run(&["version"]).out.starts_with("palyra 0."));
    assert!(place.run(&["version", "--output", "json"]).json()["version"].is_string());
    for shell in ["bash", "zsh", "fish"] {
        let ran = place.run(&["completions", shell]);
        assert!(ran.code == 0 && ran.out.contains("palyra"), "{shell}");
    }
    assert_eq!(place.run(&["reference"]).out, palyra_cli::reference());
    let help = place.run(&["run", "--help"]);
    assert!(help.code == 0 && help.out.contains("Examples:") && help.out.contains("Ctrl-C"), "{}", help.out);
}
