//! What people do to skills by mistake, and what happens to their files behind the daemon's back.

use serde_json::json;

use super::skills::{context, done, packed, refused, stored_archive};

#[test]
fn a_private_key_is_not_sent_or_shown_where_a_public_one_is_asked_for() {
    let context = context("hello.echo", json!({"text": "Ada"}));
    done(&context, &["skills", "keygen", "one.key"]);
    let private = std::fs::read_to_string(context.workspace().join("one.key")).unwrap();
    for arguments in [
        vec!["skills", "trust", "hello", "one.key"],
        vec!["skills", "trust", "--", "hello", private.as_str()],
        vec!["skills", "revoke-key", "one.key", "--reason", "it was lost"],
    ] {
        let run = context.run(&arguments).unwrap();
        assert_ne!(run.code, 0, "{run}");
        let secret = private.lines().nth(1).unwrap();
        assert!(!run.stderr.contains(&secret[..16]) && !run.stdout.contains(&secret[..16]), "{run}");
    }
    refused(&context, &["skills", "trust", "hello", "one.key"], "skill_key_invalid");
    refused(&context, &["skills", "trust", "hello", "nowhere.pub"], "file_unusable");
    refused(&context, &["skills", "revoke-key", "key:12", "--reason", "it was lost"], "skill_name_invalid");
    let unknown = done(&context, &["skills", "untrust", "nobody"]);
    assert!(unknown.stdout.contains("was not known"), "{unknown}");
}

#[test]
fn a_wrong_name_is_refused_as_a_name_and_reaches_nothing_else() {
    let context = context("hello.echo", json!({"text": "Ada"}));
    for name in ["../runs", "hello/audit", "hello?x=1", "hello#x", "he llo", "hello\n", ""] {
        refused(&context, &["skills", "info", name], "request_invalid");
        refused(&context, &["skills", "remove", name], "request_invalid");
    }
    // A file that is meant as one is not looked for among the skills.
    refused(&context, &["skills", "audit", "nowhere.palyra-skill"], "file_unusable");
    std::fs::create_dir(context.workspace().join("folder")).unwrap();
    refused(&context, &["skills", "install", "folder"], "command_line_invalid");
    refused(&context, &["skills", "verify", "/dev/zero"], "skill_archive_too_large");
}

#[test]
fn tools_are_listed_whether_or_not_they_run_and_a_lost_archive_is_said() {
    let context = context("hello.echo", json!({"text": "Ada"}));
    done(&context, &["skills", "keygen", "one.key"]);
    let file = packed(&context, "0.1.0", "one.key");
    done(&context, &["skills", "trust", "hello", "one.key.pub"]);
    let installed = done(&context, &["skills", "install", &file, "--disabled"]);
    assert!(installed.stdout.contains("hello.echo"), "{installed}");
    done(&context, &["skills", "enable", "hello"]);
    // A daemon that has just started has not loaded anything yet.
    done(&context, &["daemon", "stop"]);
    let listed = done(&context, &["skills", "list"]);
    assert!(listed.stdout.contains("echo"), "{listed}");

    let before = done(&context, &["skills", "info", "hello", "--output", "json"]).json().unwrap();
    let audited = done(&context, &["skills", "audit", "hello", "--output", "json"]).json().unwrap();
    assert!(audited["audited_at"].as_i64() > before["audited_at"].as_i64(), "{before} {audited}");

    std::fs::remove_file(stored_archive(&context)).unwrap();
    refused(&context, &["skills", "audit", "hello"], "skill_not_stored");
    done(&context, &["daemon", "stop"]);
    refused(&context, &["skills", "call", "hello.echo", r#"{"text": "Ada"}"#], "skill_not_stored");
    done(&context, &["skills", "install", &file]);
    done(&context, &["skills", "call", "hello.echo", r#"{"text": "Ada"}"#]);
    refused(&context, &["skills", "install", &file], "skill_already_installed");
    done(&context, &["run", "use hello.echo"]);
    context.finish().unwrap();
}

/// The operator's limits are narrower than when the skill was installed, so its audit has another outcome at the next start.
#[test]
fn a_skill_that_fails_its_audit_at_a_later_start_is_held_back() {
    let context = context("hello.echo", json!({"text": "Ada"}));
    done(&context, &["skills", "keygen", "one.key"]);
    done(&context, &["skills", "new", "hello", "--lang", "wat"]);
    let source = context.workspace().join("hello/src/skill.wat");
    let text = std::fs::read_to_string(&source).unwrap();
    let data = format!("  (data (i32.const 60000) \"{}\"))", "x".repeat(2000));
    std::fs::write(&source, text.trim_end().strip_suffix(')').unwrap().to_owned() + "\n" + &data).unwrap();
    done(&context, &["skills", "build", "hello"]);
    done(&context, &["skills", "pack", "hello", "--key", "one.key"]);
    done(&context, &["skills", "trust", "hello", "one.key.pub"]);
    done(&context, &["skills", "install", "hello-0.1.0.palyra-skill"]);
    done(&context, &["run", "use hello.echo"]);
    done(&context, &["daemon", "stop"]);
    let context = context.env("PALYRA_PLUGINS_MAX_MODULE_BYTES", 1024);
    refused(&context, &["skills", "call", "hello.echo", r#"{"text": "Ada"}"#], "skill_quarantined");
    let shown = done(&context, &["skills", "info", "hello"]);
    assert!(shown.stdout.contains("quarantined") && shown.stdout.contains("audit      fail"), "{shown}");
    context.finish().unwrap();
}

#[test]
fn an_update_by_name_takes_the_newest_of_the_registry() {
    let context = context("hello.echo", json!({"text": "Ada"}));
    let registry = context.root().join("registry").display().to_string();
    let context = context.env("PALYRA_SKILLS_REGISTRIES", format!("team {registry}"));
    for key in ["one.key", "registry.key"] {
        done(&context, &["skills", "keygen", key]);
    }
    done(&context, &["skills", "trust", "hello", "one.key.pub"]);
    done(&context, &["skills", "registry", "create", &registry, "--key", "registry.key"]);
    let publish = |version: &str| {
        let file = packed(&context, version, "one.key");
        done(&context, &["skills", "registry", "publish", &registry, &file, "--key", "registry.key"]);
        file
    };
    publish("0.1.0");
    done(&context, &["skills", "install", "team/hello"]);
    let same = done(&context, &["skills", "update", "hello"]);
    assert!(same.stdout.contains("hello 0.1.0") && same.stderr.contains("already up to date with team"), "{same}");
    let newer = publish("0.2.0");
    let updated = done(&context, &["skills", "update", "hello"]);
    assert!(updated.stdout.contains("hello 0.2.0"), "{updated}");
    // What came from a file is updated from a file.
    done(&context, &["skills", "remove", "hello"]);
    done(&context, &["skills", "install", &newer]);
    refused(&context, &["skills", "update", "hello"], "command_line_invalid");
    let newest = publish("0.3.0");
    done(&context, &["skills", "update", &newest]);
    refused(&context, &["skills", "update", "nobody"], "skill_not_found");
}

#[test]
fn a_local_call_and_a_case_are_held_against_the_manifest_as_in_the_daemon() {
    let context = context("hello.echo", json!({"text": "Ada"}));
    done(&context, &["skills", "new", "hello", "--lang", "wat"]);
    let here = context.workspace().join("hello");
    let manifest = here.join("skill.toml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    done(&context, &["skills", "build", "hello"]);
    let local = context.run_in(&here, ["skills", "run", "--local", "echo", r#"{"text": "Ada"}"#]).unwrap();
    assert!(local.code == 0 && local.stdout.contains("Ada"), "{local}");
    refused(&context, &["skills", "run", "--local", "hello", "echo", r#"{"text": 5}"#], "request_invalid");
    refused(&context, &["skills", "run", "--local", "hello", "wave"], "command_line_invalid");
    refused(&context, &["skills", "run", "hello"], "command_line_invalid");

    let report = done(&context, &["skills", "test", "hello", "--output", "json"]).json().unwrap();
    assert_eq!((&report["failed"], &report["cases"][0]["passed"]), (&json!(0), &json!(true)), "{report}");
    let output = text.lines().find(|line| line.starts_with("output_schema")).unwrap();
    std::fs::write(&manifest, text.replace(output, "output_schema = { type = \"integer\" }")).unwrap();
    refused(&context, &["skills", "run", "--local", "hello", "echo", r#"{"text": "Ada"}"#], "skill_output_invalid");
    let failing = context.run(["skills", "test", "hello"]).unwrap();
    assert!(failing.code != 0 && failing.stdout.contains("FAIL") && failing.stdout.contains("manifest"), "{failing}");
}
