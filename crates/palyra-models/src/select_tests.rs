use super::*;
use crate::route::HttpProviders;

fn chosen(config: &ModelConfig, variables: &[(&str, &str)], accounts: &str) -> Result<Selection, SelectError> {
    let environment = Environment::from_pairs(variables.iter().copied());
    let accounts = Accounts::parse(&format!("version = 1\n{accounts}"), Path::new("models.toml")).unwrap();
    select(&SelectOptions {
        config,
        accounts: &accounts,
        environment: &environment,
        secrets: Arc::new(environment.clone()),
        factory: Arc::new(HttpProviders),
        memory: None,
    })
}

fn config(provider: ModelProviderChoice, base_url: Option<&str>, key: Option<&str>) -> ModelConfig {
    ModelConfig {
        provider,
        base_url: base_url.map(str::to_owned),
        api_key: key.map(|key| key.parse().unwrap()),
        ..ModelConfig::default()
    }
}

const KEY: &[(&str, &str)] = &[("OPENAI_API_KEY", "sk-hunter2\n")];
const OPENAI: Option<&str> = Some("env:OPENAI_API_KEY");

#[test]
fn a_network_provider_needs_somebody_to_name_a_server_or_a_key() {
    use ModelProviderChoice::{Auto, Offline, Openai, OpenaiCompatible};
    let blank: &[(&str, &str)] = &[("OPENAI_API_KEY", " ")];
    let table = [
        (Auto, None, None, KEY, "offline", "nothing is sent; OPENAI_API_KEY is set"),
        (Auto, None, None, &[], "offline", "nothing is sent"),
        (Auto, Some(" "), OPENAI, blank, "offline", "nothing is sent"),
        (Auto, Some("http://127.0.0.1:1"), None, &[], "openai_compatible", "sent to `http://127.0.0.1:1/v1`"),
        (Auto, None, OPENAI, KEY, "openai_compatible", "sent to `https://api.openai.com/v1`"),
        (Auto, Some("http://example.com"), None, &[], "openai_compatible", "`http://example.com/v1`, unencrypted"),
        (Offline, Some("http://h"), OPENAI, KEY, "offline", "nothing is sent"),
        (OpenaiCompatible, Some("https://h/v1/"), None, &[], "openai_compatible", "sent to `https://h/v1`"),
        (Openai, Some("https://h/v1/"), None, &[], "openai_compatible", "sent to `https://h/v1`"),
    ];
    for (choice, base_url, key, variables, name, reason) in table {
        let selection = chosen(&config(choice, base_url, key), variables, "").unwrap();
        assert_eq!(selection.provider.name(), name, "{selection:?}");
        assert!(selection.reason.contains(reason), "{selection:?}");
        assert!(!format!("{selection:?}").contains("hunter2"));
    }
}

#[test]
fn a_default_route_goes_before_variables_and_a_named_provider_before_both() {
    let file = "[providers.home]\nkind = 'openai_compatible'\nbase_url = 'http://127.0.0.1:8080/v1'\n\
                [routes]\ndefault = ['home/qwen3', 'home/tiny']\n";
    let auto = config(ModelProviderChoice::Auto, Some("http://127.0.0.1:1"), OPENAI);
    let selection = chosen(&auto, KEY, file).unwrap();
    assert_eq!(selection.provider.describe().model, "home/qwen3");
    assert_eq!(
        selection.reason,
        "models.toml has a default route: the conversation is sent to `home/qwen3` at `http://127.0.0.1:8080/v1`, \
         failing that to `home/tiny` at `http://127.0.0.1:8080/v1`"
    );
    let named = chosen(&config(ModelProviderChoice::OpenaiCompatible, auto.base_url.as_deref(), OPENAI), KEY, file);
    assert!(named.unwrap().reason.contains("http://127.0.0.1:1/v1"));
    let without = chosen(&auto, KEY, "[providers.home]\nkind = 'ollama'").unwrap();
    assert!(without.reason.contains("http://127.0.0.1:1/v1"), "accounts without a route choose nothing");
}

#[test]
fn keys_of_others_are_offered_and_not_used() {
    let selection = chosen(&ModelConfig::default(), &[("ANTHROPIC_API_KEY", "hunter2")], "").unwrap();
    assert_eq!(selection.provider.name(), "offline");
    let tail = "nothing is sent; ANTHROPIC_API_KEY is set: to use it, run `palyra models set-default anthropic/claude-sonnet-4-5`";
    assert!(selection.reason.ends_with(tail), "{}", selection.reason);
}

#[test]
fn what_cannot_work_is_refused_at_once() {
    use ModelProviderChoice::{Anthropic, Auto, Scripted};
    let code =
        |config: ModelConfig, variables: &[(&str, &str)]| chosen(&config, variables, "").unwrap_err().to_stable().code;
    assert_eq!(code(config(Auto, Some("nonsense"), None), &[]), "model_request_rejected");
    assert_eq!(code(config(Scripted, None, None), &[]), "model_request_rejected");
    assert_eq!(code(config(Auto, None, OPENAI), &[("OPENAI_API_KEY", "sk-\u{1}x")]), "model_auth_failed");
    assert_eq!(code(config(Auto, None, OPENAI), &[]), "secret_missing");
    let plain = chosen(&config(Auto, Some("http://example.com"), OPENAI), KEY, "").unwrap_err();
    assert!(plain.to_string().contains("set `allow_plaintext_key = true` for this provider in models.toml"), "{plain}");
    let error = chosen(&config(Anthropic, None, None), KEY, "").unwrap_err();
    assert!(error.to_string().contains("set ANTHROPIC_API_KEY or `model.api_key`"), "{error}");
}

#[tokio::test]
async fn the_offline_planner_can_be_asked_for_by_name_beside_any_provider() {
    use ModelProviderChoice::{Auto, Offline, OpenaiCompatible};
    let server = Some("http://127.0.0.1:1");
    let routes = "[providers.home]\nkind = 'ollama'\n[routes]\ndefault = ['home/qwen3']\n";
    for (choice, base_url, accounts) in
        [(Offline, None, ""), (OpenaiCompatible, server, ""), (Auto, server, ""), (Auto, None, routes)]
    {
        let provider = chosen(&config(choice, base_url, None), &[], accounts).unwrap().provider;
        let info = provider.resolve("main", Some("offline/offline-planner")).await.unwrap();
        assert_eq!((info.name.as_str(), info.model.as_str()), ("offline", "offline-planner"), "{choice}");
        assert!(!info.is_language_model);
        assert_eq!(provider.describe_for("main", Some(&info.model)), info);
    }
}

#[test]
fn a_key_goes_over_plain_http_to_another_machine_only_where_that_is_acknowledged() {
    use crate::route::ProviderFactory as _;
    use crate::wire::PlaintextKey;
    let options = |base_url: &str, plaintext_key| HttpProviderOptions {
        base_url: Some(base_url.to_owned()),
        api_key: Some(palyra_common::SecretString::from("sk-hunter2".to_owned())),
        plaintext_key,
        ..HttpProviderOptions::new("x")
    };
    for kind in ProviderKind::ALL {
        let make = |base_url, plaintext_key| HttpProviders.make(*kind, options(base_url, plaintext_key));
        let refused = make("http://example.com", PlaintextKey::Refused).err().unwrap();
        assert!(refused.message.contains("plain HTTP") && !refused.message.contains("hunter2"), "{kind}: {refused}");
        assert!(make("http://example.com", PlaintextKey::Allowed).is_ok(), "{kind}");
        for safe in ["https://example.com", "http://127.0.0.1:1", "http://localhost:1"] {
            assert!(make(safe, PlaintextKey::Refused).is_ok(), "{kind} {safe}");
        }
    }
    let file =
        "version = 1\n[providers.x]\nkind = 'openai_compatible'\nbase_url = 'http://h'\nallow_plaintext_key = true\n";
    let accounts = Accounts::parse(file, Path::new("models.toml")).unwrap();
    assert_eq!(accounts.providers["x"].plaintext_key, PlaintextKey::Allowed);
    assert!(Accounts::parse(&file.replace("true", "'yes'"), Path::new("models.toml")).is_err());
}
