//! What a skill's manifest asks for and its operator sets, as the runtime and the host understand it.

use std::collections::BTreeMap;

use palyra_common::SecretRef;
use palyra_plugins_runtime::{
    CapabilityGrantSet, ChannelGrant, HttpGrant, SecretGrant, SecretUse as Use, StorageGrant,
};
use palyra_skills::{Capabilities, SecretUse, SkillManifest};

use super::host::SkillSettings;

/// Before the name of a secret in the settings of a skill; no setting of a manifest has a `:`.
pub const SECRET_SETTING: &str = "secret:";

/// Capabilities of a manifest as grants.
#[must_use]
pub fn grant_set(capabilities: &Capabilities) -> CapabilityGrantSet {
    CapabilityGrantSet {
        http: capabilities.http.iter().map(|rule| HttpGrant { rule: rule.to_string() }).collect(),
        secrets: capabilities
            .secrets
            .iter()
            .map(|secret| SecretGrant {
                name: secret.name.clone(),
                usage: match secret.usage {
                    SecretUse::Bind => Use::Bind,
                    SecretUse::Reveal => Use::Reveal,
                },
                hosts: secret.hosts.clone(),
            })
            .collect(),
        storage: capabilities
            .storage
            .iter()
            .map(|space| StorageGrant {
                name: space.name.clone(),
                max_bytes: space.max_bytes,
                max_keys: space.max_keys,
            })
            .collect(),
        channels: capabilities.channels.iter().map(|name| ChannelGrant { name: name.clone() }).collect(),
    }
}

/// What the operator set, with the manifest's defaults.
#[must_use]
pub fn skill_settings(manifest: &SkillManifest, set: &BTreeMap<String, String>) -> SkillSettings {
    let mut config: BTreeMap<String, String> =
        manifest.config.iter().filter_map(|setting| Some((setting.key.clone(), setting.default.clone()?))).collect();
    let mut secrets = BTreeMap::new();
    for (key, value) in set {
        match key.strip_prefix(SECRET_SETTING) {
            Some(name) => {
                // It was checked when it was set.
                if let Ok(reference) = value.parse::<SecretRef>() {
                    secrets.insert(name.to_owned(), reference);
                }
            }
            None => {
                config.insert(key.clone(), value.clone());
            }
        }
    }
    SkillSettings { config, secrets }
}
