//! Compiled code of skills, changed by hand in the state root: the daemon compiles anew or refuses, and never runs what is not the skill's own.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use palyra_testkit::TestContext;
use serde_json::json;

use super::skills::{context, done, refused};

/// A module that gives the same answer to everything, so that whose code ran is seen.
const CONSTANT: &str = r#"(module
  (memory (export "memory") 1)
  (data (i32.const 64) "{\"text\":\"the other\"}")
  (func (export "palyra_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "run") (param i32 i32) (result i64)
    (i64.or (i64.shl (i64.const 64) (i64.const 32)) (i64.const 20))))"#;

/// One skill that repeats what it is told, and one that does not.
fn installed() -> TestContext {
    let context = context("hello.echo", json!({"text": "Ada"}));
    done(&context, &["skills", "keygen", "one.key"]);
    done(&context, &["skills", "trust", "acme", "one.key.pub"]);
    for name in ["hello", "other"] {
        done(&context, &["skills", "new", name, "--lang", "wat", "--publisher", "acme"]);
        if name == "other" {
            fs::write(context.workspace().join("other/src/skill.wat"), CONSTANT).unwrap();
        }
        done(&context, &["skills", "build", name]);
        done(&context, &["skills", "pack", name, "--key", "one.key"]);
        done(&context, &["skills", "install", &format!("{name}-0.1.0.palyra-skill")]);
    }
    context
}

/// The files of compiled code, in the order of their names.
fn compiled(context: &TestContext) -> Vec<PathBuf> {
    let folder = context.state_root().join("skills/compiled");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "cwasm"));
    files.sort();
    files
}

fn both_answer_as_themselves(context: &TestContext, what: &str) {
    for (name, answer) in [("hello.echo", "Ada"), ("other.echo", "the other")] {
        let called = done(context, &["skills", "call", name, r#"{"text": "Ada"}"#]);
        assert!(called.stdout.contains(answer), "{name} after {what}: {called}");
    }
}

fn change(path: &Path, how: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    how(&mut bytes);
    fs::write(path, bytes).unwrap();
}

/// Changes the first file, or both.
type Tamper<'a> = &'a dyn Fn(&Path, &Path);

#[test]
fn code_that_was_changed_on_disk_is_compiled_anew() {
    let context = installed();
    let changes: [(&str, Tamper<'_>); 7] = [
        ("a flipped bit", &|one, _| {
            change(one, |bytes| {
                let middle = bytes.len() / 2;
                bytes[middle] ^= 1;
            });
        }),
        ("being cut off", &|one, _| change(one, |bytes| bytes.truncate(100))),
        ("being exchanged", &|one, two| {
            let (first, second) = (fs::read(one).unwrap(), fs::read(two).unwrap());
            fs::write(one, second).unwrap();
            fs::write(two, first).unwrap();
        }),
        ("a link to another's code", &|one, two| {
            fs::remove_file(one).unwrap();
            symlink(two, one).unwrap();
        }),
        ("a second name for another's code", &|one, two| {
            fs::remove_file(one).unwrap();
            fs::hard_link(two, one).unwrap();
        }),
        ("a folder in its place", &|one, _| {
            fs::remove_file(one).unwrap();
            fs::create_dir(one).unwrap();
        }),
        ("everybody may write", &|one, _| {
            fs::set_permissions(one, fs::Permissions::from_mode(0o666)).unwrap();
            change(one, |bytes| bytes.iter_mut().rev().take(64).for_each(|byte| *byte = !*byte));
        }),
    ];
    for (what, tamper) in changes {
        let files = compiled(&context);
        let [one, two] = files.as_slice() else { panic!("{files:?}") };
        done(&context, &["daemon", "stop"]);
        tamper(one, two);
        both_answer_as_themselves(&context, what);
    }
    done(&context, &["run", "use hello.echo"]);
    context.finish().unwrap();
}

#[test]
fn another_key_makes_all_code_foreign_and_one_that_others_know_is_refused() {
    let context = installed();
    let key = context.state_root().join("skills/cache.key");
    let before: Vec<Vec<u8>> = compiled(&context).iter().map(|path| fs::read(path).unwrap()).collect();
    done(&context, &["daemon", "stop"]);
    fs::write(&key, [7; 32]).unwrap();
    both_answer_as_themselves(&context, "another key");
    let after: Vec<Vec<u8>> = compiled(&context).iter().map(|path| fs::read(path).unwrap()).collect();
    assert!(before.iter().all(|old| !after.contains(old)), "code under the old key is still there");

    done(&context, &["daemon", "stop"]);
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    refused(&context, &["skills", "call", "hello.echo", r#"{"text": "Ada"}"#], "plugin_cache_unusable");
    done(&context, &["daemon", "stop"]);
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    both_answer_as_themselves(&context, "the right mode");
    done(&context, &["run", "use hello.echo"]);
    context.finish().unwrap();
}

#[test]
fn nothing_of_an_unknown_publisher_is_compiled_and_a_removed_skill_leaves_nothing_behind() {
    let context = installed();
    assert_eq!(compiled(&context).len(), 2);
    done(&context, &["skills", "keygen", "two.key"]);
    done(&context, &["skills", "new", "third", "--lang", "wat"]);
    let third = context.workspace().join("third/src/skill.wat");
    fs::write(third, CONSTANT.replace("the other", "the third")).unwrap();
    done(&context, &["skills", "build", "third"]);
    done(&context, &["skills", "pack", "third", "--key", "two.key"]);
    let files = |folder: &str| fs::read_dir(context.state_root().join("skills").join(folder)).unwrap().count();
    refused(&context, &["skills", "install", "third-0.1.0.palyra-skill"], "skill_publisher_unknown");
    assert_eq!((compiled(&context).len(), files("archives"), files("modules")), (2, 2, 2));
    done(&context, &["skills", "remove", "other"]);
    assert_eq!((compiled(&context).len(), files("archives"), files("modules")), (1, 1, 1));
    done(&context, &["run", "use hello.echo"]);
    context.finish().unwrap();
}
