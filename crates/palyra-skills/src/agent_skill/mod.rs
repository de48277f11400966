//! Folders with a `SKILL.md`: the open format of agent skills.
//!
//! Such a folder is text for a model, with scripts and references beside it. It is disclosed step by step: name and description first, the instructions when they are
//! wanted, other files when they are asked for by name. Nothing here runs a script; that is the sandbox's, under policy, and the digests given here are what an
//! approval is about.
//!
//! The folder is read through one directory handle; links are never followed, so nothing outside it can be read, whatever is moved about meanwhile.

mod front_matter;

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use cap_fs_ext::{DirExt as _, FollowSymlinks, OpenOptionsFollowExt as _};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use palyra_common::Digest;
use serde::{Deserialize, Serialize};

use crate::SkillError;
use crate::error::shown;

/// The file that makes a folder a skill.
const SKILL_FILE: &str = "SKILL.md";
/// Largest `SKILL.md`: instructions are to fit into a context.
const MAX_SKILL_FILE: u64 = 256 << 10;
/// Largest other file.
const MAX_RESOURCE: u64 = 16 << 20;
/// Most files of one folder.
const MAX_RESOURCES: usize = 1_000;
/// Deepest folder.
const MAX_DEPTH: usize = 8;
/// Most skills below one folder.
const MAX_SKILLS: usize = 1_000;

/// What the front matter says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentSkillMetadata {
    /// The name, the same as the folder's.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// Under which licence it comes.
    pub license: Option<String>,
    /// What it needs around it.
    pub compatibility: Option<String>,
    /// Tools it would like to use without being asked; a wish, never a grant.
    pub allowed_tools: Vec<String>,
    /// Whatever else its author put there.
    pub metadata: BTreeMap<String, String>,
    /// Keys that the format does not have.
    pub ignored: Vec<String>,
}

/// What a file of the folder is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceKind {
    /// Below `scripts/`: may be run, in a sandbox and under policy.
    Script,
    /// Below `references/`: more to read.
    Reference,
    /// Anything else.
    Asset,
}

/// A file of the folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource {
    /// Its path in the folder.
    pub path: String,
    /// What it is for.
    pub kind: ResourceKind,
    /// Its length.
    pub bytes: u64,
    /// Its digest.
    pub sha256: Digest,
}

/// A folder with a `SKILL.md`. Only the front matter was read so far.
#[derive(Debug)]
pub struct AgentSkill {
    folder: PathBuf,
    dir: Dir,
    metadata: AgentSkillMetadata,
}

impl AgentSkill {
    /// Opens a folder.
    pub fn open(folder: &Path) -> Result<Self, SkillError> {
        let invalid = |reason: String| SkillError::AgentSkillInvalid { path: folder.to_owned(), reason };
        let failed = |source| SkillError::file("read", folder, source);
        if std::fs::symlink_metadata(folder).map_err(failed)?.is_symlink() {
            return Err(invalid("it is a link".to_owned()));
        }
        let dir = Dir::open_ambient_dir(folder, ambient_authority()).map_err(failed)?;
        let text = read_skill_file(&dir, folder)?;
        let (front, _) = front_matter::split(&text).map_err(invalid)?;
        let metadata = front_matter::read(front).map_err(invalid)?;
        let name = folder.file_name().and_then(|name| name.to_str());
        if name.is_some_and(|name| name != metadata.name) {
            return Err(invalid(format!("its name is `{}`, but it must match the folder's name", metadata.name)));
        }
        Ok(Self { folder: folder.to_owned(), dir, metadata })
    }

    /// What the front matter says.
    #[must_use]
    pub const fn metadata(&self) -> &AgentSkillMetadata {
        &self.metadata
    }

    /// Where it is.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The instructions: `SKILL.md` without its front matter.
    pub fn instructions(&self) -> Result<String, SkillError> {
        let text = read_skill_file(&self.dir, &self.folder)?;
        let (_, body) = front_matter::split(&text)
            .map_err(|reason| SkillError::AgentSkillInvalid { path: self.folder.clone(), reason })?;
        Ok(body.trim().to_owned())
    }

    /// All other files with their digests, in order. A link anywhere is an error.
    pub fn resources(&self) -> Result<Vec<Resource>, SkillError> {
        let mut found = Vec::new();
        let root = self.dir.try_clone().map_err(|source| SkillError::file("read", &self.folder, source))?;
        self.collect(&root, "", 0, &mut found)?;
        found.sort_by(|left, right| left.path.cmp(&right.path));
        Ok(found)
    }

    /// One file by its path in the folder.
    pub fn read(&self, path: &str) -> Result<Vec<u8>, SkillError> {
        let invalid = |reason: &str| SkillError::AgentSkillInvalid {
            path: self.folder.join(shown(path)),
            reason: reason.to_owned(),
        };
        let parts: Vec<&str> = path.split('/').collect();
        let plain = |part: &&str| !matches!(*part, "" | "." | "..") && !part.contains(['\\', '\0']);
        let (Some((name, parents)), true) = (parts.split_last(), parts.iter().all(plain) && parts.len() <= MAX_DEPTH)
        else {
            return Err(invalid("it is not a path inside the folder"));
        };
        let failed = |source| SkillError::file("read", &self.folder.join(path), source);
        let mut dir = self.dir.try_clone().map_err(failed)?;
        for parent in parents {
            dir = dir.open_dir_nofollow(parent).map_err(failed)?;
        }
        read_file(&dir, name, MAX_RESOURCE).map_err(failed)
    }

    /// The digest of everything in the folder, for pins and approvals.
    pub fn digest(&self) -> Result<Digest, SkillError> {
        let text = read_skill_file(&self.dir, &self.folder)?;
        let mut parts: Vec<Vec<u8>> = vec![b"palyra-agent-skill-v1".to_vec(), Digest::of(text.as_bytes()).0.to_vec()];
        for resource in self.resources()? {
            parts.push(resource.path.into_bytes());
            parts.push(resource.sha256.0.to_vec());
        }
        Ok(Digest::of_parts(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>()))
    }

    fn collect(&self, dir: &Dir, prefix: &str, depth: usize, found: &mut Vec<Resource>) -> Result<(), SkillError> {
        let place = self.folder.join(prefix);
        let failed = |source| SkillError::file("read", &place, source);
        let invalid = |name: &str, reason: &str| SkillError::AgentSkillInvalid {
            path: place.join(shown(name)),
            reason: reason.to_owned(),
        };
        if depth > MAX_DEPTH {
            return Err(invalid("", "it is nested too deeply"));
        }
        for entry in dir.entries().map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            let name = name.to_str().ok_or_else(|| invalid(&name.to_string_lossy(), "its name is not UTF-8"))?;
            let path = format!("{prefix}{name}");
            let kind = entry.file_type().map_err(failed)?;
            // What version control and editors leave behind is no part of a skill.
            if name.starts_with('.') || path == SKILL_FILE {
                continue;
            }
            if kind.is_dir() {
                let inner = dir.open_dir_nofollow(name).map_err(failed)?;
                self.collect(&inner, &format!("{path}/"), depth + 1, found)?;
            } else if kind.is_file() {
                if found.len() >= MAX_RESOURCES {
                    return Err(invalid("", "it has more than 1,000 files"));
                }
                let bytes = read_file(dir, name, MAX_RESOURCE).map_err(failed)?;
                let kind = match prefix.split('/').next() {
                    Some("scripts") => ResourceKind::Script,
                    Some("references") => ResourceKind::Reference,
                    _ => ResourceKind::Asset,
                };
                found.push(Resource { path, kind, bytes: bytes.len() as u64, sha256: Digest::of(&bytes) });
            } else {
                return Err(invalid(name, "it is a symbolic link or a special file"));
            }
        }
        Ok(())
    }
}

/// Every folder with a `SKILL.md` right below a folder, in order; what is wrong with one does not hide the others. No such folder means no skills.
pub fn discover_agent_skills(folder: &Path) -> Result<Vec<Result<AgentSkill, SkillError>>, SkillError> {
    let failed = |source| SkillError::file("read", folder, source);
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut folders = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        if path.join(SKILL_FILE).symlink_metadata().is_ok() {
            folders.push(path);
        }
        if folders.len() > MAX_SKILLS {
            return Err(failed(io::Error::other("there are more than 1,000 skills")));
        }
    }
    folders.sort();
    Ok(folders.iter().map(|folder| AgentSkill::open(folder)).collect())
}

fn read_skill_file(dir: &Dir, folder: &Path) -> Result<String, SkillError> {
    let path = folder.join(SKILL_FILE);
    let bytes = read_file(dir, SKILL_FILE, MAX_SKILL_FILE).map_err(|source| SkillError::file("read", &path, source))?;
    String::from_utf8(bytes).map_err(|_| SkillError::AgentSkillInvalid { path, reason: "it is not UTF-8".to_owned() })
}

/// A regular file, never through a link.
fn read_file(dir: &Dir, name: &str, limit: u64) -> io::Result<Vec<u8>> {
    // Opening a named pipe would wait for somebody to write to it, so what it is gets asked first.
    if !dir.symlink_metadata(name)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut options = OpenOptions::new();
    options.read(true).follow(FollowSymlinks::No);
    let file = dir.open_with(name, &options)?;
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::other(format!("it is larger than {limit} bytes")));
    }
    Ok(bytes)
}
