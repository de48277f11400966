//! Properties: no text makes the parser panic, and the precedence of layers holds for every key.

use std::path::Path;

use palyra_common::config::{self, ConfigSource, ConfigValue, KEYS, ValueType};
use palyra_common::{Environment, ToStableError as _};
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::{prop_assert, prop_assert_eq};

/// Text that is TOML often enough to get past the first character.
fn toml_like() -> impl Strategy<Value = String> {
    let key = prop_oneof![
        (0..KEYS.len()).prop_map(|index| KEYS[index].name.to_owned()),
        Just("version".to_owned()),
        "[a-z_.\"']{0,12}",
    ];
    let value = prop_oneof![
        any::<i64>().prop_map(|value| value.to_string()),
        any::<bool>().prop_map(|value| value.to_string()),
        "\"[ -~]{0,12}\"",
        "\\[(\"[a-z]{0,3}\",? ?){0,3}\\]",
        "\\{[a-z]{0,2} ?= ?[0-9]{0,2}\\}",
        "\\PC{0,8}",
    ];
    let line = prop_oneof![
        (key, value).prop_map(|(key, value)| format!("{key} = {value}")),
        "\\[\\[?[a-z.]{0,10}\\]?\\]",
        "#?\\PC{0,20}",
    ];
    proptest::collection::vec(line, 0..12).prop_map(|lines| lines.join("\n"))
}

fn never_panics(text: &str) {
    match config::parse(Path::new("/c/palyra.toml"), text) {
        Ok(layer) => {
            let _ = config::resolve(Some(&layer), &Environment::default());
        }
        Err(error) => {
            let stable = error.to_stable();
            assert!(stable.code.starts_with("config_"), "{}", stable.code);
            assert!(!stable.message.contains('\n'), "{}", stable.message);
        }
    }
}

/// A valid value of a key, different for different seeds, as text for a variable and for the file.
fn valid(name: &str, value_type: &ValueType, seed: u32) -> (String, String) {
    let quoted = |text: String| (text.clone(), format!("'{text}'"));
    // Lists whose items have a form of their own.
    let item = match name {
        "http.public_origins" => Some(format!("https://h{seed}.example")),
        "http.trusted_proxies" => Some(std::net::Ipv4Addr::from(seed).to_string()),
        _ => None,
    };
    if let Some(item) = item {
        return (item.clone(), format!("['{item}']"));
    }
    match value_type {
        ValueType::Bool => (seed.is_multiple_of(2).to_string(), seed.is_multiple_of(2).to_string()),
        ValueType::Integer { min, max } => {
            let value = min + i64::from(seed) % (max - min).saturating_add(1);
            (value.to_string(), value.to_string())
        }
        ValueType::Text | ValueType::Path => quoted(format!("/t{seed}")),
        ValueType::List => (format!("a{seed},b"), format!("['a{seed}', 'b']")),
        ValueType::Choices { names, .. } => {
            let names = names();
            let name = names[seed as usize % names.len()];
            (name.to_owned(), format!("['{name}']"))
        }
        ValueType::Choice { names, .. } => {
            let names = names();
            quoted(names[seed as usize % names.len()].to_owned())
        }
        ValueType::Address => quoted(format!("127.0.0.1:{}", seed % 65_536)),
        ValueType::HttpUrl => quoted(format!("http://h{seed}")),
        ValueType::Secret => quoted(format!("env:V{seed}")),
        ValueType::Amount => quoted(format!("${seed}.25")),
    }
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in any::<String>()) {
        never_panics(&text);
    }

    #[test]
    fn text_like_toml_never_panics(text in toml_like()) {
        never_panics(&text);
    }

    #[test]
    fn the_environment_wins_over_the_file_for_every_key(
        index in 0..KEYS.len(), in_file in any::<u32>(), in_env in any::<Option<u32>>(),
    ) {
        let key = &KEYS[index];
        // A script is there so that the choice of provider never fails for the lack of one, and token limits fit each other.
        let mut fits =
            vec![("model.script", "'/s'"), ("model.context_tokens", "100_000_000"), ("model.max_output_tokens", "16")];
        // A certificate goes with its key, and both with TLS.
        if key.name.starts_with("http.tls_") {
            fits.extend([("http.tls", "true"), ("http.tls_certificate", "'/c'"), ("http.tls_key", "'/k'")]);
        }
        let mut fixed = String::new();
        for (name, literal) in fits {
            if name != key.name {
                fixed += &format!("{name} = {literal}\n");
            }
        }
        let file_with = |literal: &str| {
            config::parse(Path::new("/c/palyra.toml"), &format!("{fixed}{} = {literal}\n", key.name)).unwrap()
        };
        let explain = |layer: &config::FileLayer, environment: &Environment| {
            config::resolve(Some(layer), environment).unwrap().explain(key.name).unwrap()
        };
        let layer = file_with(&valid(key.name, &key.value_type, in_file).1);
        match (key.env_vars().into_iter().next(), in_env) {
            (Some(variable), Some(seed)) => {
                let (text, literal) = valid(key.name, &key.value_type, seed);
                let explained = explain(&layer, &Environment::from_pairs([(variable.as_str(), text)]));
                prop_assert_eq!(explained.source, ConfigSource::Env { variable });
                prop_assert_eq!(explained.value, explain(&file_with(&literal), &Environment::default()).value);
            }
            _ => {
                let explained = explain(&layer, &Environment::default());
                prop_assert!(matches!(explained.source, ConfigSource::File { .. }), "{:?}", explained.source);
                prop_assert!(explained.value != ConfigValue::Unset);
            }
        }
    }
}
