//! Edits: comments stay, wrong values never reach the file, the file is private and complete.

use std::path::Path;

use palyra_common::Environment;
use palyra_common::config::{self, ConfigValue};

const FILE: &str =
    "# mine\nversion = 1\n\n[run] # limits\n# how long\nmax_turns = 3 # few\n\n[log]\nlevel = \"info\"\n";

fn environment() -> Environment {
    Environment::default()
}

fn write(directory: &Path, text: &str) -> std::path::PathBuf {
    let path = directory.join("palyra.toml");
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn an_edit_keeps_everything_else() {
    let directory = tempfile::tempdir().unwrap();
    let path = write(directory.path(), FILE);
    let edit = config::set(&path, "run.max_turns", "9", &environment()).unwrap();
    assert_eq!((edit.before, edit.after), (ConfigValue::Integer(3), ConfigValue::Integer(9)));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), FILE.replace("max_turns = 3", "max_turns = 9"));

    config::set(&path, "run.ask_before", "a,b", &environment()).unwrap();
    config::set(&path, "tool.max_parallel", "2", &environment()).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("max_turns = 9 # few\nask_before = [\"a\", \"b\"]\n"), "{text}");
    assert!(text.ends_with("[tool]\nmax_parallel = 2\n"), "{text}");

    let edit = config::unset(&path, "run.max_turns", &environment()).unwrap();
    assert_eq!((edit.before, edit.after), (ConfigValue::Integer(9), ConfigValue::Unset));
    let loaded =
        config::resolve(Some(&config::parse(&path, &std::fs::read_to_string(&path).unwrap()).unwrap()), &environment())
            .unwrap();
    assert_eq!(loaded.config().run.max_turns, 64);
    assert_eq!(loaded.config().run.ask_before, ["a", "b"]);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "no copy is left behind");
}

#[test]
fn inline_and_dotted_sections_are_edited_in_place() {
    let directory = tempfile::tempdir().unwrap();
    for (text, wanted) in [
        ("run = { max_turns = 3 }\n", "run = { max_turns = 9 }\n"),
        ("run.max_turns = 3\n", "run.max_turns = 9\n"),
        ("run.loop_repeats = 3\n", "run.loop_repeats = 3\nrun.max_turns = 9\n"),
    ] {
        let path = write(directory.path(), text);
        config::set(&path, "run.max_turns", "9", &environment()).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), wanted);
    }
}

#[test]
fn a_wrong_value_or_key_leaves_the_file_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = write(directory.path(), FILE);
    for (key, value, code) in [
        ("run.max_turns", "many", "config_wrong_type"),
        ("run.max_turns", "-1", "config_invalid_value"),
        ("run.max_turnz", "1", "config_unknown_key"),
        ("model.api_key", "sk-plain", "config_invalid_value"),
        ("model.provider", "scripted", "config_inconsistent"),
        ("daemon.http_bind", "0.0.0.0:1", "public_bind_refused"),
    ] {
        let error = config::set(&path, key, value, &environment()).unwrap_err();
        assert_eq!(error.first().code(), code, "{key} = {value}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), FILE);
    }
    let path = write(directory.path(), "[run\n");
    assert_eq!(config::set(&path, "run.max_turns", "1", &environment()).unwrap_err().first().code(), "config_invalid");
}

#[test]
fn a_broken_file_can_be_mended_one_key_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = write(directory.path(), "[run]\nmax_turns = true\n[tool]\nmax_parallel = 0\n");
    config::set(&path, "run.max_turns", "3", &environment()).unwrap();
    assert!(config::set(&path, "model.provider", "scripted", &environment()).is_err(), "a new problem is refused");
    config::set(&path, "tool.max_parallel", "3", &environment()).unwrap();
    config::parse(&path, &std::fs::read_to_string(&path).unwrap()).unwrap();
}

#[test]
fn a_new_file_is_complete_and_says_what_overrides_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a/b/palyra.toml");
    let environment = Environment::from_pairs([("PALYRA_LOG_LEVEL", "debug")]);
    config::unset(&path, "log.level", &environment).unwrap();
    assert!(!path.exists(), "nothing to remove, nothing to write");
    let edit = config::set(&path, "log.level", "WARN", &environment).unwrap();
    assert_eq!(edit.after, ConfigValue::Text("warn".into()));
    assert_eq!(edit.overridden_by.as_deref(), Some("PALYRA_LOG_LEVEL"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "version = 1\n\n[log]\nlevel = \"warn\"\n");
}

#[cfg(unix)]
#[test]
fn the_file_is_private_and_a_link_stays_a_link() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let path = write(directory.path(), FILE);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let link = directory.path().join("link.toml");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let edit = config::set(&link, "run.max_turns", "9", &environment()).unwrap();
    assert_eq!(edit.path, path.canonicalize().unwrap());
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert!(std::fs::read_to_string(&path).unwrap().contains("max_turns = 9 # few"));
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_place_that_cannot_be_written_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let blocker = directory.path().join("file");
    std::fs::write(&blocker, "").unwrap();
    let error = config::set(&blocker.join("palyra.toml"), "run.max_turns", "9", &environment()).unwrap_err();
    assert_eq!(error.first().code(), "config_unwritable");
}

/// What the daemon would refuse at its next start is refused now, with the key that is wrong.
#[test]
fn amounts_of_money_are_checked_before_they_are_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = write(directory.path(), "version = 1\n");
    for wrong in ["2 dollars", "-5", "much", "1,000", "$", "0.0000001"] {
        let refused = config::set(&path, "budget.day", wrong, &environment()).unwrap_err();
        assert!(refused.to_string().contains("invalid value for `budget.day`"), "{refused}");
        assert!(refused.to_string().contains("is not an amount in US dollars"), "{refused}");
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "version = 1\n");
    for right in ["5", "$5", "0.50 USD", "0", "$2.50"] {
        config::set(&path, "budget.day", right, &environment()).unwrap();
    }
    let refused = config::set(&path, "budget.day_warn", "$2.51", &environment()).unwrap_err();
    assert!(
        refused.to_string().contains("invalid `budget.day_warn`: it is above the hard limit `budget.day`"),
        "{refused}"
    );
    config::set(&path, "budget.day_warn", "$2.50", &environment()).unwrap();
}
