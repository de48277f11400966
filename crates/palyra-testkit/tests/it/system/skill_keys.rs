//! Publishers change their keys and take things back, as they and their operators type it; and what becomes of skills that are installed.

use std::time::Instant;

use palyra_testkit::TestContext;
use serde_json::json;

use super::PATIENCE;
use super::skills::{context, done, key_id, packed, refused, stored_archive};

/// Two keys, the first of which is trusted, and a skill that it signed.
fn installed() -> TestContext {
    let context = context("hello.echo", json!({"text": "Ada"}));
    for key in ["one.key", "two.key"] {
        done(&context, &["skills", "keygen", key]);
    }
    let file = packed(&context, "0.1.0", "one.key");
    done(&context, &["skills", "trust", "hello", "one.key.pub"]);
    done(&context, &["skills", "install", &file]);
    context
}

const CALL: [&str; 4] = ["skills", "call", "hello.echo", r#"{"text": "Ada"}"#];

#[test]
fn a_publisher_hands_over_to_a_new_key_and_then_revokes_the_old_one() {
    let context = installed();
    let newer = packed(&context, "0.2.0", "two.key");
    refused(&context, &["skills", "update", &newer], "skill_key_changed");

    // Somebody who has only the new key cannot hand over to it.
    done(&context, &["skills", "keygen", "stranger.key"]);
    let forged =
        ["skills", "rotate-key", "hello", "--key", "stranger.key", "--new-key", "two.key", "--out", "forged.json"];
    done(&context, &forged);
    refused(&context, &["skills", "import", "forged.json"], "skill_rotation_refused");
    let same = ["skills", "rotate-key", "hello", "--key", "one.key", "--new-key", "one.key"];
    refused(&context, &same, "skill_rotation_refused");
    done(&context, &["skills", "rotate-key", "hello", "--key", "one.key", "--new-key", "two.key"]);
    let imported = done(&context, &["skills", "import", "hello.rotation.json"]);
    assert!(imported.stdout.contains(&key_id(&context, &newer)), "{imported}");
    refused(&context, &["skills", "import", "hello.rotation.json"], "skill_rotation_refused");
    refused(&context, &["skills", "import", &newer], "skill_statement_invalid");

    // The old key's version still runs, nothing new is taken under it, and the new one's update is.
    done(&context, &CALL);
    let late = packed(&context, "0.1.5", "one.key");
    refused(&context, &["skills", "update", &late], "skill_key_retired");
    done(&context, &["skills", "update", &newer]);

    // The old key is revoked with a list that the new one signs; the skill of the new one is not concerned.
    let revoke = ["skills", "revoke", "hello", "--key", "two.key", "--reason", "the laptop was stolen"];
    done(&context, &[&revoke[..], &["--revoked-key", "one.key.pub"]].concat());
    let imported = done(&context, &["skills", "import", "hello.revocations.json"]);
    assert!(!imported.stdout.contains("quarantine"), "{imported}");
    let publishers = done(&context, &["skills", "publishers"]);
    let row = publishers.stdout.lines().find(|line| line.starts_with("hello")).unwrap();
    assert!(row.contains("trusted") && row.contains(&key_id(&context, &late)), "{publishers}");
    refused(&context, &["skills", "trust", "hello", "one.key.pub"], "skill_key_revoked");
    done(&context, &["run", "use hello.echo"]);

    // The list grows: the version that runs is taken back too. That holds at once, and after a restart.
    done(&context, &[&revoke[..], &["--archive", &newer]].concat());
    let imported = done(&context, &["skills", "import", "hello.revocations.json"]);
    assert!(imported.stdout.contains("Quarantined hello"), "{imported}");
    refused(&context, &["skills", "import", "hello.revocations.json"], "skill_revocation_refused");
    refused(&context, &CALL, "skill_artifact_revoked");
    done(&context, &["daemon", "stop"]);
    refused(&context, &CALL, "skill_artifact_revoked");
    refused(&context, &["skills", "enable", "hello", "--reason", "please"], "skill_artifact_revoked");
    context.finish().unwrap();
}

#[test]
fn an_operator_revokes_a_key_and_what_it_signed_stops() {
    let context = installed();
    done(&context, &["run", "use hello.echo"]);
    refused(&context, &["skills", "revoke-key", "one.key.pub", "--reason", " "], "skill_reason_missing");
    let revoked = done(&context, &["skills", "revoke-key", "one.key.pub", "--reason", "it was found on a forum"]);
    assert!(revoked.stdout.contains("Quarantined hello"), "{revoked}");
    refused(&context, &CALL, "skill_key_revoked");
    let publishers = done(&context, &["skills", "publishers"]);
    assert!(!publishers.stdout.contains("trusted"), "a revoked key is shown as trusted: {publishers}");
    // On load as well: a daemon that starts anew does not bind it.
    done(&context, &["daemon", "stop"]);
    refused(&context, &CALL, "skill_key_revoked");
    let run = context.run(["run", "use hello.echo"]).unwrap();
    assert!(!run.stderr.contains("• hello.echo ✓"), "{run}");
    refused(&context, &["skills", "import", "no-such-file.json"], "file_unusable");
    context.finish().unwrap();
}

/// Waits until the daemon has put the skill into quarantine by itself. The list only looks; nothing that is asked here audits.
fn wait_for_quarantine(context: &TestContext) -> String {
    let began = Instant::now();
    loop {
        let listed = done(context, &["skills", "list"]);
        if listed.stdout.contains("quarantined") {
            return done(context, &["skills", "list", "--output", "json"]).stdout;
        }
        assert!(began.elapsed() < PATIENCE, "it is not in quarantine: {listed}");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}

#[test]
fn the_daemon_finds_a_tampered_skill_by_its_own_clock() {
    let context = context("hello.echo", json!({"text": "Ada"})).env("PALYRA_SKILLS_AUDIT_INTERVAL_SECONDS", "1");
    done(&context, &["skills", "keygen", "one.key"]);
    let file = packed(&context, "0.1.0", "one.key");
    done(&context, &["skills", "trust", "hello", "one.key.pub"]);
    done(&context, &["skills", "install", &file]);
    done(&context, &["run", "use hello.echo"]);
    let stored = stored_archive(&context);
    let mut bytes = std::fs::read(&stored).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&stored, &bytes).unwrap();
    let listed = wait_for_quarantine(&context);
    assert!(listed.contains("modified on disk") || listed.contains("archive"), "{listed}");
    refused(&context, &CALL, "skill_quarantined");
    let journal = done(&context, &["journal", "tail", "-n", "50", "--output", "ndjson"]);
    assert!(journal.stdout.contains("skill.changed"), "{journal}");
    context.finish().unwrap();
}

#[test]
fn the_daemon_hears_by_its_own_clock_what_a_registry_and_a_publisher_take_back() {
    let context = context("hello.echo", json!({"text": "Ada"}));
    let registry = context.root().join("registry");
    let context = context
        .env("PALYRA_SKILLS_REGISTRIES", format!("team {}", registry.display()))
        .env("PALYRA_SKILLS_AUDIT_INTERVAL_SECONDS", "1");
    for key in ["one.key", "registry.key"] {
        done(&context, &["skills", "keygen", key]);
    }
    let directory = registry.display().to_string();
    let file = packed(&context, "0.1.0", "one.key");
    let publish = |file: &str| {
        done(&context, &["skills", "registry", "publish", &directory, file, "--key", "registry.key"]);
    };
    done(&context, &["skills", "registry", "create", &directory, "--key", "registry.key"]);
    publish(&file);
    done(&context, &["skills", "trust", "hello", "one.key.pub"]);
    done(&context, &["skills", "install", "team/hello"]);
    done(&context, &["run", "use hello.echo"]);
    let revoke = ["skills", "revoke", "hello", "--key", "one.key", "--archive", &file, "--reason", "it leaks"];
    done(&context, &revoke);
    publish("hello.revocations.json");
    let listed = wait_for_quarantine(&context);
    assert!(listed.contains("it leaks"), "{listed}");
    refused(&context, &CALL, "skill_artifact_revoked");

    // A version that was not revoked ends the quarantine; the one that was stays listed, with the reason, and cannot be had.
    publish(&packed(&context, "0.2.0", "one.key"));
    let updated = done(&context, &["skills", "update", "hello"]);
    assert!(updated.stdout.contains("enabled: updated from 0.1.0, which was revoked"), "{updated}");
    done(&context, &CALL);
    let revoke = ["skills", "registry", "revoke", &directory, "hello", "0.1.0", "--reason", "it leaks tokens"];
    done(&context, &[&revoke[..], &["--key", "registry.key"]].concat());
    let listed = done(&context, &["skills", "registry", "list", &directory]);
    let of_version = |version: &str| listed.stdout.lines().find(|line| line.contains(version)).unwrap_or_default();
    assert!(of_version("0.1.0").ends_with("revoked: it leaks tokens"), "{listed}");
    assert!(!of_version("0.2.0").contains("revoked"), "{listed}");
    let refusal = refused(&context, &["skills", "install", "team/hello@0.1.0"], "skill_artifact_revoked");
    assert!(refusal.stderr.contains("it leaks tokens"), "{refusal}");
    context.finish().unwrap();
}
