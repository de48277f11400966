//! What a skill asks for, and what an operator grants of it.
//!
//! Both are the same shape, [`Capabilities`]: a grant is never more than what was asked for ([`Capabilities::not_within`]), and at the call it is narrowed once
//! more by policy. What a skill asks for in a newer version is not granted by having granted the older one.

use serde::{Deserialize, Serialize};

use super::HttpRule;
use super::fields::Fields;
use crate::SkillError;

/// Most entries of each kind.
const MAX_ENTRIES: usize = 64;
/// Largest storage space that can be asked for.
const MAX_STORAGE_BYTES: u64 = 1 << 30;
/// Most keys of a storage space.
const MAX_STORAGE_KEYS: u64 = 1_000_000;

/// How a secret is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecretUse {
    /// Put into requests by the host; the skill never sees the value.
    Bind,
    /// The skill reads the value itself.
    Reveal,
}

/// A secret that is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretRequest {
    /// The name in the skill.
    pub name: String,
    /// What it is for, for the person who provides it.
    #[serde(default)]
    pub description: String,
    /// How it is used.
    pub usage: SecretUse,
    /// Hosts it may be sent to; none means every granted host.
    #[serde(default)]
    pub hosts: Vec<String>,
}

/// A storage space that is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StorageRequest {
    /// The name in the skill.
    pub name: String,
    /// Bytes of keys and values together.
    pub max_bytes: u64,
    /// Number of keys.
    pub max_keys: u32,
}

/// What a skill may use.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Capabilities {
    /// Where requests may go.
    pub http: Vec<HttpRule>,
    /// Secrets.
    pub secrets: Vec<SecretRequest>,
    /// Storage spaces.
    pub storage: Vec<StorageRequest>,
    /// Channels that may be written to.
    pub channels: Vec<String>,
}

impl Capabilities {
    /// What is in here and not in `other`, each as words; empty if `other` covers everything.
    #[must_use]
    pub fn not_within(&self, other: &Self) -> Vec<String> {
        let mut beyond = Vec::new();
        for rule in &self.http {
            if !other.http.iter().any(|wide| wide.covers(rule)) {
                beyond.push(format!("requests to `{rule}`"));
            }
        }
        for secret in &self.secrets {
            let covered = other.secrets.iter().any(|wide| {
                let hosts = wide.hosts.is_empty()
                    || (!secret.hosts.is_empty() && secret.hosts.iter().all(|host| wide.hosts.contains(host)));
                wide.name == secret.name && secret.usage <= wide.usage && hosts
            });
            if !covered {
                let usage = if secret.usage == SecretUse::Reveal { "the value of " } else { "" };
                beyond.push(format!("{usage}the secret `{}`", secret.name));
            }
        }
        for space in &self.storage {
            let covered = other.storage.iter().any(|wide| {
                wide.name == space.name && space.max_bytes <= wide.max_bytes && space.max_keys <= wide.max_keys
            });
            if !covered {
                beyond.push(format!("the storage space `{}` of that size", space.name));
            }
        }
        for channel in &self.channels {
            if !other.channels.contains(channel) {
                beyond.push(format!("messages to the channel `{channel}`"));
            }
        }
        beyond
    }

    /// What is granted when a person installs a skill and says nothing more: everything it asks for, except rules that name every host and the values of secrets,
    /// which have to be granted by name.
    #[must_use]
    pub fn granted_by_default(&self) -> Self {
        let mut granted = self.clone();
        granted.http.retain(|rule| !rule.host.is_wildcard());
        for secret in &mut granted.secrets {
            secret.usage = SecretUse::Bind;
        }
        granted
    }
}

/// Limits of one call that a skill asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quotas {
    /// Milliseconds.
    pub wall_clock_timeout_ms: u64,
    /// Units of work.
    pub fuel_budget: u64,
    /// Bytes of memory.
    pub max_memory_bytes: u64,
}

impl Default for Quotas {
    fn default() -> Self {
        Self { wall_clock_timeout_ms: 30_000, fuel_budget: 50_000_000, max_memory_bytes: 64 << 20 }
    }
}

/// A short name in a skill: letters, digits, `_`, `-` and dots.
pub(crate) fn is_local_name(name: &str, most: usize) -> bool {
    (1..=most).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-' | b'.'))
}

const NAME_RULE: &str = "use 1 to 64 characters of a-z, 0-9, `_`, `-` and `.`, starting with a letter";

/// Reads `[capabilities]`.
pub(crate) fn read(mut fields: Fields) -> Result<(Capabilities, Quotas), SkillError> {
    let mut http = Vec::new();
    for (index, text) in fields.texts("http_egress_allowlist", MAX_ENTRIES)?.into_iter().enumerate() {
        http.push(text.parse().map_err(|error: SkillError| {
            fields.wrong(&format!("http_egress_allowlist[{index}]"), error.to_string())
        })?);
    }
    let mut secrets: Vec<SecretRequest> = Vec::new();
    for entry in fields.tables("secrets", MAX_ENTRIES)? {
        let secret = read_secret(entry)?;
        if secrets.iter().any(|other| other.name == secret.name) {
            return Err(fields.wrong("secrets", format!("`{}` is listed twice", secret.name)));
        }
        secrets.push(secret);
    }
    let mut storage: Vec<StorageRequest> = Vec::new();
    for entry in fields.tables("storage", MAX_ENTRIES)? {
        let space = read_storage(entry)?;
        if storage.iter().any(|other| other.name == space.name) {
            return Err(fields.wrong("storage", format!("`{}` is listed twice", space.name)));
        }
        storage.push(space);
    }
    let mut channels = Vec::new();
    for (index, channel) in fields.texts("channels", MAX_ENTRIES)?.into_iter().enumerate() {
        let fits = (1..=128).contains(&channel.len())
            && channel.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b':'));
        if !fits || channels.contains(&channel) {
            return Err(
                fields.wrong(&format!("channels[{index}]"), "it is listed twice, or is not the name of a channel")
            );
        }
        channels.push(channel);
    }
    if !fields.list("filesystem", usize::MAX)?.is_empty() {
        return Err(fields.wrong("filesystem", "skills have no access to files; remove this and use storage"));
    }
    let quotas = read_quotas(fields.table("quotas")?)?;
    fields.finish()?;
    Ok((Capabilities { http, secrets, storage, channels }, quotas))
}

fn read_secret(mut fields: Fields) -> Result<SecretRequest, SkillError> {
    let name = fields.need_text("name", 64)?;
    if !is_local_name(&name, 64) {
        return Err(fields.wrong("name", NAME_RULE));
    }
    let description = fields.text("description", 500)?.unwrap_or_default();
    let usage = if fields.flag("reveal")?.unwrap_or_default() { SecretUse::Reveal } else { SecretUse::Bind };
    let mut hosts = Vec::new();
    for (index, host) in fields.texts("hosts", MAX_ENTRIES)?.into_iter().enumerate() {
        // A host is what stands in a rule, without anything around it.
        let rule: Result<HttpRule, _> = format!("https://{host}").parse();
        match rule {
            Ok(rule) if rule.path_prefix == "/" && !host.contains('/') && !rule.host.is_wildcard() => {
                hosts.push(rule.host.to_string());
            }
            _ => return Err(fields.wrong(&format!("hosts[{index}]"), "it is not a host, such as `api.example.com`")),
        }
    }
    fields.finish()?;
    Ok(SecretRequest { name, description, usage, hosts })
}

fn read_storage(mut fields: Fields) -> Result<StorageRequest, SkillError> {
    let name = fields.need_text("name", 64)?;
    if !is_local_name(&name, 64) {
        return Err(fields.wrong("name", NAME_RULE));
    }
    let max_bytes = fields.number("max_bytes", 1, MAX_STORAGE_BYTES)?.unwrap_or(1 << 20);
    let max_keys = fields.number("max_keys", 1, MAX_STORAGE_KEYS)?.unwrap_or(1_000);
    fields.finish()?;
    Ok(StorageRequest { name, max_bytes, max_keys: u32::try_from(max_keys).unwrap_or(u32::MAX) })
}

fn read_quotas(mut fields: Fields) -> Result<Quotas, SkillError> {
    let default = Quotas::default();
    let quotas = Quotas {
        wall_clock_timeout_ms: fields
            .number("wall_clock_timeout_ms", 1, 600_000)?
            .unwrap_or(default.wall_clock_timeout_ms),
        fuel_budget: fields.number("fuel_budget", 1, 1 << 50)?.unwrap_or(default.fuel_budget),
        max_memory_bytes: fields.number("max_memory_bytes", 1 << 16, 4 << 30)?.unwrap_or(default.max_memory_bytes),
    };
    fields.finish()?;
    Ok(quotas)
}
