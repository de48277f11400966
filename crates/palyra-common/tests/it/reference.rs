//! The registry itself and the page generated from it.

use std::collections::BTreeSet;

use palyra_common::config::{Config, KEYS, generate_reference};
use palyra_common::{BuildInfo, env_vars};

#[test]
fn every_key_is_documented_and_its_names_are_its_own() {
    let mut names = BTreeSet::new();
    let mut variables: BTreeSet<String> = env_vars::VARIABLES.iter().map(|variable| variable.name.to_owned()).collect();
    let schema = serde_json::to_value(Config::default()).unwrap();
    for key in KEYS {
        assert!(names.insert(key.name), "{} is declared twice", key.name);
        assert!(variables.insert(key.standard_env_var()), "{} shares its variable", key.name);
        assert!(key.doc().ends_with('.') && !key.doc().contains('\n'), "{}: {}", key.name, key.doc());
        let (section, name) = key.name.split_once('.').unwrap();
        assert!(schema[section].get(name).is_some(), "{} is not in the typed schema", key.name);
    }
    let fields: usize = schema.as_object().unwrap().values().map(|section| section.as_object().unwrap().len()).sum();
    assert_eq!(fields, KEYS.len());
}

#[test]
fn the_page_names_every_key_variable_and_profile() {
    let page = generate_reference();
    for key in KEYS {
        assert!(page.contains(&format!("| `{}` |", key.name)), "{}", key.name);
        for variable in key.env_vars() {
            assert!(page.contains(&format!("`{variable}`")), "{variable}");
        }
    }
    for variable in env_vars::VARIABLES {
        assert!(page.contains(&format!("| `{}` |", variable.name)), "{}", variable.name);
    }
    for line in page.lines().filter(|line| line.starts_with('|')) {
        let columns = line.replace("\\|", "").matches('|').count();
        assert!([3, 5, 6].contains(&columns), "{line}");
    }
    assert!(page.contains("| `run.max_turns` | integer from 1 to 100000 | `64` | `PALYRA_RUN_MAX_TURNS` |"));
    assert!(page.contains("| `single-vm` | `remote`, `remote_vps`, `vps` |"));
}

#[test]
fn a_build_knows_what_it_is() {
    let build = BuildInfo::current();
    assert_eq!(build.version, env!("CARGO_PKG_VERSION"));
    assert!(build.rustc.starts_with("rustc ") && build.target.contains('-'), "{build:?}");
    assert!(build.line().starts_with(&format!("{} (", build.version)));
    assert!(build.commit.is_none_or(|commit| commit.len() >= 7 && commit.chars().all(|c| c.is_ascii_hexdigit())));
}
