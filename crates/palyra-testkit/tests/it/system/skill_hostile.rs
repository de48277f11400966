//! Skills that mean harm, or to which harm was done, through the real programs.

use std::time::Instant;

use palyra_testkit::TestContext;
use serde_json::json;

use super::PATIENCE;
use super::skills::{context, done, refused, stored_archive};

/// A hook that has nothing to say, as a component in text.
const LISTENER: &str = include_str!("../../../../palyra-daemon/src/dispatch/listener.wat");

/// A folder of a skill in text, not built yet.
fn folder(context: &TestContext, skill_id: &str, entrypoints: &str, module: &str) {
    let folder = context.workspace().join(skill_id);
    std::fs::create_dir_all(folder.join("src")).unwrap();
    let manifest = format!(
        "manifest_version = 1\nskill_id = \"{skill_id}\"\nname = \"S\"\nversion = \"0.1.0\"\npublisher = \"acme\"\n{entrypoints}\n\
         [compat]\nmin_palyra_version = \"0.1.0\"\nabi = \"1.0.0\"\n"
    );
    std::fs::write(folder.join("skill.toml"), manifest).unwrap();
    std::fs::write(folder.join("src/skill.wat"), module).unwrap();
}

#[test]
fn hooks_hear_of_a_skill_that_was_tampered_with_while_no_daemon_ran() {
    let context = context("hello.echo", json!({"text": "Ada"}));
    done(&context, &["skills", "keygen", "one.key"]);
    done(&context, &["skills", "trust", "hello", "one.key.pub"]);
    done(&context, &["skills", "keygen", "two.key"]);
    done(&context, &["skills", "trust", "acme", "two.key.pub"]);
    let file = super::skills::packed(&context, "0.1.0", "one.key");
    done(&context, &["skills", "install", &file]);
    // The only archive so far is the one that will be changed.
    let stored = stored_archive(&context);
    let hook = "[[entrypoints.hooks]]\nid = \"listener\"\nevents = [\"skill:quarantined\"]";
    folder(&context, "acme.listener", hook, LISTENER);
    done(&context, &["skills", "build", "acme.listener"]);
    done(&context, &["skills", "pack", "acme.listener", "--key", "two.key"]);
    done(&context, &["skills", "install", "acme.listener-0.1.0.palyra-skill"]);
    done(&context, &["skills", "hooks", "bind", "skill:quarantined", "acme.listener"]);
    done(&context, &["daemon", "stop"]);

    let mut bytes = std::fs::read(&stored).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&stored, &bytes).unwrap();
    // The first use of skills loads them.
    refused(&context, &["skills", "call", "hello.echo", r#"{"text": "Ada"}"#], "skill_quarantined");
    let begun = Instant::now();
    loop {
        let journal = done(&context, &["journal", "export"]);
        if journal.stdout.contains("hook_event.answered") {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "no hook was told: {journal}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let run = context.run(["run", "use hello.echo"]).unwrap();
    assert!(!run.stderr.contains("• hello.echo ✓"), "{run}");
    context.finish().unwrap();
}

#[test]
fn a_schema_that_stands_for_billions_of_looks_is_refused_before_it_is_packed() {
    let context = context("hello.echo", json!({"text": "Ada"}));
    let next = |level: usize| format!("{{ \"$ref\" = \"#/$defs/a{}\" }}", level + 1);
    let definitions: Vec<String> =
        (0..28).map(|level| format!("a{level} = {{ anyOf = [ {0}, {0} ] }}", next(level))).collect();
    let schema = format!(
        "{{ type = \"object\", \"$ref\" = \"#/$defs/a0\", \"$defs\" = {{ {}, a28 = {{ type = \"string\" }} }} }}",
        definitions.join(", ")
    );
    let tool =
        format!("[[entrypoints.tools]]\nid = \"go\"\nname = \"Go\"\ndescription = \"d\"\ninput_schema = {schema}");
    folder(&context, "acme.bomb", &tool, "(module)");
    done(&context, &["skills", "keygen", "one.key"]);
    let packed = refused(&context, &["skills", "pack", "acme.bomb", "--key", "one.key"], "skill_manifest_invalid");
    assert!(packed.stderr.contains("too expensive"), "{packed}");
}
