//! The file layer: what is read, and how each mistake is named.

use std::path::Path;

use palyra_common::ToStableError as _;
use palyra_common::config::{self, ConfigError};
use palyra_common::{Environment, ErrorCategory};

fn parse(text: &str) -> Result<config::LoadedConfig, ConfigError> {
    config::resolve(Some(&config::parse(Path::new("/etc/palyra/palyra.toml"), text)?), &Environment::default())
}

#[test]
fn every_way_of_writing_a_key_is_read() {
    for text in [
        "version = 1\n[run]\nmax_turns = 7\n",
        "version = 1\nrun.max_turns = 7\n",
        "run = { max_turns = 7 }",
        "\"run\".'max_turns' = 0x7",
        "\r\n# comment\r\n[run]\r\nmax_turns=7",
    ] {
        assert_eq!(parse(text).unwrap().config().run.max_turns, 7, "{text}");
    }
    assert_eq!(parse("").unwrap().config(), &config::Config::default());
}

#[test]
fn each_mistake_gives_one_line_with_place_and_code() {
    for (text, code, message) in [
        (
            "version = 1\n\n[run]\nmax_turn = 3\n",
            "config_unknown_key",
            "/etc/palyra/palyra.toml:4: unknown key `run.max_turn`; did you mean `run.max_turns`?",
        ),
        (
            "max_turns = 3",
            "config_unknown_key",
            "/etc/palyra/palyra.toml:1: unknown key `max_turns`; did you mean `run.max_turns`?",
        ),
        ("[qqq]\nx = 1", "config_unknown_key", "/etc/palyra/palyra.toml:1: unknown key `qqq`"),
        (
            "[run]\nmax_turns = \"many\"",
            "config_wrong_type",
            "/etc/palyra/palyra.toml:2: expected integer from 1 to 100000 for `run.max_turns`; found string",
        ),
        (
            "[run]\nask_before = [\"a\", 3]",
            "config_wrong_type",
            "/etc/palyra/palyra.toml:2: expected list of strings for `run.ask_before`; \
             found list of values other than strings",
        ),
        (
            "[run]\nconfirm_mandates = [\"paying\", \"all\"]",
            "config_invalid_value",
            "/etc/palyra/palyra.toml:2: invalid value for `run.confirm_mandates`: `all` is not one of paying, outward",
        ),
        (
            "[run]\nconfirm_mandates = \"paying\"",
            "config_wrong_type",
            "/etc/palyra/palyra.toml:2: expected list of strings, each one of paying, outward for `run.confirm_mandates`; \
             found string",
        ),
        ("run = 3", "config_wrong_type", "/etc/palyra/palyra.toml:1: expected table for `run`; found integer"),
        (
            "[[run]]\nmax_turns = 3",
            "config_wrong_type",
            "/etc/palyra/palyra.toml:1: expected table for `run`; found array of tables",
        ),
        (
            "[run.max_turns]\na = 3",
            "config_wrong_type",
            "/etc/palyra/palyra.toml:1: expected integer from 1 to 100000 for `run.max_turns`; found table",
        ),
        (
            "[tool]\ntimeout_seconds = 601",
            "config_invalid_value",
            "/etc/palyra/palyra.toml:2: invalid value for `tool.timeout_seconds`: `601` is not an integer from 1 to 600",
        ),
        (
            "[model]\nprovider = \"gpt\"",
            "config_invalid_value",
            "/etc/palyra/palyra.toml:2: invalid value for `model.provider`: \
             `gpt` is not one of auto, offline, openai_compatible, openai, anthropic, gemini, openrouter, ollama, scripted",
        ),
        (
            "[daemon]\nhttp_bind = \"localhost\"",
            "config_invalid_value",
            "/etc/palyra/palyra.toml:2: invalid value for `daemon.http_bind`: `localhost` is not an IP address and a port",
        ),
        (
            "\nversion = 2",
            "config_version_unsupported",
            "/etc/palyra/palyra.toml:2: configuration version `2` is not supported; this build reads version 1",
        ),
        (
            "version = \"1\"",
            "config_version_unsupported",
            "/etc/palyra/palyra.toml:1: configuration version `\"1\"` is not supported; this build reads version 1",
        ),
        (
            "[model]\nprovider = \"scripted\"",
            "config_inconsistent",
            "invalid `model.script`: `model.provider` is `scripted`, which needs a script",
        ),
    ] {
        let error = parse(text).unwrap_err().to_stable();
        assert_eq!((error.code.as_str(), error.message.as_str()), (code, message), "{text}");
        assert_eq!(error.category, ErrorCategory::Validation);
        assert!(error.recovery_hint.is_some());
    }
}

#[test]
fn broken_toml_is_named_by_line_and_column() {
    for (text, place) in [
        ("version = 1\n[run\n", "/etc/palyra/palyra.toml:2:5: "),
        ("a = 1\na = 2", "/etc/palyra/palyra.toml:2:1: "),
        ("é = 1", "/etc/palyra/palyra.toml:1:1: "),
    ] {
        let error = parse(text).unwrap_err().to_stable();
        assert_eq!(error.code, "config_invalid");
        assert!(error.message.starts_with(place) && !error.message.contains('\n'), "{}", error.message);
    }
}

#[test]
fn all_mistakes_are_reported_together() {
    let error = parse("[run]\nmax_turns = true\nmax_turnz = 1\n[model]\nname = ''\n").unwrap_err();
    let found: Vec<_> = error.problems().map(|problem| (problem.code(), problem.key().unwrap())).collect();
    assert_eq!(
        found,
        [
            ("config_wrong_type", "run.max_turns"),
            ("config_unknown_key", "run.max_turnz"),
            ("config_invalid_value", "model.name"),
        ]
    );
    let stable = error.to_stable();
    assert!(stable.message.ends_with("(and 2 more problems)"), "{}", stable.message);
    assert_eq!(stable.validation_errors.len(), 3);
    assert_eq!(stable.exit_code() as u8, 2);
}

#[test]
fn a_plain_secret_is_refused_and_not_repeated() {
    for (line, secret) in
        [("api_key = \"sk-live-123456\"", "sk-live-123456"), ("base_url = \"https://user:hunter2@host/v1\"", "hunter2")]
    {
        let error = parse(&format!("[model]\n{line}")).unwrap_err().to_stable();
        assert_eq!(error.code, "config_invalid_value");
        let shown = serde_json::to_string(&error).unwrap();
        assert!(!shown.contains(secret) && shown.contains("reference"), "{shown}");
    }
}

#[test]
fn addresses_that_cannot_be_a_base_are_refused() {
    for good in ["http://127.0.0.1:8080", "https://host/v1/", "http://[::1]:8080/v1"] {
        assert!(parse(&format!("[model]\nbase_url = '{good}'")).is_ok(), "{good}");
    }
    for bad in [
        "host/v1",
        "ftp://host",
        "https://",
        "https:///v1",
        "https://:80",
        "https://h/?k=1",
        "https://h/#f",
        "http://a b",
    ] {
        assert!(parse(&format!("[model]\nbase_url = '{bad}'")).is_err(), "{bad}");
    }
}

#[test]
fn relative_paths_start_from_the_file() {
    let loaded = parse("[model]\nprovider = 'scripted'\nscript = 'a/b.json'\napi_key = 'file:key'").unwrap();
    assert_eq!(loaded.config().model.script.as_deref(), Some(Path::new("/etc/palyra/a/b.json")));
    assert_eq!(loaded.config().model.api_key.as_ref().unwrap().to_string(), "file:/etc/palyra/key");
}

#[test]
fn relative_paths_in_variables_start_from_the_directory_of_the_process() {
    let environment =
        Environment::from_pairs([("PALYRA_MODEL_PROVIDER", "scripted"), ("PALYRA_MODEL_SCRIPT", "a/b.json")])
            .with("HOME", "/nonexistent")
            .in_directory("/w");
    let loaded = config::load(&environment).unwrap();
    assert_eq!(loaded.config().model.script.as_deref(), Some(Path::new("/w/a/b.json")));
}

#[test]
fn a_file_that_cannot_be_read_is_an_error_and_a_missing_one_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let config_home = directory.path().join("palyra");
    let environment = Environment::from_pairs([("XDG_CONFIG_HOME", directory.path())]).with("HOME", directory.path());
    let path = config_home.join("palyra.toml");

    std::fs::create_dir_all(&config_home).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert_eq!(config::load(&environment).unwrap_err().first().code(), "config_unreadable");
    std::fs::remove_dir(&path).unwrap();

    for bytes in [b"a = \"\xff\"".to_vec(), vec![b'#'; 1_048_577]] {
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(config::load(&environment).unwrap_err().first().code(), "config_unreadable");
    }

    std::fs::write(&path, "version = 1\nrun.max_turns = 9\n").unwrap();
    let loaded = config::load(&environment).unwrap();
    assert_eq!((loaded.config().run.max_turns, loaded.file()), (9, Some(path.as_path())));

    let named = environment.clone().with("PALYRA_CONFIG", directory.path().join("none.toml"));
    let error = config::load(&named).unwrap_err();
    assert_eq!(error.first().code(), "config_missing");
    assert!(error.to_string().contains("none.toml"));
}

#[test]
fn deep_nesting_is_refused_and_does_not_exhaust_the_stack() {
    let depth = 100_000;
    for text in [
        format!("a = {}", "[".repeat(depth)),
        format!("a = {}", "{a = ".repeat(depth)),
        format!("{}a = 1", "a.".repeat(depth)),
        format!("[{}a]", "a.".repeat(depth)),
        format!("run = {{ {}a = 1 }}", "a.".repeat(depth)),
    ] {
        assert!(parse(&text).is_err());
    }
}
