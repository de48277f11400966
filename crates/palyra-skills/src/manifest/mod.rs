//! The manifest of a skill, `skill.toml`: what the skill is, what it offers and what it asks for.
//!
//! Reading is strict: an unknown key, a wrong type or a value out of bounds is an error that names its field. A manifest that was read is consistent in itself;
//! whether it fits the files beside it is the archive's concern, and whether it is to be believed the audit's.

mod capabilities;
mod entrypoints;
mod fields;
mod http_rule;
mod schema;
mod schema_cost;

use palyra_common::Digest;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::archive::path;
use crate::{PublisherName, SkillError, SkillId, SkillVersion};
use fields::Fields;

pub use capabilities::{Capabilities, Quotas, SecretRequest, SecretUse, StorageRequest};
pub use entrypoints::{HookEntrypoint, ToolEntrypoint, ToolLabels, ToolRisk};
pub use http_rule::{HostPattern, HttpRule, HttpScheme};
pub use schema::SchemaValidator;

/// The form of the manifest that is read here.
pub const MANIFEST_VERSION: u64 = 1;
/// Largest manifest.
const MAX_MANIFEST: usize = 256 << 10;
/// Most settings of a skill.
const MAX_CONFIG: usize = 64;

/// A setting that an operator may give a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigEntry {
    /// What the skill asks for it by.
    pub key: String,
    /// What it does, for people.
    pub description: String,
    /// What holds if nothing is set.
    pub default: Option<String>,
}

/// What a skill needs around it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Compat {
    /// The oldest Palyra it works with.
    pub min_palyra_version: Option<semver::Version>,
    /// The version of the interfaces it was built against.
    pub abi: Option<semver::Version>,
}

/// A file as the manifest knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntegrityFile {
    /// Its path in the archive.
    pub path: String,
    /// Its digest.
    pub sha256: Digest,
}

/// A manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SkillManifest {
    /// The id, first part of its tools' names.
    pub skill_id: SkillId,
    /// A few words for people.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Its version.
    pub version: SkillVersion,
    /// Who signs it.
    pub publisher: PublisherName,
    /// Under which licence it comes.
    pub license: Option<String>,
    /// Where to read more.
    pub homepage: Option<String>,
    /// Tools.
    pub tools: Vec<ToolEntrypoint>,
    /// Hooks.
    pub hooks: Vec<HookEntrypoint>,
    /// What it asks for.
    pub capabilities: Capabilities,
    /// Limits of one call.
    pub quotas: Quotas,
    /// Settings.
    pub config: Vec<ConfigEntry>,
    /// What it needs around it.
    pub compat: Compat,
    /// The files that belong to it; empty in a manifest that was not packed yet.
    pub integrity: Vec<IntegrityFile>,
}

impl SkillManifest {
    /// Reads a manifest.
    pub fn parse(text: &str) -> Result<Self, SkillError> {
        if text.len() > MAX_MANIFEST {
            return Err(SkillError::ArchiveTooLarge { what: "the manifest".to_owned(), limit: "256 KiB".to_owned() });
        }
        let table: Table = text.parse().map_err(|error: toml::de::Error| {
            let line = error
                .span()
                .map_or(1, |span| text.get(..span.start).map_or(1, |before| before.matches('\n').count() + 1));
            SkillError::manifest(format!("line {line}"), crate::error::shown(error.message()))
        })?;
        read(Fields::new("", table))
    }

    /// Whether this Palyra is new enough and speaks the interfaces that the skill was built against.
    pub fn check_compat(&self, palyra: &semver::Version) -> Result<(), SkillError> {
        if let Some(least) = &self.compat.min_palyra_version
            && palyra < least
        {
            return Err(SkillError::Incompatible {
                needs: format!("Palyra {least}"),
                have: format!("Palyra {palyra}"),
            });
        }
        if let Some(wanted) = &self.compat.abi {
            let ours = semver::Version::parse(palyra_plugins::ABI_VERSION).ok();
            // Interfaces grow within a major version and change between two.
            if !ours.is_some_and(|ours| ours.major == wanted.major && ours >= *wanted) {
                return Err(SkillError::Incompatible {
                    needs: format!("plugin interfaces {wanted}"),
                    have: format!("plugin interfaces {}", palyra_plugins::ABI_VERSION),
                });
            }
        }
        Ok(())
    }

    /// The name under which a model calls a tool.
    #[must_use]
    pub fn tool_name(&self, tool: &ToolEntrypoint) -> String {
        format!("{}.{}", self.skill_id, tool.id)
    }

    /// The name of the archive's file.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{}-{}.palyra-skill", self.skill_id, self.version)
    }
}

fn read(mut fields: Fields) -> Result<SkillManifest, SkillError> {
    match fields.need("manifest_version")? {
        Value::Integer(1) => {}
        other => {
            return Err(fields.wrong(
                "manifest_version",
                format!("{other} is not supported; this release reads version {MANIFEST_VERSION}"),
            ));
        }
    }
    let skill_id = fields.need_parsed("skill_id")?;
    let name = fields.need_text("name", 100)?;
    let description = fields.text("description", 2_000)?.unwrap_or_default();
    let version = fields.need_parsed("version")?;
    let publisher = fields.need_parsed("publisher")?;
    let license = fields.text("license", 200)?;
    let homepage = fields.text("homepage", 500)?;
    let (tools, hooks) = entrypoints::read(fields.table("entrypoints")?)?;
    let (capabilities, quotas) = capabilities::read(fields.table("capabilities")?)?;
    let mut config: Vec<ConfigEntry> = Vec::new();
    for entry in fields.tables("config", MAX_CONFIG)? {
        let setting = read_config(entry)?;
        if config.iter().any(|other| other.key == setting.key) {
            return Err(fields.wrong("config", format!("`{}` is listed twice", setting.key)));
        }
        config.push(setting);
    }
    let mut compat = fields.table("compat")?;
    let needs = Compat { min_palyra_version: compat.parsed("min_palyra_version")?, abi: compat.parsed("abi")? };
    compat.finish()?;
    let mut integrity = fields.table("integrity")?;
    let files = integrity.tables("files", 256)?.into_iter().map(read_file).collect::<Result<_, _>>()?;
    integrity.finish()?;
    fields.finish()?;
    Ok(SkillManifest {
        skill_id,
        name,
        description,
        version,
        publisher,
        license,
        homepage,
        tools,
        hooks,
        capabilities,
        quotas,
        config,
        compat: needs,
        integrity: files,
    })
}

fn read_config(mut fields: Fields) -> Result<ConfigEntry, SkillError> {
    let key = fields.need_text("key", 64)?;
    if !capabilities::is_local_name(&key, 64) {
        return Err(fields.wrong("key", "use 1 to 64 characters of a-z, 0-9, `_`, `-` and `.`, starting with a letter"));
    }
    let description = fields.text("description", 500)?.unwrap_or_default();
    let default = fields.text("default", 4_000)?;
    fields.finish()?;
    Ok(ConfigEntry { key, description, default })
}

fn read_file(mut fields: Fields) -> Result<IntegrityFile, SkillError> {
    let path = fields.need_text("path", 200)?;
    path::check(&path).map_err(|error| fields.wrong("path", error.to_string()))?;
    let sha256 = fields.need_parsed("sha256")?;
    fields.finish()?;
    Ok(IntegrityFile { path, sha256 })
}

#[cfg(test)]
#[path = "manifest_tests.rs"]
mod tests;
