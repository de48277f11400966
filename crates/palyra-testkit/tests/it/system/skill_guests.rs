//! Skills of real compilers through the real programs: repeatable calls in processes of their own, a hook from its template to a refused call, and an interpreter.

use serde_json::json;

use super::skills::{context, done};

/// Whether a folder could be built; where its compiler is missing, says so.
fn built(context: &palyra_testkit::TestContext, folder: &str, language: &str) -> bool {
    let built = context.run(["skills", "build", folder]).unwrap();
    if built.stderr.contains("is not installed") {
        eprintln!("skills in {language} were not tried: {}", built.stderr.trim());
        return false;
    }
    assert_eq!(built.code, 0, "{language}: {built}");
    true
}

/// The greeting with random bytes and the clock in it, and with work that depends on them.
fn with_dice(context: &palyra_testkit::TestContext, language: &str) {
    let (file, before, code) = match language {
        "c" => (
            "src/skill.c",
            "  palyra_append(&greeting, \"!\");",
            "  palyra_bytes dice = palyra_random(32);\n  for (size_t i = 0; i < dice.length; i++) {\n    \
             for (int n = 0; n < (unsigned char)dice.data[i]; n++) palyra_append(&greeting, \".\");\n    \
             palyra_append_number(&greeting, (unsigned char)dice.data[i]);\n  }\n  \
             palyra_append_number(&greeting, (long long)palyra_now());\n",
        ),
        _ => (
            "src/lib.rs",
            "    Ok(Greeting",
            "    let dice = palyra_plugins_sdk::random::bytes(32);\n    let dots = \".\".repeat(usize::from(dice[0]));\n    \
             let now = palyra_plugins_sdk::clock::now();\n    \
             let person = Person { name: format!(\"{} {dice:?} {dots} {now:?}\", person.name) };\n",
        ),
    };
    let path = context.workspace().join("hello").join(file);
    let source = std::fs::read_to_string(&path).unwrap();
    assert!(source.contains(before), "{source}");
    std::fs::write(&path, source.replace(before, &format!("{code}{before}"))).unwrap();
    if language == "c" {
        let path = context.workspace().join("hello/wit/world.wit");
        let world = std::fs::read_to_string(&path).unwrap();
        let imports = "    import palyra:host/clock@1.0.0;\n    import palyra:host/random@1.0.0;\n    export";
        std::fs::write(&path, world.replace("    export", imports)).unwrap();
    }
}

/// Byte for byte what a call printed: output, fuel, memory and host calls.
#[test]
fn a_compiled_guest_gives_the_same_bytes_and_fuel_in_two_processes() {
    let mut tried = Vec::new();
    for language in ["c", "rust"] {
        let context = context("hello.greet", json!({"name": "Ada"}));
        done(&context, &["skills", "new", "hello", "--lang", language]);
        with_dice(&context, language);
        if !built(&context, "hello", language) {
            continue;
        }
        let call = |seed: &str| {
            let name = r#"{"name": "Ada"}"#;
            let run = done(
                &context,
                &["skills", "run", "--local", "hello", "greet", name, "--deterministic", seed, "--output", "json"],
            );
            assert!(run.json().unwrap()["fuel"].as_u64().unwrap() > 0, "{run}");
            run.stdout
        };
        let first = call("7");
        assert_eq!(call("7"), first, "{language}");
        assert_ne!(call("8"), first, "{language}: another seed");
        tried.push(language);
    }
    assert!(!tried.is_empty(), "no guest compiler is there; `bash scripts/guests.sh` installs some");
}

/// A greeting that throws dice, keeps what they show, reports on the way, and looks at what was kept.
fn with_dice_and_notes(context: &palyra_testkit::TestContext, language: &str) {
    let (file, changes) = match language {
        "javascript" => (
            "src/skill.js",
            [
                (
                    "import { tools }",
                    "import { bytes } from 'palyra:host/random@1.0.0';\nimport { now } from 'palyra:host/clock@1.0.0';\n\
                     import { report } from 'palyra:host/progress@1.0.0';\n\
                     import { storageHandle } from 'palyra:host/capabilities@1.0.0';\n\
                     import { keys, set } from 'palyra:host/storage@1.0.0';\n",
                ),
                (
                    "  return { greeting:",
                    "  const dice = bytes(32);\n  const space = storageHandle(0);\n  for (let i = 0; i < 5; i++) {\n    \
                     set(space, `k${dice[i]}`, dice);\n    report(i * 20, `step ${dice[i]}`);\n  }\n  \
                     name = [name, ...dice, ...keys(space, '', undefined, 10), JSON.stringify(now(), (_, v) => String(v))].join(' ');\n",
                ),
            ],
        ),
        _ => (
            "src/skill.py",
            [
                ("from tools import", "from wit_world.imports import capabilities, clock, progress, random, storage\n"),
                (
                    "    return {\"greeting\":",
                    "    dice = random.bytes(32)\n    space = capabilities.storage_handle(0)\n    for i in range(5):\n        \
                     storage.set(space, f\"k{dice[i]}\", dice)\n        progress.report(i * 20, f\"step {dice[i]}\")\n    \
                     kept = storage.keys(space, \"\", None, 10)\n    \
                     name = f\"{name} {list(dice)} {kept} {set(kept)} {hash(name)} {clock.now()}\"\n",
                ),
            ],
        ),
    };
    let change = |file: &str, changes: &[(&str, &str)]| {
        let path = context.workspace().join("hello").join(file);
        let mut text = std::fs::read_to_string(&path).unwrap();
        for (before, code) in changes {
            assert!(text.contains(before), "{text}");
            text = text.replacen(before, &format!("{code}{before}"), 1);
        }
        std::fs::write(&path, text).unwrap();
    };
    change(file, &changes);
    let imports = ["capabilities", "clock", "progress", "random", "storage"]
        .map(|interface| format!("    import palyra:host/{interface}@1.0.0;\n"))
        .concat();
    change("wit/world.wit", &[("    export", &imports)]);
    let space = "[[capabilities.storage]]\nname = \"dice\"\nmax_bytes = 65536\nmax_keys = 100\n\n";
    change("skill.toml", &[("[compat]", space)]);
}

/// The same for an interpreter, whose own sources of chance are many: order of sets, hashes, time, addresses.
fn an_interpreter_repeats_itself(language: &str) {
    let context = context("hello.greet", json!({"name": "Ada"}));
    done(&context, &["skills", "new", "hello", "--lang", language]);
    with_dice_and_notes(&context, language);
    if !built(&context, "hello", language) {
        eprintln!("SKIPPED: the compiler is not there; `bash scripts/guests.sh` installs it");
        return;
    }
    let call = |seed: &str| {
        let name = r#"{"name": "Ada"}"#;
        let arguments =
            ["skills", "run", "--local", "hello", "greet", name, "--deterministic", seed, "--output", "json"];
        let run = done(&context, &arguments);
        let told = run.json().unwrap();
        assert!(told["fuel"].as_u64().unwrap() > 0, "{run}");
        assert_eq!(told["host_calls"]["progress.report"], 5, "{run}");
        assert_eq!(told["host_calls"]["storage.set"], 5, "{run}");
        run.stdout
    };
    let first = call("7");
    assert_eq!(call("7"), first, "{language}");
    assert_ne!(call("8"), first, "{language}: another seed");
}

#[test]
fn a_javascript_guest_gives_the_same_bytes_and_fuel_in_two_processes() {
    an_interpreter_repeats_itself("javascript");
}

#[test]
fn a_python_guest_gives_the_same_bytes_and_fuel_in_two_processes() {
    an_interpreter_repeats_itself("python");
}

/// From the template of a hook to a call that does not happen.
fn guards(language: &str) -> bool {
    let arguments = json!({"path": "notes.txt", "content": "copy it to config/.env"});
    let context = context("palyra.fs.write", arguments);
    done(&context, &["skills", "new", "acme.guard", "--kind", "hook", "--lang", language, "--folder", "guard"]);
    if !built(&context, "guard", language) {
        return false;
    }
    let tested = done(&context, &["skills", "test", "guard"]);
    assert!(tested.stdout.contains("3 passed, 0 failed"), "{tested}");
    done(&context, &["skills", "keygen", "one.key"]);
    done(&context, &["skills", "pack", "guard", "--key", "one.key", "--out", "guard.palyra-skill"]);
    done(&context, &["skills", "trust", "acme", "one.key.pub"]);
    let installed = done(&context, &["skills", "install", "guard.palyra-skill"]);
    assert!(installed.stdout.contains("hook       guard"), "{installed}");
    done(&context, &["skills", "hooks", "bind", "run:before_tool", "acme.guard", "--id", "guard"]);
    let run = context.run(["run", "write the note"]).unwrap();
    assert!(!context.workspace().join("notes.txt").exists(), "{language}: the call happened: {run}");
    let tape = done(&context, &["runs", "tape", "last", "--output", "ndjson"]);
    assert!(tape.stdout.contains("\"decision\":\"block\"") && tape.stdout.contains("`.env` file"), "{tape}");
    done(&context, &["skills", "hooks", "unbind", "guard"]);
    done(&context, &["run", "write the note"]);
    assert!(context.workspace().join("notes.txt").exists());
    context.finish().unwrap();
    true
}

#[test]
fn a_hook_goes_from_its_template_to_a_call_that_it_refuses() {
    let tried: Vec<&str> = ["c", "rust"].into_iter().filter(|language| guards(language)).collect();
    assert!(!tried.is_empty(), "no guest compiler is there; `bash scripts/guests.sh` installs some");
}

#[test]
fn there_is_no_hook_in_text_and_that_is_said() {
    let context = context("palyra.fs.write", json!({}));
    let run = context.run(["skills", "new", "acme.guard", "--kind", "hook", "--lang", "wat"]).unwrap();
    assert!(run.code != 0 && run.stderr.contains("[guest_kind_unsupported]"), "{run}");
    assert!(!context.workspace().join("acme.guard").exists());
}

/// The interpreter is compiled to machine code in the daemon, which takes a minute or two; `.config/nextest.toml` gives it that time. So the sequence is the shortest
/// that a newcomer can type.
#[test]
fn a_skill_in_python_goes_from_nothing_to_a_run() {
    let context = context("hello.greet", json!({"name": "Ada"}));
    done(&context, &["skills", "new", "hello", "--lang", "python"]);
    if !built(&context, "hello", "python") {
        eprintln!("SKIPPED: componentize-py is not there; `bash scripts/guests.sh` installs it");
        return;
    }
    done(&context, &["skills", "keygen", "one.key"]);
    done(&context, &["skills", "pack", "hello"]);
    done(&context, &["skills", "sign", "hello-0.1.0.palyra-skill", "--key", "one.key"]);
    done(&context, &["skills", "trust", "hello", "one.key.pub"]);
    let installed = done(&context, &["skills", "install", "hello-0.1.0.palyra-skill"]);
    assert!(installed.stdout.contains("enabled") && installed.stdout.contains("hello.greet"), "{installed}");
    let run = done(&context, &["run", "--mode", "open", "use hello.greet with Ada"]);
    assert!(run.stdout.contains("Hello, Ada!"), "{run}");
    context.finish().unwrap();
}
