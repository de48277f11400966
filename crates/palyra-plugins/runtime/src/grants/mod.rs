//! What one call was granted.
//!
//! A set of grants is data. It is narrowed before the guest-facing code sees it ([`CapabilityGrantSet::narrowed`]), so that code never asks who allowed what:
//! a handle stands for a grant, or there is no handle. The way out, the vault and the store check again.

mod rule;
mod target;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub(crate) use rule::{HostPattern, Rule};
pub(crate) use target::Target;

/// Everything a call may use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CapabilityGrantSet {
    /// Places that may be asked over HTTP.
    pub http: Vec<HttpGrant>,
    /// Secrets that may be used.
    pub secrets: Vec<SecretGrant>,
    /// Storage spaces.
    pub storage: Vec<StorageGrant>,
    /// Channels that may be written to.
    pub channels: Vec<ChannelGrant>,
}

/// A place that may be asked over HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpGrant {
    /// `[METHODS] scheme://host[:port][/path]`.
    pub rule: String,
}

/// A secret that may be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretGrant {
    /// The name that the manifest gives it.
    pub name: String,
    /// How it may be used.
    #[serde(default, rename = "use")]
    pub usage: SecretUse,
    /// Hosts that it may be sent to (`api.example`, `*.example.com`); empty means wherever a request is allowed.
    #[serde(default)]
    pub hosts: Vec<String>,
}

/// How a secret may be used. Ordered from less to more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecretUse {
    /// The host puts it into requests; the guest never sees it.
    #[default]
    Bind,
    /// The guest may also read its value.
    Reveal,
}

/// A storage space.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageGrant {
    /// The name that the manifest gives it.
    pub name: String,
    /// Keys and values together.
    pub max_bytes: u64,
    /// Number of keys.
    pub max_keys: u32,
}

/// A channel that may be written to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelGrant {
    /// Its name.
    pub name: String,
}

impl CapabilityGrantSet {
    /// What all three allow: what is requested for this call, what the manifest declares, what the operator permits. What cannot be read is not granted.
    #[must_use]
    pub fn narrowed(requested: &Self, manifest: &Self, operator: &Self) -> Self {
        requested.meet(manifest).meet(operator)
    }

    /// What both allow.
    fn meet(&self, other: &Self) -> Self {
        Self {
            http: meet_http(&self.http, &other.http),
            secrets: meet_named(&self.secrets, &other.secrets, |grant| &grant.name, SecretGrant::meet),
            storage: meet_named(
                &self.storage,
                &other.storage,
                |grant| &grant.name,
                |one, two| {
                    Some(StorageGrant {
                        name: one.name.clone(),
                        max_bytes: one.max_bytes.min(two.max_bytes),
                        max_keys: one.max_keys.min(two.max_keys),
                    })
                },
            ),
            channels: meet_named(&self.channels, &other.channels, |grant| &grant.name, |one, _| Some(one.clone())),
        }
    }
}

impl SecretGrant {
    fn meet(&self, other: &Self) -> Option<Self> {
        let hosts = match (self.hosts.is_empty(), other.hosts.is_empty()) {
            (true, _) => other.hosts.clone(),
            (_, true) => self.hosts.clone(),
            _ => {
                let read = |hosts: &[String]| -> Vec<HostPattern> {
                    hosts.iter().filter_map(|host| HostPattern::parse(host).ok()).collect()
                };
                let (one, two) = (read(&self.hosts), read(&other.hosts));
                let mut both: Vec<String> = one
                    .iter()
                    .flat_map(|a| two.iter().filter_map(|b| a.meet(b)))
                    .map(|host| host.to_string())
                    .collect();
                both.sort();
                both.dedup();
                // An empty list would mean everywhere.
                if both.is_empty() {
                    return None;
                }
                both
            }
        };
        Some(Self { name: self.name.clone(), usage: self.usage.min(other.usage), hosts })
    }

    /// Whether the secret may be sent to this host.
    pub(crate) fn may_go_to(&self, host: &str) -> bool {
        self.hosts.is_empty()
            || self.hosts.iter().any(|pattern| HostPattern::parse(pattern).is_ok_and(|pattern| pattern.covers(host)))
    }
}

fn meet_http(one: &[HttpGrant], two: &[HttpGrant]) -> Vec<HttpGrant> {
    let read = |grants: &[HttpGrant]| -> Vec<Rule> {
        grants.iter().filter_map(|grant| Rule::parse(&grant.rule).ok()).collect()
    };
    let (one, two) = (read(one), read(two));
    let met: Vec<Rule> = one.iter().flat_map(|a| two.iter().filter_map(|b| a.meet(b))).collect();
    let mut kept: Vec<Rule> = Vec::new();
    for rule in &met {
        // Two rules that meet in one of them: the other says it already.
        let said =
            met.iter().any(|other| other != rule && rule.meet(other).as_ref() == Some(rule)) || kept.contains(rule);
        if !said {
            kept.push(rule.clone());
        }
    }
    kept.iter().map(|rule| HttpGrant { rule: rule.to_string() }).collect()
}

/// Grants of the same name, in the order of the first list; a name that stands twice in one list counts once, as its first line says there and its last here.
fn meet_named<G>(one: &[G], two: &[G], name: impl Fn(&G) -> &String, meet: impl Fn(&G, &G) -> Option<G>) -> Vec<G> {
    let second: BTreeMap<&String, &G> = two.iter().map(|grant| (name(grant), grant)).collect();
    let mut seen = Vec::new();
    one.iter()
        .filter(|grant| {
            let fresh = !seen.contains(&name(grant));
            seen.push(name(grant));
            fresh
        })
        .filter_map(|grant| meet(grant, second.get(name(grant))?))
        .collect()
}

#[cfg(test)]
#[path = "grants_tests.rs"]
mod tests;
