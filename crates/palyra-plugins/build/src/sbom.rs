//! `sbom.cdx.json`: what went into a module besides its own sources, in CycloneDX.
//!
//! The modules themselves are listed with their digests. Rust's dependencies come from `Cargo.lock`; the other languages bring one kit, which is named with its
//! version. Serial number and time are left out, so that the same build gives the same file.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::manifest::SkillSummary;
use crate::source::Sources;
use crate::toolchain::Toolchain;
use crate::{BuildError, Language, ModuleDigest};

/// Where the list is kept.
pub(crate) const FILE: &str = "sbom.cdx.json";

#[derive(Deserialize)]
struct LockFile {
    #[serde(default)]
    package: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    source: Option<String>,
    checksum: Option<String>,
}

/// The list of a skill.
pub(crate) fn sbom(
    skill: &SkillSummary,
    sources: &Sources,
    toolchain: &Toolchain,
    modules: &[ModuleDigest],
) -> Result<Value, BuildError> {
    let mut components: Vec<Value> = modules.iter().map(file).collect();
    components.extend(match toolchain.language() {
        Language::Rust => crates(sources)?,
        Language::JavaScript => vec![kit(toolchain, "componentize-js", "npm", "%40bytecodealliance/componentize-js")],
        Language::Python => vec![kit(toolchain, "componentize-py", "pypi", "componentize-py")],
        Language::C => toolchain.versions().keys().map(|name| kit(toolchain, name, "generic", name)).collect(),
        Language::Wat => Vec::new(),
    });
    Ok(json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": skill.skill_id,
                "name": skill.skill_id,
                "version": skill.version,
            },
            "tools": { "components": [{ "type": "application", "name": "palyra", "version": env!("CARGO_PKG_VERSION") }] },
        },
        "components": components,
    }))
}

fn crates(sources: &Sources) -> Result<Vec<Value>, BuildError> {
    let path = "Cargo.lock";
    let text = sources.get(path).unwrap_or_default();
    let text = std::str::from_utf8(text).map_err(|error| BuildError::source(path, error))?;
    let lock: LockFile = toml::from_str(text).map_err(|error| BuildError::source(path, error.message()))?;
    // The skill itself and what lies in its folder have no source.
    let mut listed: Vec<Value> = lock.package.iter().filter(|package| package.source.is_some()).map(entry).collect();
    for own in lock.package.iter().filter(|package| package.source.is_none() && package.name == "palyra-plugins-sdk") {
        listed.push(entry(own));
    }
    Ok(listed)
}

fn file(module: &ModuleDigest) -> Value {
    json!({
        "type": "file",
        "bom-ref": module.path,
        "name": module.path,
        "hashes": [{ "alg": "SHA-256", "content": module.sha256.to_hex() }],
    })
}

fn entry(package: &Package) -> Value {
    let purl = format!("pkg:cargo/{}@{}", package.name, package.version);
    let mut entry = json!({
        "type": "library",
        "bom-ref": purl,
        "name": package.name,
        "version": package.version,
        "purl": purl,
    });
    if let (Some(checksum), Some(object)) = (&package.checksum, entry.as_object_mut()) {
        object.insert("hashes".to_owned(), json!([{ "alg": "SHA-256", "content": checksum }]));
    }
    entry
}

fn kit(toolchain: &Toolchain, name: &str, registry: &str, package: &str) -> Value {
    let version = toolchain.versions().get(name).map(String::as_str).unwrap_or_default();
    // Compilers print their name before their version; what counts here is the last word of it.
    let version = version.split_whitespace().last().unwrap_or_default();
    let purl = format!("pkg:{registry}/{package}@{version}");
    json!({ "type": "framework", "bom-ref": purl, "name": name, "version": version, "purl": purl })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GuestTools;

    #[test]
    fn the_crates_of_a_lock_file_are_listed_with_their_checksums() {
        let folder = tempfile::tempdir().unwrap();
        let lock = "version = 4\n[[package]]\nname = \"own\"\nversion = \"0.1.0\"\n\n[[package]]\nname = \"serde\"\nversion = \"1.0.0\"\n\
                    source = \"registry+https://github.com/rust-lang/crates.io-index\"\nchecksum = \"ab\"\n";
        std::fs::write(folder.path().join("Cargo.lock"), lock).unwrap();
        let listed = crates(&Sources::read(folder.path()).unwrap()).unwrap();
        assert_eq!(listed.len(), 1);
        assert_eq!(listed[0]["purl"], "pkg:cargo/serde@1.0.0");
        assert_eq!(listed[0]["hashes"][0]["content"], "ab");
    }

    #[test]
    fn a_text_module_is_its_only_part() {
        let folder = tempfile::tempdir().unwrap();
        let sources = Sources::read(folder.path()).unwrap();
        let toolchain = GuestTools::at(folder.path()).find(Language::Wat).unwrap();
        let skill = SkillSummary { skill_id: "a".to_owned(), version: "1.0.0".to_owned(), tools: Vec::new() };
        let module = ModuleDigest { path: "modules/a.wasm".to_owned(), sha256: palyra_common::Digest::of(b"a") };
        let list = sbom(&skill, &sources, &toolchain, &[module]).unwrap();
        assert_eq!(list["components"].as_array().unwrap().len(), 1);
        assert_eq!(list["components"][0]["name"], "modules/a.wasm");
        assert_eq!(list["bomFormat"], "CycloneDX");
    }
}
