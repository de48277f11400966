//! Skills from an empty folder to a tool that a run uses, as a newcomer types it; and what becomes of skills that are not what they say.

use std::path::{Path, PathBuf};

use palyra_testkit::{Run, TestContext};
use serde_json::{Value, json};

use super::call;

/// A context whose model calls a tool once and repeats what it gave, with the guest compilers of this machine.
pub(super) fn context(tool: &str, arguments: Value) -> TestContext {
    let script = json!({ "turn": [call(tool, arguments), { "echo": "last_result" }] });
    let mut context = TestContext::new().unwrap().scripted(&script).unwrap();
    for (name, fallback) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup"), ("XDG_CACHE_HOME", ".cache")] {
        let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
        let value = std::env::var_os(name).map_or_else(|| home.join(fallback), PathBuf::from);
        context = context.env(name, value.display());
    }
    context
}

/// Runs a command that has to succeed.
pub(super) fn done(context: &TestContext, arguments: &[&str]) -> Run {
    let run = context.run(arguments).unwrap();
    assert_eq!(run.code, 0, "{arguments:?}: {run}");
    run
}

/// Runs a command that has to fail with this stable code.
pub(super) fn refused(context: &TestContext, arguments: &[&str], code: &str) -> Run {
    let run = context.run(arguments).unwrap();
    assert_ne!(run.code, 0, "{arguments:?}: {run}");
    assert!(run.stderr.contains(&format!("[{code}]")), "{arguments:?} is not refused with {code}: {run}");
    run
}

/// The documented sequence; says whether the compiler of the language is there. Text has another first tool.
fn from_nothing(language: &str) -> bool {
    let (tool, input) = match language {
        "wat" => ("echo", json!({"text": "Ada"})),
        _ => ("greet", json!({"name": "Ada"})),
    };
    let (name, text) = (format!("hello.{tool}"), input.to_string());
    let context = context(&name, input);
    done(&context, &["skills", "new", "hello", "--lang", language]);
    let built = context.run(["skills", "build", "hello"]).unwrap();
    if built.stderr.contains("is not installed") {
        eprintln!("skills in {language} were not tried: {}", built.stderr.trim());
        return false;
    }
    assert_eq!(built.code, 0, "{language}: {built}");
    let tested = done(&context, &["skills", "test", "hello"]);
    assert!(tested.stdout.contains(" 0 failed") && !tested.stdout.contains("\n0 passed"), "{tested}");
    let local = done(&context, &["skills", "run", "--local", "hello", tool, &text]);
    assert!(local.stdout.contains("Ada"), "{local}");
    assert!(local.stderr.contains(" fuel"), "{local}");

    done(&context, &["skills", "keygen", "publisher.key"]);
    done(&context, &["skills", "pack", "hello", "--key", "publisher.key"]);
    done(&context, &["skills", "verify", "hello-0.1.0.palyra-skill"]);
    done(&context, &["skills", "audit", "hello-0.1.0.palyra-skill"]);
    done(&context, &["skills", "trust", "hello", "publisher.key.pub"]);
    if language != "wat" {
        // A manifest that offers what its module does not have; a core module cannot be asked.
        let manifest = context.workspace().join("hello/skill.toml");
        let text = std::fs::read_to_string(&manifest).unwrap();
        std::fs::write(&manifest, text.replace("id = \"greet\"", "id = \"wave\"")).unwrap();
        done(&context, &["skills", "pack", "hello", "--key", "publisher.key", "--out", "other.palyra-skill"]);
        refused(&context, &["skills", "install", "other.palyra-skill"], "skill_module_mismatch");
        std::fs::write(&manifest, text).unwrap();
    }
    let installed = done(&context, &["skills", "install", "hello-0.1.0.palyra-skill"]);
    assert!(installed.stdout.contains("enabled") && installed.stdout.contains(&name), "{installed}");

    let run = done(&context, &["run", &format!("use {name} with Ada")]);
    assert!(run.stderr.contains(&format!("• {name}")), "the tool was not used: {run}");
    let tape = done(&context, &["runs", "tape", "last", "--output", "ndjson"]);
    assert!(tape.stdout.contains("skills.look"), "no policy of skills decided it: {tape}");
    // What a skill says is untrusted, so it is shown as it is where the user wants that.
    let open = done(&context, &["run", "--mode", "open", &format!("use {name} with Ada")]);
    assert!(open.stdout.contains("Ada"), "{open}");
    context.finish().unwrap();
    true
}

#[test]
fn a_skill_in_text_goes_from_nothing_to_a_run() {
    assert!(from_nothing("wat"));
}

#[test]
fn a_skill_of_a_compiler_goes_from_nothing_to_a_run() {
    let tried: Vec<&str> = ["rust", "c"].into_iter().filter(|language| from_nothing(language)).collect();
    assert!(!tried.is_empty(), "no guest compiler is there; `bash scripts/guests.sh` installs some");
}

/// A signed skill in text, of a version, in a file.
pub(super) fn packed(context: &TestContext, version: &str, key: &str) -> String {
    let folder = format!("folder-{version}-{}", key.replace('.', "-"));
    done(context, &["skills", "new", "hello", "--lang", "wat", "--folder", &folder]);
    let manifest = context.workspace().join(&folder).join("skill.toml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(
        &manifest,
        text.replace("version = \"0.1.0\"\npublisher", &format!("version = \"{version}\"\npublisher")),
    )
    .unwrap();
    done(context, &["skills", "build", &folder]);
    let file = format!("{folder}.palyra-skill");
    done(context, &["skills", "pack", &folder, "--key", key, "--out", &file]);
    file
}

pub(super) fn key_id(context: &TestContext, file: &str) -> String {
    let verified = done(context, &["skills", "verify", file, "--output", "json"]);
    verified.json().unwrap()["key_id"].as_str().unwrap().to_owned()
}

#[test]
fn a_new_publisher_is_accepted_once_and_then_held_to_its_key() {
    let context = context("hello.echo", json!({"text": "Ada"}));
    for key in ["one.key", "two.key"] {
        done(&context, &["skills", "keygen", key]);
    }
    let old = packed(&context, "0.1.0", "one.key");
    let newer = packed(&context, "0.2.0", "one.key");
    let strange = packed(&context, "0.3.0", "two.key");
    refused(&context, &["skills", "install", &old], "skill_publisher_unknown");
    let (id, other) = (key_id(&context, &newer), key_id(&context, &strange));
    refused(&context, &["skills", "install", &newer, "--accept-key", &other], "skill_publisher_unknown");
    done(&context, &["skills", "install", &newer, "--accept-key", &id]);
    let listed = done(&context, &["skills", "list"]);
    assert!(listed.stdout.contains("tofu"), "{listed}");

    refused(&context, &["skills", "install", &old], "skill_downgrade_refused");
    let swapped = context.run(["skills", "install", strange.as_str(), "--accept-key", other.as_str()]).unwrap();
    assert_ne!(swapped.code, 0, "another key was taken: {swapped}");
    assert!(swapped.stderr.contains("key"), "{swapped}");
    done(&context, &["run", "use hello.echo"]);

    // Trust taken back takes the tool with it.
    done(&context, &["skills", "untrust", "hello", "--reason", "it was sold"]);
    let listed = done(&context, &["skills", "list"]);
    assert!(listed.stdout.contains("quarantined"), "{listed}");
    let run = context.run(["run", "use hello.echo"]).unwrap();
    assert!(!run.stderr.contains("• hello.echo ✓"), "{run}");
    let called = context.run(["skills", "call", "hello.echo", r#"{"text": "Ada"}"#]).unwrap();
    assert_ne!(called.code, 0, "{called}");
    context.finish().unwrap();
}

pub(super) fn stored_archive(context: &TestContext) -> PathBuf {
    fn find(directory: &Path) -> Option<PathBuf> {
        for entry in std::fs::read_dir(directory).ok()? {
            let path = entry.ok()?.path();
            if path.is_dir() {
                if let Some(found) = find(&path) {
                    return Some(found);
                }
            } else if path.extension().is_some_and(|end| end == "palyra-skill") {
                return Some(path);
            }
        }
        None
    }
    find(&context.state_root().join("skills")).expect("the store has an archive")
}

#[test]
fn a_tampered_skill_goes_to_quarantine_and_comes_back_with_a_reason_alone() {
    let context = context("hello.echo", json!({"text": "Ada"}));
    done(&context, &["skills", "keygen", "one.key"]);
    let file = packed(&context, "0.1.0", "one.key");
    done(&context, &["skills", "trust", "hello", "one.key.pub"]);
    done(&context, &["skills", "install", &file]);
    done(&context, &["skills", "call", "hello.echo", r#"{"text": "Ada"}"#]);
    refused(&context, &["skills", "call", "hello.echo", r#"{"nom": 1}"#], "request_invalid");
    refused(&context, &["skills", "call", "hello.wave", "{}"], "skill_tool_missing");

    let stored = stored_archive(&context);
    let good = std::fs::read(&stored).unwrap();
    let mut bad = good.clone();
    let middle = bad.len() / 2;
    bad[middle] ^= 1;
    std::fs::write(&stored, &bad).unwrap();
    let audited = context.run(["skills", "audit", "hello"]).unwrap();
    assert!(audited.stdout.contains("quarantined") || audited.stderr.contains("tampered"), "{audited}");
    let listed = done(&context, &["skills", "list"]);
    assert!(listed.stdout.contains("quarantined"), "{listed}");
    refused(&context, &["skills", "call", "hello.echo", r#"{"text": "Ada"}"#], "skill_quarantined");

    std::fs::write(&stored, &good).unwrap();
    refused(&context, &["skills", "enable", "hello"], "skill_reason_missing");
    done(&context, &["skills", "enable", "hello", "--reason", "the disk was at fault"]);
    done(&context, &["run", "use hello.echo"]);
    done(&context, &["skills", "disable", "hello"]);
    refused(&context, &["skills", "call", "hello.echo", r#"{"text": "Ada"}"#], "skill_disabled");
    done(&context, &["skills", "remove", "hello"]);
    refused(&context, &["skills", "info", "hello"], "skill_not_found");
    context.finish().unwrap();
}

#[test]
fn a_skill_comes_from_a_registry_and_a_restarted_daemon_still_has_it() {
    let context = context("hello.echo", json!({"text": "Ada"}));
    let registry = context.root().join("registry");
    let context = context.env("PALYRA_SKILLS_REGISTRIES", format!("team {}", registry.display()));
    for key in ["one.key", "registry.key"] {
        done(&context, &["skills", "keygen", key]);
    }
    let file = packed(&context, "0.1.0", "one.key");
    let directory = registry.display().to_string();
    done(&context, &["skills", "registry", "create", &directory, "--key", "registry.key"]);
    done(&context, &["skills", "registry", "publish", &directory, &file, "--key", "registry.key"]);
    done(&context, &["skills", "trust", "hello", "one.key.pub"]);
    done(&context, &["skills", "install", "team/hello"]);
    refused(&context, &["skills", "install", "other/hello"], "skill_registry_unknown");
    done(&context, &["daemon", "stop"]);
    let run = done(&context, &["run", "--mode", "open", "use hello.echo"]);
    assert!(run.stdout.contains("Ada"), "{run}");
    context.finish().unwrap();
}

#[test]
fn a_guard_in_web_assembly_stops_a_call_before_it_happens() {
    let arguments = json!({"path": "notes.txt", "content": "DROP TABLE users"});
    let context = context("palyra.fs.write", arguments);
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/skills/policy-guard");
    let folder = context.workspace().join("guard");
    copy(&example, &folder);
    let built = context.run(["skills", "build", "guard"]).unwrap();
    if built.stderr.contains("is not installed") {
        eprintln!("the guard was not tried: {}", built.stderr.trim());
        return;
    }
    assert_eq!(built.code, 0, "{built}");
    done(&context, &["skills", "keygen", "one.key"]);
    done(&context, &["skills", "pack", "guard", "--key", "one.key", "--out", "guard.palyra-skill"]);
    done(&context, &["skills", "trust", "examples", "one.key.pub"]);
    done(&context, &["skills", "install", "guard.palyra-skill"]);
    refused(&context, &["skills", "hooks", "bind", "run:after_run", "examples.policy-guard"], "skill_hook_missing");
    done(&context, &["skills", "hooks", "bind", "run:before_tool", "examples.policy-guard", "--id", "guard"]);
    let run = context.run(["run", "write the note"]).unwrap();
    assert!(!context.workspace().join("notes.txt").exists(), "the call happened: {run}");
    // Whoever looks sees that it was refused, and why.
    let refused = ["palyra.fs.write notes.txt refused: ", "the arguments hold `DROP TABLE`"];
    let shown = done(&context, &["runs", "show", "last"]);
    let text = done(&context, &["runs", "tape", "last"]);
    for (place, line) in [
        (&run, run.stderr.lines().find(|line| line.contains("✗ "))),
        (&shown, shown.stdout.lines().skip_while(|line| *line != "calls not made").nth(1)),
    ] {
        assert!(line.is_some_and(|line| refused.iter().all(|part| line.contains(part))), "{place}");
    }
    let told = text.stdout.lines().find(|line| line.contains("t1c1 refused: "));
    assert!(told.is_some_and(|line| line.contains(refused[1])), "{text}");
    assert!(!run.stderr.contains("• palyra.fs.write"), "{run}");
    let tape = done(&context, &["runs", "tape", "last", "--output", "ndjson"]);
    assert!(tape.stdout.contains("\"decision\":\"block\""), "{tape}");

    // Fail closed: a guard that is switched off blocks until it is unbound.
    done(&context, &["skills", "disable", "examples.policy-guard"]);
    let run = context.run(["run", "write the note"]).unwrap();
    assert!(!context.workspace().join("notes.txt").exists(), "a missing guard let the call through: {run}");
    done(&context, &["skills", "hooks", "unbind", "guard"]);
    done(&context, &["run", "write the note"]);
    assert!(context.workspace().join("notes.txt").exists());
    context.finish().unwrap();
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
