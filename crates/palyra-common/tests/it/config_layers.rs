//! Layers: who wins, and that the winner is named.

use std::path::Path;

use palyra_common::config::{self, Config, ConfigSource, ConfigValue, KEYS, LogFormat, ModelProviderChoice};
use palyra_common::{DeploymentProfile, Environment, SecretRef};

const FILE: &str = "/c/palyra.toml";

fn load(text: &str, pairs: &[(&str, &str)]) -> config::LoadedConfig {
    let layer = config::parse(Path::new(FILE), text).unwrap();
    config::resolve(Some(&layer), &Environment::from_pairs(pairs.iter().copied())).unwrap()
}

fn code(text: &str, pairs: &[(&str, &str)]) -> &'static str {
    let layer = config::parse(Path::new(FILE), text).unwrap();
    config::resolve(Some(&layer), &Environment::from_pairs(pairs.iter().copied())).unwrap_err().first().code()
}

#[test]
fn the_documented_defaults_hold() {
    let config = Config::default();
    assert_eq!(config.deployment.profile, DeploymentProfile::Local);
    assert_eq!(config.daemon.http_bind.to_string(), "127.0.0.1:7142");
    assert_eq!((config.run.max_turns, config.run.max_tool_calls, config.run.wall_clock_seconds), (64, 128, 900));
    assert_eq!((config.run.expire_after_seconds, config.run.loop_repeats, config.run.max_concurrent), (604_800, 4, 64));
    assert_eq!((config.tool.timeout_seconds, config.tool.max_parallel), (120, 8));
    assert_eq!((config.patch.max_bytes, config.patch.max_files), (1_048_576, 256));
    assert_eq!(config.model.provider, ModelProviderChoice::Auto);
    assert_eq!(config.context.project_files, ["PALYRA.md", "AGENTS.md"]);
    assert_eq!((config.context.compact_at_percent, config.approval.timeout_seconds), (80, 0));
    assert_eq!((config.journal.checkpoint_every, config.journal.segment_records), (1_024, 250_000));
    assert_eq!((config.journal.inline_payload_bytes, config.journal.min_free_bytes), (262_144, 33_554_432));
    assert!(config.run.ask_before.is_empty());
    assert_eq!(config::resolve(None, &Environment::default()).unwrap().config(), &config);
}

#[test]
fn each_layer_wins_over_those_below_and_is_named() {
    let key = "run.max_concurrent";
    let profile = "[deployment]\nprofile = 'workers'\n";
    let file = format!("{profile}[run]\nmax_concurrent = 5\n");
    let env = [("PALYRA_RUN_MAX_CONCURRENT", "6")];
    for (loaded, value, source) in [
        (load("", &[]), 64, "default"),
        (load(profile, &[]), 256, "profile worker-enabled"),
        (load(&file, &[]), 5, "file /c/palyra.toml:4"),
        (load(&file, &env), 6, "env PALYRA_RUN_MAX_CONCURRENT"),
        (load("", &env), 6, "env PALYRA_RUN_MAX_CONCURRENT"),
        (load("", &[("PALYRA_DEPLOYMENT_PROFILE", "worker-enabled")]), 256, "profile worker-enabled"),
        (load(profile, &[("PALYRA_DEPLOYMENT_PROFILE", "local")]), 64, "default"),
        (load(&file, &[("PALYRA_RUN_MAX_CONCURRENT", "")]), 5, "file /c/palyra.toml:4"),
    ] {
        let explained = loaded.explain(key).unwrap();
        assert_eq!(explained.value, ConfigValue::Integer(value));
        assert_eq!(explained.source.to_string(), source);
        assert_eq!(i64::from(loaded.config().run.max_concurrent), value);
    }
    let server = load("deployment.profile = 'vps'", &[]);
    assert_eq!(server.config().log.format, LogFormat::Json);
    assert_eq!(server.explain("deployment.profile").unwrap().value, ConfigValue::Text("single-vm".into()));
}

#[test]
fn explain_tells_everything_and_knows_what_was_meant() {
    let loaded = load("", &[]);
    let explained = loaded.explain("model.api_key").unwrap();
    assert_eq!(explained.environment_variables, ["PALYRA_MODEL_API_KEY", "OPENAI_API_KEY"]);
    assert_eq!((explained.value, explained.source), (ConfigValue::Unset, ConfigSource::Default));
    assert!(explained.doc.ends_with('.') && explained.expected.contains("vault:scope/key"));
    let error = loaded.explain("run.maxturns").unwrap_err();
    assert_eq!(error.to_string(), "unknown key `run.maxturns`; did you mean `run.max_turns`?");
    assert_eq!(loaded.list().len(), KEYS.len());
}

#[test]
fn variables_of_openai_clients_say_nothing_about_other_providers() {
    let env = [("OPENAI_BASE_URL", "http://127.0.0.1:9/v1"), ("OPENAI_API_KEY", "sk-1"), ("OPENAI_MODEL", "m")];
    for provider in ["anthropic", "gemini", "openrouter", "ollama"] {
        let loaded = load(&format!("[model]\nprovider = '{provider}'\nname = 'from-file'"), &env);
        let model = &loaded.config().model;
        assert_eq!((model.base_url.as_deref(), &model.api_key), (None, &None), "{provider}");
        assert_eq!(model.name.as_deref(), Some("from-file"));
        assert_eq!(loaded.explain("model.name").unwrap().source.to_string(), "file /c/palyra.toml:3");
        assert_eq!(loaded.explain("model.api_key").unwrap().source, ConfigSource::Default);
    }
    let openai = load("[model]\nprovider = 'openai'", &env);
    assert_eq!(openai.config().model.provider, ModelProviderChoice::Openai);
    assert_eq!(openai.config().model.base_url.as_deref(), Some("http://127.0.0.1:9/v1"));
    let named = load("[model]\nprovider = 'anthropic'", &[("PALYRA_MODEL_API_KEY", "env:OPENAI_API_KEY")]);
    assert_eq!(named.config().model.api_key, Some(SecretRef::Env("OPENAI_API_KEY".into())), "said in so many words");
}

#[test]
fn the_usual_variables_of_openai_clients_are_enough() {
    let env = [("OPENAI_BASE_URL", "http://127.0.0.1:9/v1"), ("OPENAI_API_KEY", "sk-1"), ("OPENAI_MODEL", "m")];
    let loaded = load("[model]\nname = 'from-file'", &env);
    let model = &loaded.config().model;
    assert_eq!(model.base_url.as_deref(), Some("http://127.0.0.1:9/v1"));
    assert_eq!(model.api_key, Some(SecretRef::Env("OPENAI_API_KEY".into())));
    assert_eq!(model.name.as_deref(), Some("m"));
    assert_eq!(loaded.explain("model.name").unwrap().source.to_string(), "env OPENAI_MODEL");
    let ours = load("", &[("OPENAI_MODEL", "theirs"), ("PALYRA_MODEL_NAME", "ours")]);
    assert_eq!(ours.config().model.name.as_deref(), Some("ours"));
    assert_eq!(code("", &[("PALYRA_MODEL_API_KEY", "sk-plain")]), "config_invalid_value");
}

#[test]
fn environment_values_are_read_by_type() {
    let loaded = load(
        "",
        &[
            ("PALYRA_RUN_ASK_BEFORE", "palyra.fs.write, palyra.fs.apply_patch,"),
            ("PALYRA_CONTEXT_PROJECT_FILES", "[\"A, B.md\"]"),
            ("PALYRA_DAEMON_HTTP_ENABLED", "0"),
            ("PALYRA_PATCH_MAX_BYTES", "2_000"),
            ("PALYRA_LOG_LEVEL", "WARNING"),
        ],
    );
    let config = loaded.config();
    assert_eq!(config.run.ask_before, ["palyra.fs.write", "palyra.fs.apply_patch"]);
    assert_eq!(config.context.project_files, ["A, B.md"]);
    assert!(!config.daemon.http_enabled);
    assert_eq!(config.patch.max_bytes, 2_000);
    assert_eq!(config.log.level.as_str(), "warn");
    assert_eq!(code("", &[("PALYRA_RUN_MAX_TURNS", "many")]), "config_wrong_type");
    assert_eq!(code("", &[("PALYRA_DAEMON_HTTP_ENABLED", "maybe")]), "config_wrong_type");
    assert_eq!(code("", &[("PALYRA_RUN_MAX_TURNS", "0")]), "config_invalid_value");
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_no_text_is_refused() {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;
    for variable in ["PALYRA_MODEL_NAME", "OPENAI_MODEL"] {
        let environment = Environment::from_pairs([(variable, OsString::from_vec(vec![0xff]))]);
        let error = config::resolve(None, &environment).unwrap_err();
        assert_eq!(error.first().code(), "config_wrong_type", "{variable}");
    }
}

#[test]
fn a_misspelt_variable_is_pointed_out() {
    let loaded = load("", &[("PALYRA_RUN_MAX_TURN", "3"), ("PALYRA_OTHER", "x"), ("PALYRA_RUN_MAX_TURNS", "4")]);
    assert_eq!(
        loaded.warnings(),
        ["the environment variable `PALYRA_RUN_MAX_TURN` is not recognized; did you mean `PALYRA_RUN_MAX_TURNS`?"]
    );
}

#[test]
fn tls_settings_must_fit_together() {
    for (file, key) in [
        ("[http]\ntls = true\ntls_certificate = '/c.pem'\n", "http.tls_key"),
        ("[http]\ntls = true\ntls_key = '/c.key'\n", "http.tls_key"),
        ("[http]\ntls_certificate = '/c.pem'\ntls_key = '/c.key'\n", "http.tls"),
        ("[http]\nallowed_hosts = ['agents.example:7142']\n", "http.allowed_hosts"),
        ("[http]\nallowed_hosts = ['*.example']\n", "http.allowed_hosts"),
        ("[http]\nallowed_hosts = ['a b']\n", "http.allowed_hosts"),
        ("[http]\nallowed_hosts = ['-a.example']\n", "http.allowed_hosts"),
        ("[http]\npublic_origins = ['agents.example']\n", "http.public_origins"),
        ("[http]\npublic_origins = ['https://agents.example/']\n", "http.public_origins"),
        ("[http]\npublic_origins = ['https://agents.example:x']\n", "http.public_origins"),
        ("[http]\ntrusted_proxies = ['proxy.example']\n", "http.trusted_proxies"),
    ] {
        let layer = config::parse(Path::new(FILE), file).unwrap();
        let error = config::resolve(Some(&layer), &Environment::default()).unwrap_err();
        assert_eq!((error.first().code(), error.first().key()), ("config_inconsistent", Some(key)), "{file}");
    }
    let hosts = "[http]\nallowed_hosts = ['agents.example', '10.0.0.7', '[2001:db8::1]', 'box']\n";
    assert_eq!(load(hosts, &[]).config().http.allowed_hosts.len(), 4);
}

#[test]
fn a_public_bind_needs_tls_and_both_acknowledgements() {
    let file = "[daemon]\nhttp_bind = '0.0.0.0:7142'\n[deployment]\ndangerous_remote_bind_ack = true\n";
    let ack = [("PALYRA_GATEWAY_DANGEROUS_REMOTE_BIND_ACK", "true")];
    let layer = config::parse(Path::new(FILE), file).unwrap();
    let refusal =
        |environment: &Environment| config::resolve(Some(&layer), environment).unwrap_err().first().to_string();
    assert_eq!(code(file, &ack), "public_bind_refused");
    assert!(refusal(&Environment::from_pairs(ack)).ends_with("refused without TLS on this interface"));
    assert!(refusal(&Environment::default()).contains("PALYRA_GATEWAY_DANGEROUS_REMOTE_BIND_ACK=true"));
    assert_eq!(code("", &[("PALYRA_DAEMON_HTTP_BIND", "[::]:7142")]), "public_bind_refused");
    assert_eq!(code("", &[("PALYRA_DEPLOYMENT_DANGEROUS_REMOTE_BIND_ACK", "true")]), "config_env_not_allowed");
    let with_tls = format!("{file}[http]\ntls = true\n");
    assert!(load(&with_tls, &ack).config().http.tls);
    assert!(
        config::resolve(Some(&config::parse(Path::new(FILE), &with_tls).unwrap()), &Environment::default()).is_err()
    );
    // QUIC has TLS and authentication by itself; the two acknowledgements are asked for all the same.
    let quic = ("PALYRA_QUIC_BIND", "0.0.0.0:7444");
    let refused = config::resolve(None, &Environment::from_pairs([quic])).unwrap_err().first().to_string();
    assert_eq!(
        refused,
        "`quic.bind` = `0.0.0.0:7444` can be reached from other machines; refused without \
         `deployment.dangerous_remote_bind_ack = true` in the file, PALYRA_GATEWAY_DANGEROUS_REMOTE_BIND_ACK=true in the environment"
    );
    let acknowledged = "[deployment]\ndangerous_remote_bind_ack = true\n";
    assert_eq!(code(acknowledged, &[quic]), "public_bind_refused");
    assert_eq!(load(acknowledged, &[quic, ack[0]]).config().quic.bind.to_string(), quic.1);
    // A closed door has no address to worry about.
    assert!(!load("", &[quic, ("PALYRA_QUIC_ENABLED", "false")]).config().quic.enabled);
    assert!(!load(file, &[("PALYRA_DAEMON_HTTP_ENABLED", "false")]).config().daemon.http_enabled);
}

#[test]
fn the_typed_schema_refuses_unknown_fields_too() {
    assert!(serde_json::from_str::<Config>(r#"{"run": {"max_turns": 3}}"#).is_ok());
    assert!(serde_json::from_str::<Config>(r#"{"run": {"max_turn": 3}}"#).is_err());
    assert!(serde_json::from_str::<Config>(r#"{"runs": {}}"#).is_err());
}
