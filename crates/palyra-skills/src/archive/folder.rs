//! Reads the folder that a skill is packed from: `skill.toml`, `modules/`, `assets/`, and the optional lists beside them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use super::{ArchiveInput, ArchiveLimits, path};
use crate::provenance::Provenance;
use crate::{SkillError, files};

/// Deepest folder that is gone into; paths of archives are not deeper.
const MAX_DEPTH: usize = 10;

impl ArchiveInput {
    /// Reads a folder. Links are refused, and so is anything that is neither a file nor a folder; files that begin with a dot are left out.
    pub fn from_folder(folder: &Path, limits: &ArchiveLimits) -> Result<Self, SkillError> {
        let manifest_path = match folder.join(path::MANIFEST) {
            path if path.exists() => path,
            _ => folder.join(path::MANIFEST_ALIAS),
        };
        let manifest = files::read(&manifest_path, limits.manifest_bytes)?.ok_or_else(|| {
            SkillError::file(
                "read",
                &folder.join(path::MANIFEST),
                io::Error::new(io::ErrorKind::NotFound, "no such file"),
            )
        })?;
        let manifest =
            String::from_utf8(manifest).map_err(|_| SkillError::manifest(path::MANIFEST, "it is not UTF-8"))?;
        let mut found = BTreeMap::new();
        for part in [path::MODULES, path::ASSETS] {
            let place = folder.join(part);
            if place.exists() {
                collect(&place, part, 0, limits, &mut found)?;
            }
        }
        let sbom = files::read(&folder.join(path::SBOM), limits.entry_bytes)?;
        let provenance = files::read(&folder.join(path::PROVENANCE), limits.entry_bytes)?
            .map(|bytes| Provenance::parse(&bytes))
            .transpose()?;
        Ok(Self { manifest, files: found, sbom, provenance })
    }
}

fn collect(
    folder: &Path,
    prefix: &str,
    depth: usize,
    limits: &ArchiveLimits,
    found: &mut BTreeMap<String, Vec<u8>>,
) -> Result<(), SkillError> {
    if depth > MAX_DEPTH {
        return Err(SkillError::path(prefix, "it is nested too deeply"));
    }
    let failed = |source| SkillError::file("read", folder, source);
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let name = name.to_str().ok_or_else(|| SkillError::path(&name.to_string_lossy(), "it is not UTF-8"))?;
        if name.starts_with('.') {
            continue;
        }
        let kind = entry.file_type().map_err(failed)?;
        let here = format!("{prefix}{name}");
        if kind.is_dir() {
            collect(&entry.path(), &format!("{here}/"), depth + 1, limits, found)?;
        } else if kind.is_file() {
            path::check(&here)?;
            limits.check("the number of files", found.len() as u64 + 1, limits.entries)?;
            let bytes = files::read(&entry.path(), limits.entry_bytes)?;
            found.insert(here, bytes.unwrap_or_default());
        } else {
            return Err(SkillError::path(&here, "it is a symbolic link or a special file"));
        }
    }
    Ok(())
}
