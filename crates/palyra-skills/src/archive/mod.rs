//! Skill archives: `NAME-VERSION.palyra-skill`.
//!
//! An archive that was read is complete and consistent: known paths only, one manifest, the files that the manifest lists and no others, a module for every
//! entry point. It is not yet believed: [`verify`](super::verify) says who signed it and the audit says what to think of it.

mod folder;
mod limits;
pub(crate) mod path;
mod zip_read;
mod zip_write;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use palyra_common::Digest;

use crate::provenance::Provenance;
use crate::signature::SignatureFile;
use crate::{SkillError, SkillManifest, sbom};

pub use limits::ArchiveLimits;

/// A skill archive in memory.
#[derive(Debug, Clone)]
pub struct SkillArchive {
    manifest: SkillManifest,
    manifest_path: &'static str,
    files: BTreeMap<String, Vec<u8>>,
    signature: Option<SignatureFile>,
    digest: Digest,
    content: Digest,
}

impl SkillArchive {
    /// Reads an archive under the limits of the format.
    pub fn read(bytes: &[u8]) -> Result<Self, SkillError> {
        Self::read_with(bytes, &ArchiveLimits::default())
    }

    /// Reads an archive under other limits.
    pub fn read_with(bytes: &[u8], limits: &ArchiveLimits) -> Result<Self, SkillError> {
        let (entries, form) = zip_read::read(bytes, limits)?;
        let files: BTreeMap<String, Vec<u8>> = entries.into_iter().map(|entry| (entry.path, entry.bytes)).collect();
        let (manifest_path, manifest) = manifest_of(&files, limits)?;
        let signature = files.get(path::SIGNATURE).map(|bytes| SignatureFile::parse(bytes)).transpose()?;
        // Signing packs anew, so a signed archive of another form was changed afterwards.
        if signature.is_some() && form == zip_read::Form::Foreign {
            return Err(SkillError::archive("it is signed, and its headers were changed since"));
        }
        let archive = Self {
            manifest,
            manifest_path,
            signature,
            digest: Digest::of(bytes),
            content: content_digest(&files),
            files,
        };
        archive.check_integrity()?;
        archive.check_modules()?;
        Ok(archive)
    }

    /// The manifest.
    #[must_use]
    pub const fn manifest(&self) -> &SkillManifest {
        &self.manifest
    }

    /// All files by path, the manifest and the signature among them.
    #[must_use]
    pub const fn files(&self) -> &BTreeMap<String, Vec<u8>> {
        &self.files
    }

    /// What claims to be the signature; [`verify`](super::verify) says whether it holds.
    #[must_use]
    pub const fn signature(&self) -> Option<&SignatureFile> {
        self.signature.as_ref()
    }

    /// The digest of the archive's bytes.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// The digest of what is in it, however it is packed and whoever signed it.
    #[must_use]
    pub const fn content(&self) -> Digest {
        self.content
    }

    /// The modules by path.
    pub fn modules(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files
            .iter()
            .filter(|(path, _)| path::is_module(path))
            .map(|(path, bytes)| (path.as_str(), bytes.as_slice()))
    }

    /// The path and the bytes of the module that an entry point names, or of the only one.
    pub fn module_of(&self, entrypoint: &str, named: Option<&str>) -> Result<(&str, &[u8]), SkillError> {
        let missing = |reason: String| SkillError::ModuleMissing { entrypoint: entrypoint.to_owned(), reason };
        let mut modules = self.modules();
        match named {
            Some(named) => {
                modules.find(|(path, _)| *path == named).ok_or_else(|| missing(format!("there is no `{named}`")))
            }
            None => match (modules.next(), modules.next()) {
                (Some(only), None) => Ok(only),
                (None, _) => Err(missing("the archive has no module".to_owned())),
                (Some(_), Some(_)) => {
                    Err(missing("the archive has several modules, but the manifest names none".to_owned()))
                }
            },
        }
    }

    pub(crate) const fn manifest_path(&self) -> &'static str {
        self.manifest_path
    }

    fn check_integrity(&self) -> Result<(), SkillError> {
        if self.manifest.integrity.is_empty() {
            return Ok(());
        }
        let differs =
            |path: &str, reason| Err(SkillError::IntegrityMismatch { path: crate::error::shown(path), reason });
        let mut listed = BTreeSet::new();
        for file in &self.manifest.integrity {
            match self.files.get(&file.path) {
                None => return differs(&file.path, "the manifest lists it, but it is missing"),
                Some(bytes) if Digest::of(bytes) != file.sha256 => {
                    return differs(&file.path, "its digest does not match the manifest");
                }
                Some(_) => listed.insert(file.path.as_str()),
            };
        }
        match self.files.keys().find(|path| is_listed(path) && !listed.contains(path.as_str())) {
            Some(path) => differs(path, "the manifest does not list it"),
            None => Ok(()),
        }
    }

    fn check_modules(&self) -> Result<(), SkillError> {
        for tool in &self.manifest.tools {
            self.module_of(&tool.id, tool.module.as_deref())?;
        }
        for hook in &self.manifest.hooks {
            self.module_of(&hook.id, hook.module.as_deref())?;
        }
        Ok(())
    }
}

/// Whether a manifest lists this file: all but the manifest itself and the signature.
fn is_listed(path: &str) -> bool {
    !matches!(path, path::MANIFEST | path::MANIFEST_ALIAS | path::SIGNATURE)
}

fn manifest_of(
    files: &BTreeMap<String, Vec<u8>>,
    limits: &ArchiveLimits,
) -> Result<(&'static str, SkillManifest), SkillError> {
    let (path, bytes) = match (files.get(path::MANIFEST), files.get(path::MANIFEST_ALIAS)) {
        (Some(bytes), None) => (path::MANIFEST, bytes),
        (None, Some(bytes)) => (path::MANIFEST_ALIAS, bytes),
        (None, None) => return Err(SkillError::archive("it has no `skill.toml`")),
        (Some(_), Some(_)) => {
            return Err(SkillError::archive("it has two manifests, `skill.toml` and `manifest.toml`"));
        }
    };
    limits.check("the manifest", bytes.len() as u64, limits.manifest_bytes)?;
    let text = std::str::from_utf8(bytes).map_err(|_| SkillError::manifest(path, "it is not UTF-8"))?;
    Ok((path, SkillManifest::parse(text)?))
}

/// The digest of all files but the signature, by path.
fn content_digest(files: &BTreeMap<String, Vec<u8>>) -> Digest {
    let mut parts: Vec<Vec<u8>> = vec![b"palyra-skill-content-v1".to_vec()];
    for (path, bytes) in files.iter().filter(|(path, _)| *path != path::SIGNATURE) {
        parts.push(path.clone().into_bytes());
        parts.push(Digest::of(bytes).0.to_vec());
    }
    Digest::of_parts(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

/// What an archive is made from.
#[derive(Debug, Clone, Default)]
pub struct ArchiveInput {
    /// The text of `skill.toml`.
    pub manifest: String,
    /// Modules and assets by their path in the archive, such as `modules/echo.wasm`.
    pub files: BTreeMap<String, Vec<u8>>,
    /// A list of parts in CycloneDX; one that lists the modules is made if there is none.
    pub sbom: Option<Vec<u8>>,
    /// Where the modules came from.
    pub provenance: Option<Provenance>,
}

/// Packs an archive, unsigned. The same input gives the same bytes.
pub fn pack(input: ArchiveInput) -> Result<Vec<u8>, SkillError> {
    pack_with(input, &ArchiveLimits::default())
}

/// Packs an archive under other limits.
pub fn pack_with(input: ArchiveInput, limits: &ArchiveLimits) -> Result<Vec<u8>, SkillError> {
    let manifest = SkillManifest::parse(&input.manifest)?;
    let mut files = input.files;
    if let Some(path) = files.keys().find(|path| !path.starts_with(path::MODULES) && !path.starts_with(path::ASSETS)) {
        return Err(SkillError::path(path, "only modules and assets can be added as files"));
    }
    let modules: Vec<(String, Digest)> = files
        .iter()
        .filter(|(path, _)| path::is_module(path))
        .map(|(path, bytes)| (path.clone(), Digest::of(bytes)))
        .collect();
    let sbom = match input.sbom {
        Some(bytes) => bytes,
        None => sbom::of_modules(&manifest, &modules)?,
    };
    files.insert(path::SBOM.to_owned(), sbom);
    if let Some(provenance) = &input.provenance {
        files.insert(path::PROVENANCE.to_owned(), provenance.to_bytes()?);
    }
    let text = if manifest.integrity.is_empty() { with_integrity(&input.manifest, &files)? } else { input.manifest };
    files.insert(path::MANIFEST.to_owned(), text.into_bytes());
    let bytes = zip_write::write(&files, limits)?;
    // What is packed here has to be readable anywhere.
    SkillArchive::read_with(&bytes, limits)?;
    Ok(bytes)
}

/// The manifest with the list of its files at its end.
fn with_integrity(manifest: &str, files: &BTreeMap<String, Vec<u8>>) -> Result<String, SkillError> {
    let mut text = manifest.trim_end().to_owned();
    text.push('\n');
    for (path, bytes) in files {
        let quoted = toml::Value::String(path.clone());
        write!(text, "\n[[integrity.files]]\npath = {quoted}\nsha256 = \"{}\"\n", Digest::of(bytes))
            .map_err(|_| SkillError::manifest("integrity", "it cannot be written"))?;
    }
    Ok(text)
}

/// The same archive with this signature instead of any it had.
pub(crate) fn repack_signed(
    archive: &SkillArchive,
    signature: &SignatureFile,
    limits: &ArchiveLimits,
) -> Result<Vec<u8>, SkillError> {
    let mut files = archive.files.clone();
    files.insert(path::SIGNATURE.to_owned(), signature.to_bytes()?);
    zip_write::write(&files, limits)
}
