//! The flat registry of configuration keys.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Serialize;

use super::schema::Config;
use super::value::{ConfigValue, ValueType};
use crate::env_vars;

pub use super::schema::KEYS;

/// Everything there is to know about one key, except its present value.
#[derive(Debug, Clone, Copy)]
pub struct KeySpec {
    /// The key, `section.name`.
    pub name: &'static str,
    /// What values it takes.
    pub value_type: ValueType,
    /// Which environment variables set it.
    pub env: EnvNames,
    pub(super) raw_doc: &'static str,
}

/// Which environment variables set a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnvNames {
    /// The one derived from the key.
    Standard,
    /// The one derived from the key, then this one, whose value is taken as it is.
    Also(&'static str),
    /// The one derived from the key, which holds a reference, then this one, which holds the secret itself.
    AlsoSecret(&'static str),
    /// None: the key must be written down in the file.
    FileOnly,
}

/// Whether a change needs a restart of the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Restart {
    /// The daemon reads it once, at its start.
    Needed,
    /// The next command or run already sees it.
    NotNeeded,
}

impl KeySpec {
    /// Whether a change needs a restart of the daemon. Of its configuration it follows the spending limits alone.
    #[must_use]
    pub fn restart(&self) -> Restart {
        match self.name.split_once('.') {
            Some(("budget", field)) if field != "prices" => Restart::NotNeeded,
            _ => Restart::Needed,
        }
    }

    /// What it does, in plain sentences.
    #[must_use]
    pub fn doc(&self) -> &'static str {
        self.raw_doc.trim()
    }

    /// Its value when no layer gives one.
    #[must_use]
    pub fn default(&self) -> ConfigValue {
        DEFAULTS.get(self.name).cloned().unwrap_or(ConfigValue::Unset)
    }

    /// The variable derived from the key, whether or not it may be used.
    #[must_use]
    pub fn standard_env_var(&self) -> String {
        env_vars::standard_name(self.name)
    }

    /// The variables that set it, strongest first.
    #[must_use]
    pub fn env_vars(&self) -> Vec<String> {
        match self.env {
            EnvNames::Standard => vec![self.standard_env_var()],
            EnvNames::Also(other) | EnvNames::AlsoSecret(other) => vec![self.standard_env_var(), other.to_owned()],
            EnvNames::FileOnly => Vec::new(),
        }
    }

    /// The part before the dot.
    #[must_use]
    pub fn section(&self) -> &'static str {
        self.name.split_once('.').map_or(self.name, |(section, _)| section)
    }
}

/// The defaults of the typed schema, looked up by key.
static DEFAULTS: LazyLock<BTreeMap<&'static str, ConfigValue>> = LazyLock::new(|| {
    let defaults = serde_json::to_value(Config::default()).unwrap_or_default();
    KEYS.iter()
        .filter_map(|key| {
            let (section, name) = key.name.split_once('.')?;
            Some((key.name, ConfigValue::from_json(defaults.get(section)?.get(name)?)))
        })
        .collect()
});

/// The key of that name.
#[must_use]
pub fn find_key(name: &str) -> Option<&'static KeySpec> {
    KEYS.iter().find(|key| key.name == name)
}

/// The key that was most likely meant, or the section where none of its keys was named.
pub(super) fn suggest(name: &str) -> Option<String> {
    let folded = name.to_ascii_lowercase().replace('-', "_");
    let last = folded.rsplit('.').next().unwrap_or_default();
    if !folded.contains('.') {
        let sections = || KEYS.iter().filter_map(|key| key.name.split_once('.')).map(|(section, _)| section);
        if sections().any(|section| section == folded) {
            return Some(format!("{folded}.*"));
        }
        if let Some(section) = sections()
            .filter(|section| is_mistyped(section, &folded))
            .min_by_key(|section| strsim::damerau_levenshtein(section, &folded))
        {
            return Some(section.to_owned());
        }
    }
    KEYS.iter()
        .filter_map(|key| {
            let (_, own) = key.name.split_once('.')?;
            let whole = strsim::jaro_winkler(key.name, &folded);
            // A right name in the wrong section is the commonest mistake after a typing error.
            let likeness = if own == last { whole.max(0.9) } else { whole };
            let is_meant = own == last || is_mistyped(own, last) || is_beginning(own, last);
            (is_meant && likeness >= ALIKE).then_some((likeness, key.name))
        })
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, name)| name.to_owned())
}

/// Below this two names have too little in common for a guess to help.
const ALIKE: f64 = 0.8;

/// Whether one name can be the other with a slip of the fingers: about one in three letters, and two letters changing places are one slip.
fn is_mistyped(name: &str, typed: &str) -> bool {
    strsim::damerau_levenshtein(name, typed) <= (name.len() / 3).max(1)
}

/// Whether a name was not written to its end.
fn is_beginning(name: &str, typed: &str) -> bool {
    typed.len() >= 3 && name.starts_with(typed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_key_that_is_likely_meant_is_suggested() {
        for (typed, meant) in [
            ("run.maxturns", Some("run.max_turns")),
            ("run.max_trusn", Some("run.max_turns")),
            ("run.ask", Some("run.ask_before")),
            ("modl.name", Some("model.name")),
            ("max_turns", Some("run.max_turns")),
            ("modl", Some("model")),
            ("run", Some("run.*")),
            ("http.prt", None),
            ("foo", None),
            ("x", None),
        ] {
            assert_eq!(suggest(typed).as_deref(), meant, "{typed}");
        }
    }
}
