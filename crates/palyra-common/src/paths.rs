//! Where configuration and state are, decided from an injected environment; only [`config_to_edit`] looks at the disk.

use std::path::{Path, PathBuf};

use crate::config::{ConfigError, ConfigProblem};
use crate::{Environment, env_vars};

/// Name of the configuration file in every place it is looked for.
pub const CONFIG_FILE_NAME: &str = "palyra.toml";

/// Name of the file with the accounts and routes of models.
pub const MODELS_FILE_NAME: &str = "models.toml";
/// The file with the operator's own prices, beside the configuration file.
pub const PRICES_FILE_NAME: &str = "prices.toml";

/// Where the configuration file is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigSearch {
    /// The one that `PALYRA_CONFIG` names, which must exist.
    Named(PathBuf),
    /// The first of these that exists; there may be none.
    Places(Vec<PathBuf>),
}

/// Where the configuration file is looked for in this environment.
#[must_use]
pub fn config_search(environment: &Environment) -> ConfigSearch {
    if let Some(named) = environment.get(env_vars::PALYRA_CONFIG) {
        return ConfigSearch::Named(environment.absolute(Path::new(named)));
    }
    let mut places: Vec<PathBuf> = Vec::new();
    for base in [xdg(environment, env_vars::XDG_CONFIG_HOME), in_home(environment, ".config")].into_iter().flatten() {
        let place = base.join("palyra").join(CONFIG_FILE_NAME);
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places.push(Path::new("/etc/palyra").join(CONFIG_FILE_NAME));
    ConfigSearch::Places(places)
}

/// The file that an edit changes: the one in use, otherwise the user's own.
pub fn config_to_edit(environment: &Environment) -> Result<PathBuf, ConfigError> {
    match config_search(environment) {
        ConfigSearch::Named(path) => Ok(path),
        ConfigSearch::Places(places) => {
            let own = places.first().filter(|_| places.len() > 1).cloned();
            places.into_iter().find(|place| place.exists()).or(own).ok_or_else(|| {
                ConfigProblem::NoPlace {
                    what: "a configuration file",
                    variables: "PALYRA_CONFIG, XDG_CONFIG_HOME or HOME",
                }
                .into()
            })
        }
    }
}

/// The file with the accounts and routes of models: beside the configuration file in use, otherwise in the user's own place.
pub fn models_file(environment: &Environment) -> Result<PathBuf, ConfigError> {
    config_to_edit(environment).map(|config| config.with_file_name(MODELS_FILE_NAME))
}

/// The operator's own prices, beside a configuration file.
#[must_use]
pub fn prices_file(config: &Path) -> PathBuf {
    config.with_file_name(PRICES_FILE_NAME)
}

/// The directory that holds all state.
pub fn state_root(environment: &Environment) -> Result<PathBuf, ConfigError> {
    if let Some(named) = environment.get(env_vars::PALYRA_STATE_ROOT) {
        return Ok(environment.absolute(Path::new(named)));
    }
    xdg(environment, env_vars::XDG_STATE_HOME)
        .or_else(|| in_home(environment, ".local/state"))
        .map(|base| base.join("palyra"))
        .ok_or_else(|| {
            ConfigProblem::NoPlace { what: "state", variables: "PALYRA_STATE_ROOT, XDG_STATE_HOME or HOME" }.into()
        })
}

/// The XDG specification tells us to ignore relative paths.
fn xdg(environment: &Environment, variable: &str) -> Option<PathBuf> {
    environment.get(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}

fn in_home(environment: &Environment, below: &str) -> Option<PathBuf> {
    environment.get(env_vars::HOME).map(PathBuf::from).filter(|path| path.is_absolute()).map(|home| home.join(below))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(pairs: &[(&str, &str)]) -> Vec<String> {
        match config_search(&Environment::from_pairs(pairs.iter().copied()).in_directory("/work")) {
            ConfigSearch::Named(path) => vec![format!("!{}", path.display())],
            ConfigSearch::Places(places) => places.iter().map(|path| path.display().to_string()).collect(),
        }
    }

    #[test]
    fn configuration_is_searched_in_the_documented_order() {
        assert_eq!(places(&[("PALYRA_CONFIG", "/x/a.toml"), ("HOME", "/h")]), ["!/x/a.toml"]);
        assert_eq!(places(&[("PALYRA_CONFIG", "a.toml")]), ["!/work/a.toml"]);
        assert_eq!(
            places(&[("XDG_CONFIG_HOME", "/xdg"), ("HOME", "/h")]),
            ["/xdg/palyra/palyra.toml", "/h/.config/palyra/palyra.toml", "/etc/palyra/palyra.toml"]
        );
        assert_eq!(places(&[("XDG_CONFIG_HOME", "/h/.config"), ("HOME", "/h")]).len(), 2);
        assert_eq!(places(&[("XDG_CONFIG_HOME", "relative")]), ["/etc/palyra/palyra.toml"]);
        assert_eq!(places(&[("PALYRA_CONFIG", ""), ("HOME", "/h")]).len(), 2);
    }

    #[test]
    fn state_goes_to_the_documented_place() {
        let root = |pairs: &[(&str, &str)]| {
            state_root(&Environment::from_pairs(pairs.iter().copied()).in_directory("/work"))
                .map(|path| path.display().to_string())
        };
        assert_eq!(root(&[("PALYRA_STATE_ROOT", "/s"), ("HOME", "/h")]).unwrap(), "/s");
        assert_eq!(root(&[("PALYRA_STATE_ROOT", "s")]).unwrap(), "/work/s");
        assert_eq!(root(&[("XDG_STATE_HOME", "/x"), ("HOME", "/h")]).unwrap(), "/x/palyra");
        assert_eq!(root(&[("HOME", "/h")]).unwrap(), "/h/.local/state/palyra");
        assert_eq!(root(&[]).unwrap_err().first().code(), "state_root_unknown");
    }

    #[test]
    fn an_edit_goes_to_the_users_own_file() {
        let named = models_file(&Environment::from_pairs([("PALYRA_CONFIG", "/c/other.toml")]));
        assert_eq!(named.unwrap(), Path::new("/c/models.toml"));
        let own = config_to_edit(&Environment::from_pairs([("HOME", "/nonexistent-home")]));
        // A machine-wide file, where there is one, is the file in use.
        if !Path::new("/etc/palyra/palyra.toml").exists() {
            assert_eq!(own.unwrap(), Path::new("/nonexistent-home/.config/palyra/palyra.toml"));
            let nowhere = models_file(&Environment::default()).unwrap_err();
            assert_eq!(nowhere.first().code(), "state_root_unknown");
        }
    }
}
