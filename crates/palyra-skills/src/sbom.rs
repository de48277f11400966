//! `sbom.cdx.json`: the parts of a skill in CycloneDX.
//!
//! Read for what an audit can use: that it is one, that its parts have names, and that the digests it gives for modules are those of the modules.

use std::collections::BTreeMap;

use palyra_common::Digest;
use serde_json::{Value, json};

use crate::{SkillError, SkillManifest};

/// Most parts that are looked at.
const MAX_COMPONENTS: usize = 10_000;
/// Versions of the format that have the fields that are read here.
const VERSIONS: [&str; 5] = ["1.3", "1.4", "1.5", "1.6", "1.7"];

/// What a list of parts says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Sbom {
    /// How many parts are listed.
    pub(crate) components: usize,
    /// SHA-256 by name, where one is given.
    pub(crate) digests: BTreeMap<String, Digest>,
    /// What the list is about: name and version.
    pub(crate) subject: Option<(String, String)>,
}

impl Sbom {
    /// Reads a list; the error says what is wrong with it.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let value: Value = serde_json::from_slice(bytes).map_err(|error| format!("it is not valid JSON: {error}"))?;
        if value.get("bomFormat").and_then(Value::as_str) != Some("CycloneDX") {
            return Err("`bomFormat` is not `CycloneDX`".to_owned());
        }
        match value.get("specVersion").and_then(Value::as_str) {
            Some(version) if VERSIONS.contains(&version) => {}
            _ => return Err(format!("`specVersion` is not one of {}", VERSIONS.join(", "))),
        }
        let components = match value.get("components") {
            None => &Vec::new(),
            Some(Value::Array(components)) if components.len() <= MAX_COMPONENTS => components,
            Some(_) => return Err("`components` is not a list, or has more than 10,000 entries".to_owned()),
        };
        let mut digests = BTreeMap::new();
        for (index, component) in components.iter().enumerate() {
            let name = component.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
            let kind = component.get("type").and_then(Value::as_str);
            let (Some(name), Some(_)) = (name, kind) else {
                return Err(format!("component {index} has no `name` or no `type`"));
            };
            if let Some(digest) = sha256_of(component)? {
                digests.insert(name.to_owned(), digest);
            }
        }
        let subject = value.pointer("/metadata/component").and_then(|subject| {
            let text = |key: &str| subject.get(key).and_then(Value::as_str).map(str::to_owned);
            Some((text("name")?, text("version").unwrap_or_default()))
        });
        Ok(Self { components: components.len(), digests, subject })
    }
}

fn sha256_of(component: &Value) -> Result<Option<Digest>, String> {
    let hashes = component.get("hashes").and_then(Value::as_array).into_iter().flatten();
    for hash in hashes {
        if hash.get("alg").and_then(Value::as_str) == Some("SHA-256") {
            let content = hash.get("content").and_then(Value::as_str).unwrap_or_default();
            return content.parse().map(Some).map_err(|_| "a SHA-256 in `hashes` is malformed".to_owned());
        }
    }
    Ok(None)
}

/// The smallest honest list: the modules themselves. It has neither a time nor a random number, so that packing is repeatable.
pub(crate) fn of_modules(manifest: &SkillManifest, modules: &[(String, Digest)]) -> Result<Vec<u8>, SkillError> {
    let components: Vec<Value> = modules
        .iter()
        .map(|(path, digest)| {
            json!({ "type": "file", "name": path, "hashes": [{ "alg": "SHA-256", "content": digest.to_hex() }] })
        })
        .collect();
    let list = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": { "component": {
            "type": "application", "name": manifest.skill_id, "version": manifest.version,
        } },
        "components": components,
    });
    let mut bytes = serde_json::to_vec_pretty(&list)
        .map_err(|error| SkillError::StatementInvalid { kind: "an SBOM", reason: error.to_string() })?;
    bytes.push(b'\n');
    Ok(bytes)
}
