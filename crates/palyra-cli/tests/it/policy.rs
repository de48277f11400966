//! `palyra policy …` on real files, without a daemon.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use palyra_common::Timestamp;
use palyra_journal::{Journal, JournalOptions, NewRecord};
use serde_json::{Value, json};

use crate::support::{Place, Ran};

const PERMIT: &str = "@id(\"run\") @reason_person(\"the operator lets {user} run it\") @reason_model(\"it may\")
permit (principal in User::\"me\", action == Action::\"tool.execute\", resource == Tool::\"builder.run\");\n";

/// A place whose configuration names a directory of policies.
fn place(files: &[(&str, &str)]) -> Place {
    let place = Place::new();
    let directory = place.path("policies");
    fs::create_dir(&directory).unwrap();
    for (name, text) in files {
        fs::write(directory.join(name), text).unwrap();
    }
    let config = format!("version = 1\n[policy]\ndirectory = \"{}\"\n", directory.display());
    fs::write(place.path("palyra.toml"), config).unwrap();
    place
}

fn policy(place: &Place, arguments: &[&str]) -> Ran {
    let mut all = vec!["policy"];
    all.extend(arguments);
    place.run(&all)
}

#[test]
fn the_shipped_policies_are_in_order() {
    let place = Place::new();
    assert_eq!(policy(&place, &["check"]).code, 0);
    assert_eq!(policy(&place, &["lint"]).out, "no warnings\n");
    let tested = policy(&place, &["test"]);
    assert_eq!(tested.code, 0, "{tested:?}");
    assert!(tested.out.ends_with(" tests, 0 failed\n"), "{}", tested.out);
}

#[test]
fn faults_are_named_with_their_place() {
    let place = place(&[("site.cedar", "// fine\npermit (principal")]);
    for arguments in [&["check"][..], &["lint"], &["test"], &["explain", "--tool", "x"]] {
        let ran = policy(&place, arguments);
        assert_eq!(ran.code, 2, "{arguments:?} {ran:?}");
        assert!(ran.err.contains("site.cedar:2") && ran.err.contains("policy_malformed"), "{}", ran.err);
    }
    let json = policy(&place, &["check", "--output", "json"]);
    assert_eq!(json.json()["error"]["code"], "policy_malformed");
    fs::write(place.path("policies/site.cedar"), vec![b' '; 10 << 20]).unwrap();
    assert!(policy(&place, &["check"]).err.contains("policy_file_too_large"));
}

#[test]
fn a_call_is_explained() {
    let place = place(&[("site.cedar", PERMIT)]);
    let permitted = policy(&place, &["explain", "--tool", "builder.run"]);
    assert_eq!(permitted.code, 0, "{permitted:?}");
    assert!(permitted.out.starts_with("tool.execute: permit\n  the operator lets me run it\n"), "{}", permitted.out);
    assert!(permitted.out.contains("applies: site.run (permit)"), "{}", permitted.out);
    let denied = policy(&place, &["explain", "--tool", "builder.run", "--user", "you"]);
    assert!(denied.out.starts_with("tool.execute: deny\n"), "{}", denied.out);
    let asked = policy(
        &place,
        &[
            "explain",
            "--tool",
            "mcp.mail.send",
            "--server",
            "mail",
            "--consequential",
            "--arg",
            "to=eve",
            "--sink",
            "to=destination",
            "--from",
            "to=untrusted",
        ],
    );
    assert!(
        asked.out.starts_with("tool.execute: needs_approval\n  where it goes was not your choice: `eve` comes from"),
        "{}",
        asked.out
    );

    let explained = policy(&place, &["explain", "--tool", "builder.run", "--output", "json"]).json();
    assert_eq!(explained["decision"]["verdict"], "permit");
    for wrong in [
        &["explain"][..],
        &["explain", "--tool", "x", "--sink", "to=destination"],
        &["explain", "--tool", "x", "--arg", "to"],
        &["explain", "--tool", "x", "--arg", "to=a", "--sink", "to=nowhere"],
        &["explain", "--tool", "x", "--decision", "last/"],
    ] {
        assert_eq!(policy(&place, wrong).code, 2, "{wrong:?}");
    }
}

#[test]
fn a_request_is_read_from_a_file_or_the_input() {
    let place = place(&[("site.cedar", PERMIT)]);
    let request = r#"{"principal":{"run":{"run":"r","session":"s","agent":"a","user":"me"}},"action":"tool.read",
        "resource":{"path":{"name":"a","location":"inside_workspace"}},"context":{"effect":{"tool":{"name":"palyra.fs.read"},
        "scope":"workspace_read","risk":"low","mode":"guarded","labels":{"integrity":"user","confidentiality":"private"},
        "asking":"ask_before","consequence":"contained","envelope":"inside","now":0}}}"#;
    fs::write(place.path("workspace/request.json"), request).unwrap();
    let ran = policy(&place, &["explain", "request.json"]);
    assert!(ran.out.starts_with("tool.read: needs_approval\n"), "{ran:?}");
    fs::write(place.path("workspace/request.json"), request.replace("\"now\"", "\"later\"")).unwrap();
    assert_eq!(policy(&place, &["explain", "request.json"]).code, 2);
    assert_eq!(policy(&place, &["explain", "missing.json"]).code, 2);
}

#[test]
fn lint_and_tests_say_what_is_wrong_and_fail() {
    let place = place(&[("site.cedar", "@id(\"all\") permit (principal, action, resource);")]);
    let lint = policy(&place, &["lint"]);
    assert_eq!(lint.code, 7, "{lint:?}");
    assert!(lint.out.contains("[over_broad_permit]"), "{}", lint.out);
    let tested = policy(&place, &["test"]);
    assert_eq!(tested.code, 7, "a permit for everything breaks shipped cases: {tested:?}");
    fs::write(place.path("workspace/own.policy-test.toml"), "[[case]]\nname = 'x'\nexpect = 'deny'\n").unwrap();
    assert_eq!(policy(&place, &["test", "own.policy-test.toml"]).code, 2, "a case without a request is no case");
}

#[test]
fn a_proposal_is_a_directory_or_a_file() {
    let place = place(&[("site.cedar", PERMIT)]);
    fs::create_dir(place.path("workspace/new")).unwrap();
    let empty = policy(&place, &["diff", "new"]);
    assert!(empty.out.starts_with("removed site.run from "), "{}", empty.out);
    fs::write(place.path("workspace/site.cedar"), PERMIT.replace("\"me\"", "\"you\"")).unwrap();
    assert!(policy(&place, &["diff", "site.cedar"]).out.starts_with("changed site.run at "));
    fs::write(place.path("workspace/more.cedar"), PERMIT).unwrap();
    assert!(policy(&place, &["diff", "more.cedar"]).out.starts_with("added more.run at "));
    fs::write(place.path("workspace/new/site.cedar"), PERMIT).unwrap();
    assert_eq!(policy(&place, &["diff", "new"]).out, "no differences\n");
}

/// Each command that takes policies says the same about a path that is no policy: one line, its code, a hint.
#[test]
fn paths_that_are_no_policies() {
    let place = place(&[("site.cedar", PERMIT)]);
    let at = |name: &str| place.path("workspace").join(name);
    let make = |directory: &str, files: &[(&str, &str)]| {
        fs::create_dir(at(directory)).unwrap();
        files.iter().for_each(|(name, text)| fs::write(at(directory).join(name), text).unwrap());
    };
    fs::write(at("notes.txt"), PERMIT).unwrap();
    fs::write(at("large.cedar"), vec![b' '; 10 << 20]).unwrap();
    make("cycle", &[("one.cedar", "include \"two.cedar\";"), ("two.cedar", "include \"one.cedar\";")]);
    let grant = "[[grant]]\nid = \"g\"\ntemplate = \"workspace.read\"\nprincipal = 'User::\"me\"'\n";
    make("slotless", &[("grants.toml", grant)]);
    make("nested", &[]);
    fs::create_dir(at("nested/more.cedar")).unwrap();
    symlink("circle.cedar", at("circle.cedar")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, at("pipe.cedar"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let faults = [
        ("absent", 8, "`ABSENT` does not exist [policy_not_found]"),
        ("absent.cedar", 8, "does not exist [policy_not_found]"),
        ("notes.txt/x", 8, "does not exist [policy_not_found]"),
        ("notes.txt", 2, "is not a policy file [policy_file_unknown]"),
        ("nested", 2, "more.cedar` is not a policy file [policy_file_unknown]"),
        ("large.cedar", 2, "is larger than 1048576 bytes [policy_file_too_large]"),
        ("cycle", 2, "one.cedar:1: policies cannot include other files [policy_include]"),
        ("slotless", 2, "a policy without slots [policy_template_without_slot]"),
        ("circle.cedar", 2, "[policy_unreadable]"),
        ("pipe.cedar", 2, "is a pipe, a socket or a device, not a file [policy_wrong_kind]"),
    ];
    for (path, code, message) in faults {
        let message = message.replace("ABSENT", &at("absent").display().to_string());
        for command in [
            &["check"][..],
            &["lint"],
            &["diff"],
            &["simulate"],
            &["prove"],
            &["test", "--policies"],
            &["explain", "--tool", "x", "--policies"],
        ] {
            let ran = policy(&place, &[command, &[path]].concat());
            assert_eq!((ran.code, ran.out.as_str()), (code, ""), "{command:?} {path} {ran:?}");
            let lines: Vec<&str> = ran.err.lines().collect();
            assert!(lines.len() == 2 && lines[0].contains(&message), "{command:?} {path} {ran:?}");
            assert!(lines[1].starts_with("hint: "), "{ran:?}");
        }
    }
    for (path, code, message) in [
        ("absent", 8, "does not exist [policy_not_found]"),
        ("cycle", 2, "is a directory, not a file [policy_wrong_kind]"),
        ("pipe.cedar", 2, "not a file [policy_wrong_kind]"),
        ("large.cedar", 2, "[policy_file_too_large]"),
    ] {
        let ran = policy(&place, &["test", path]);
        assert_eq!(ran.code, code, "{path} {ran:?}");
        assert!(ran.err.contains(message), "{path} {ran:?}");
    }
}

/// A directory without anything in it is a proposal like any other, but it is said what that means.
#[test]
fn an_empty_directory_stands_for_the_shipped_policies() {
    let place = place(&[("site.cedar", PERMIT)]);
    fs::create_dir(place.path("workspace/empty")).unwrap();
    let ran = policy(&place, &["check", "empty"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.err.ends_with("empty` is empty, so only the shipped policies apply\n"), "{ran:?}");
    fs::write(place.path("palyra.toml"), "version = 1\n[policy]\ndirectory = \"/dev/null\"\n").unwrap();
    let ran = policy(&place, &["check"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("`/dev/null` is a file, not a directory [policy_wrong_kind]"), "{ran:?}");
}

/// A journal with decisions as the daemon records them: one permitted read, one denied call, one without its question.
fn with_decisions(place: &Place) {
    let request = |action: &str, resource: Value, tool: &str, scope: &str| {
        json!({
            "principal": { "run": { "run": "r", "session": "s", "agent": "default", "user": "me" } },
            "action": action, "resource": resource,
            "context": { "effect": {
                "tool": { "name": tool }, "scope": scope, "risk": "low", "mode": "guarded",
                "labels": { "integrity": "user", "confidentiality": "private" },
                "asking": "not_listed", "consequence": "contained", "envelope": "inside", "now": 0,
            } },
        })
    };
    let path = json!({ "path": { "name": "a", "location": "inside_workspace" } });
    let decisions = [
        ("t1c1", "permit", vec![request("tool.read", path, "palyra.fs.read", "workspace_read")]),
        ("t1c2", "deny", vec![request("tool.execute", json!("tool"), "builder.run", "external")]),
        ("t1c3", "deny", vec![]),
    ];
    let journal = Journal::open(JournalOptions::at(place.path("state"))).unwrap();
    for (call, verdict, requests) in decisions {
        let decided =
            json!({ "call_id": call, "verdict": verdict, "reasons": [], "policies": [], "requests": requests });
        let record = NewRecord {
            kind: "tool.decided".into(),
            at: Timestamp(1_794_700_000_123),
            session_id: None,
            run_id: Some("01JCQ0000000000000000000AA".parse().unwrap()),
            run_seq: None,
            payload: json!({ "input": { "decided": decided } }).to_string().into_bytes(),
        };
        journal.append_blocking(vec![record]).unwrap();
    }
    journal.close_blocking().unwrap();
}

#[test]
fn past_decisions_are_simulated_and_explained() {
    let place = place(&[]);
    with_decisions(&place);
    fs::write(place.path("workspace/site.cedar"), PERMIT).unwrap();
    let ran = policy(&place, &["simulate", "site.cedar"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let expected = "01JCQ0000000000000000000AA/t1c2: deny → permit (more permissive): the operator lets me run it\n\
                    1 of 2 past decisions would be different\n";
    assert_eq!(ran.out, expected);
    assert!(ran.err.contains("skipped 1 decisions that do not record their request"), "{}", ran.err);
    let json = policy(&place, &["simulate", "site.cedar", "--output", "json"]).json();
    assert_eq!((json["considered"].as_u64(), json["unreadable"].as_u64()), (Some(2), Some(1)));

    let explained = policy(&place, &["explain", "--decision", "last/t1c1"]);
    assert!(explained.out.starts_with("tool.read: permit\n"), "{explained:?}");
    let other = policy(&place, &["explain", "--decision", "00AA/t1c2", "--policies", "site.cedar"]);
    assert!(other.out.starts_with("tool.execute: permit\n"), "{other:?}");
    assert_eq!(policy(&place, &["explain", "--decision", "last/t9c9"]).code, 8);
}

#[test]
fn simulating_needs_a_journal() {
    let place = place(&[]);
    fs::write(place.path("workspace/site.cedar"), PERMIT).unwrap();
    assert!(policy(&place, &["simulate", "site.cedar"]).err.contains("journal_not_found"));
    assert!(policy(&place, &["explain", "--decision", "last/"]).err.contains("journal_not_found"));
}

#[test]
fn proving_needs_a_solver() {
    let place = place(&[("site.cedar", PERMIT)]);
    fs::create_dir(place.path("workspace/new")).unwrap();
    let run = |variable: Option<&str>| {
        let mut command = place.command(&["policy", "prove", "new"]);
        command.env("PATH", place.path("bin"));
        if let Some(solver) = variable {
            command.env("PALYRA_SMT_SOLVER", place.path(solver));
        }
        Ran::from(command.output().unwrap())
    };
    let none = run(None);
    assert_eq!(none.code, 5, "{none:?}");
    assert!(none.err.contains("unsupported_without_solver") && none.err.contains("hint: install z3"), "{}", none.err);
    assert!(run(Some("bin/absent")).err.contains("solver_unusable"));
    // A solver that says `unsat` to everything: what the command prints for a proof.
    fs::write(
        place.path("bin/z3"),
        "#!/bin/sh\nwhile read line; do case $line in '(check-sat)') echo unsat;; esac; done\n",
    )
    .unwrap();
    fs::set_permissions(place.path("bin/z3"), fs::Permissions::from_mode(0o755)).unwrap();
    let proved = run(Some("bin/z3"));
    assert_eq!(proved.code, 0, "{proved:?}");
    assert!(proved.out.starts_with("OK: the proposal permits nothing new"), "{}", proved.out);
}
