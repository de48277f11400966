//! Which registries are followed, and what is remembered of each: one small file per registry, private to the user.
//!
//! What is in these files is what protects from replayed and forged registries, so a file that cannot be read is an error and never a fresh start.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::client::RegistryState;
use super::fetch::RegistryLocation;
use crate::error::shown;
use crate::files::{self, Existing, Readers};
use crate::{RegistryName, SkillError};

/// Largest file; a root with many keys is a few kilobytes.
const MAX_FILE: u64 = 1 << 20;
const ENDING: &str = "json";

/// A registry that is followed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FollowedRegistry {
    /// What the operator calls it.
    pub name: RegistryName,
    /// Where it is.
    pub location: RegistryLocation,
    /// What is remembered of it.
    pub state: RegistryState,
}

/// The registries that are followed.
#[derive(Debug, Clone)]
pub struct RegistryBook {
    directory: PathBuf,
}

impl RegistryBook {
    /// Opens the book in a directory and makes it if need be.
    pub fn open(directory: &Path) -> Result<Self, SkillError> {
        files::make_directory(directory, Readers::User)?;
        Ok(Self { directory: directory.to_owned() })
    }

    /// All registries by name.
    pub fn list(&self) -> Result<Vec<FollowedRegistry>, SkillError> {
        let failed = |source| SkillError::file("read", &self.directory, source);
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.directory).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.extension().and_then(|ending| ending.to_str()) == Some(ENDING)
                && let Some(stem) = path.file_stem().and_then(|stem| stem.to_str())
            {
                names.push(stem.parse::<RegistryName>()?);
            }
        }
        names.sort();
        names.iter().map(|name| self.get(name)).collect()
    }

    /// One registry.
    pub fn get(&self, name: &RegistryName) -> Result<FollowedRegistry, SkillError> {
        let path = self.path(name);
        let bytes = files::read(&path, MAX_FILE)?
            .ok_or_else(|| SkillError::file("read", &path, io::Error::new(io::ErrorKind::NotFound, "no such file")))?;
        let invalid = |reason| SkillError::StatementInvalid { kind: "a registry's saved state", reason };
        let followed: FollowedRegistry =
            serde_json::from_slice(&bytes).map_err(|error| invalid(shown(&error.to_string())))?;
        match followed.name == *name {
            true => Ok(followed),
            false => Err(invalid(format!("it belongs to `{}`", followed.name))),
        }
    }

    /// Begins to follow a registry; one of that name must not be followed yet, since its state would be lost.
    pub fn add(&self, followed: &FollowedRegistry) -> Result<(), SkillError> {
        self.write(followed, Existing::Refuse)
    }

    /// Remembers how far a registry has come.
    pub fn save(&self, followed: &FollowedRegistry) -> Result<(), SkillError> {
        self.write(followed, Existing::Replace)
    }

    /// Stops to follow a registry.
    pub fn remove(&self, name: &RegistryName) -> Result<(), SkillError> {
        files::remove(&self.path(name))
    }

    fn path(&self, name: &RegistryName) -> PathBuf {
        self.directory.join(format!("{name}.{ENDING}"))
    }

    fn write(&self, followed: &FollowedRegistry, existing: Existing) -> Result<(), SkillError> {
        let mut bytes = serde_json::to_vec_pretty(followed).map_err(|error| SkillError::StatementInvalid {
            kind: "a registry's saved state",
            reason: error.to_string(),
        })?;
        bytes.push(b'\n');
        files::write(&self.path(&followed.name), &bytes, existing, Readers::User)
    }
}
