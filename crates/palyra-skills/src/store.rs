//! Installed archives on disk, by their digest.
//!
//! ```text
//! <skills>/archives/<sha256>.palyra-skill   the archives, as they came
//! <skills>/modules/<sha256>.wasm            their modules, unpacked for the runtime
//! ```
//!
//! Files are written whole or not at all and are private to the user. Nothing read from here is believed: contents are compared with the digest that the journal
//! knows, and a skill is verified and audited anew each time it is loaded. A file that was changed is an error that
//! [`means_tampering`](SkillError::means_tampering).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use palyra_common::Digest;

use crate::files::{self, Existing, Readers};
use crate::{ArchiveLimits, AuditPolicy, Examined, SkillArchive, SkillError, SkillRecord, examine};

const ARCHIVE: &str = "palyra-skill";
const MODULE: &str = "wasm";

/// The store.
#[derive(Debug, Clone)]
pub struct SkillStore {
    archives: PathBuf,
    modules: PathBuf,
    limits: ArchiveLimits,
}

/// A skill that was loaded: what is on disk is what was installed.
#[derive(Debug, Clone)]
pub struct LoadedSkill {
    /// The archive.
    pub archive: SkillArchive,
    /// Its signature and a fresh audit.
    pub examined: Examined,
}

impl SkillStore {
    /// Opens the store in a directory and makes it if need be.
    pub fn open(directory: &Path, limits: ArchiveLimits) -> Result<Self, SkillError> {
        let store = Self { archives: directory.join("archives"), modules: directory.join("modules"), limits };
        files::make_directory(&store.archives, Readers::User)?;
        files::make_directory(&store.modules, Readers::User)?;
        Ok(store)
    }

    /// Where an archive is.
    #[must_use]
    pub fn archive_path(&self, digest: &Digest) -> PathBuf {
        self.archives.join(format!("{}.{ARCHIVE}", digest.to_hex()))
    }

    /// Where a module is.
    #[must_use]
    pub fn module_path(&self, digest: &Digest) -> PathBuf {
        self.modules.join(format!("{}.{MODULE}", digest.to_hex()))
    }

    /// Keeps an archive and its modules. Reading it first makes sure that nothing else is ever kept.
    pub fn put(&self, bytes: &[u8]) -> Result<SkillArchive, SkillError> {
        let archive = SkillArchive::read_with(bytes, &self.limits)?;
        for (_, wasm) in archive.modules() {
            self.put_file(&self.module_path(&Digest::of(wasm)), wasm)?;
        }
        self.put_file(&self.archive_path(&archive.digest()), bytes)?;
        Ok(archive)
    }

    /// A file under a digest never changes; one that was tampered with is put right.
    fn put_file(&self, path: &Path, bytes: &[u8]) -> Result<(), SkillError> {
        match files::read(path, bytes.len() as u64) {
            Ok(Some(kept)) if kept == bytes => Ok(()),
            _ => files::write(path, bytes, Existing::Replace, Readers::User),
        }
    }

    /// The bytes of an archive, compared with their digest.
    pub fn get(&self, digest: &Digest) -> Result<Vec<u8>, SkillError> {
        self.read(&self.archive_path(digest), digest, self.limits.archive_bytes)
    }

    /// The bytes of a module, compared with their digest.
    pub fn module(&self, digest: &Digest) -> Result<Vec<u8>, SkillError> {
        self.read(&self.module_path(digest), digest, self.limits.entry_bytes)
    }

    fn read(&self, path: &Path, digest: &Digest, limit: u64) -> Result<Vec<u8>, SkillError> {
        let tampered = |reason: &str| SkillError::Tampered { reason: format!("`{}` {reason}", path.display()) };
        let bytes = match files::read(path, limit) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Err(SkillError::NotStored { digest: *digest }),
            Err(_) if fs::metadata(path).is_ok_and(|metadata| metadata.len() > limit) => {
                return Err(tampered("is larger than any valid archive"));
            }
            Err(error) => return Err(error),
        };
        if Digest::of(&bytes) == *digest { Ok(bytes) } else { Err(tampered("was modified after installation")) }
    }

    /// Loads an installed skill: digest, archive, signature, key and audit, all anew. The audit's verdict is the caller's to act on.
    pub fn load(&self, record: &SkillRecord, policy: &AuditPolicy) -> Result<LoadedSkill, SkillError> {
        let artifact = &record.artifact;
        let archive = SkillArchive::read_with(&self.get(&artifact.archive)?, &self.limits)?;
        let examined = examine(&archive, policy)?;
        let manifest = archive.manifest();
        let same = manifest.skill_id == record.skill_id
            && manifest.version == artifact.version
            && examined.verified.publisher == artifact.publisher
            && examined.verified.key_id == artifact.key_id
            && archive.content() == artifact.content;
        if !same {
            return Err(SkillError::Tampered {
                reason: "the stored archive has a different skill, version or publisher".to_owned(),
            });
        }
        Ok(LoadedSkill { archive, examined })
    }

    /// Removes every archive and module that none of these archives needs, and says of which digests. An archive that is to stay and cannot be read is kept, and
    /// then so is every module.
    pub fn sweep(&self, keep: &BTreeSet<Digest>) -> Result<Vec<Digest>, SkillError> {
        let mut modules = BTreeSet::new();
        let mut all_readable = true;
        for digest in keep {
            match self.get(digest).and_then(|bytes| SkillArchive::read_with(&bytes, &self.limits)) {
                Ok(archive) => modules.extend(archive.modules().map(|(_, wasm)| Digest::of(wasm))),
                Err(_) => all_readable = false,
            }
        }
        let mut removed = sweep_directory(&self.archives, ARCHIVE, keep)?;
        if all_readable {
            removed.extend(sweep_directory(&self.modules, MODULE, &modules)?);
        }
        Ok(removed)
    }
}

/// Removes files named by a digest that is not to be kept; any other file is left alone.
fn sweep_directory(directory: &Path, ending: &str, keep: &BTreeSet<Digest>) -> Result<Vec<Digest>, SkillError> {
    let failed = |source| SkillError::file("read", directory, source);
    let mut removed = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().and_then(|found| found.to_str()) != Some(ending) {
            continue;
        }
        let digest = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse::<Digest>().ok());
        if let Some(digest) = digest.filter(|digest| !keep.contains(digest)) {
            files::remove(&path)?;
            removed.push(digest);
        }
    }
    Ok(removed)
}
