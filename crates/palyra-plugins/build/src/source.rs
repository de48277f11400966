//! The sources of a skill: which files they are, and the digest that stands for them.
//!
//! Taken is everything in the folder but what a build leaves there, what version control keeps, and hidden files. Links are refused: a build must not depend on what
//! lies outside of the folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use palyra_common::Digest;

use crate::BuildError;

/// What builds leave behind, at the top of the folder.
const LEFT_BEHIND: [&str; 8] =
    ["modules", "target", "node_modules", "dist", "sbom.cdx.json", "provenance.json", "signature.json", "__pycache__"];

/// Largest file that is taken as a source.
const MAX_FILE: u64 = 16 * 1024 * 1024;

/// Most files; a folder with more is not a skill's.
const MAX_FILES: usize = 4096;

/// The files of a skill by their path with `/` in it.
#[derive(Debug)]
pub(crate) struct Sources {
    files: BTreeMap<String, Vec<u8>>,
}

impl Sources {
    /// Reads a folder.
    pub(crate) fn read(folder: &Path) -> Result<Self, BuildError> {
        let mut files = BTreeMap::new();
        let mut waiting: Vec<(PathBuf, String)> = vec![(folder.to_owned(), String::new())];
        while let Some((directory, prefix)) = waiting.pop() {
            let entries = fs::read_dir(&directory).map_err(BuildError::io(&directory))?;
            for entry in entries {
                let entry = entry.map_err(BuildError::io(&directory))?;
                let path = entry.path();
                let name =
                    entry.file_name().into_string().map_err(|_| BuildError::source(&path, "its name is not UTF-8"))?;
                if passed_over(&name, &prefix) {
                    continue;
                }
                let kind = entry.file_type().map_err(BuildError::io(&path))?;
                let inside = format!("{prefix}{name}");
                if kind.is_dir() {
                    waiting.push((path, format!("{inside}/")));
                } else if kind.is_file() {
                    let length = entry.metadata().map_err(BuildError::io(&path))?.len();
                    if length > MAX_FILE || files.len() >= MAX_FILES {
                        return Err(BuildError::source(path, "a skill may have up to 4096 files of up to 16 MiB each"));
                    }
                    files.insert(inside, fs::read(&path).map_err(BuildError::io(&path))?);
                } else {
                    return Err(BuildError::source(path, "it is a symbolic link or a special file"));
                }
            }
        }
        Ok(Self { files })
    }

    /// One digest over all paths and contents.
    pub(crate) fn digest(&self) -> Digest {
        let mut text = String::new();
        for (path, bytes) in &self.files {
            text.push_str(&format!("{} {path}\n", Digest::of(bytes).to_hex()));
        }
        Digest::of(text.as_bytes())
    }

    /// A file by its path.
    pub(crate) fn get(&self, path: &str) -> Option<&[u8]> {
        self.files.get(path).map(Vec::as_slice)
    }

    /// Files whose path begins and ends so.
    pub(crate) fn under<'a>(&'a self, folder: &'a str, suffix: &'a str) -> impl Iterator<Item = &'a str> + use<'a> {
        self.files.keys().map(String::as_str).filter(move |path| path.starts_with(folder) && path.ends_with(suffix))
    }

    /// Writes all of them below another folder.
    pub(crate) fn copy_to(&self, folder: &Path) -> Result<(), BuildError> {
        for (path, bytes) in &self.files {
            write(&folder.join(path), bytes)?;
        }
        Ok(())
    }
}

fn passed_over(name: &str, prefix: &str) -> bool {
    name.starts_with('.')
        || name == "__pycache__"
        || (prefix.is_empty() && (LEFT_BEHIND.contains(&name) || name.ends_with(".palyra-skill")))
}

/// Writes a file, and the folders above it; one that has the same content already is left alone, so that compilers see no change.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), BuildError> {
    if fs::read(path).is_ok_and(|present| present == bytes) {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(BuildError::io(parent))?;
    }
    fs::write(path, bytes).map_err(BuildError::io(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            write(&folder.path().join(path), text.as_bytes()).unwrap();
        }
        folder
    }

    #[test]
    fn the_digest_follows_names_and_contents_and_nothing_else() {
        let one = folder(&[("skill.toml", "a"), ("src/skill.c", "b")]);
        let same = folder(&[
            ("src/skill.c", "b"),
            ("skill.toml", "a"),
            ("modules/x.wasm", "built"),
            ("provenance.json", "{}"),
            ("target/x", "y"),
            (".git/HEAD", "z"),
        ]);
        let digest = |folder: &tempfile::TempDir| Sources::read(folder.path()).unwrap().digest();
        assert_eq!(digest(&one), digest(&same));
        for other in [
            folder(&[("skill.toml", "a"), ("src/skill.c", "c")]),
            folder(&[("skill.toml", "a"), ("src/skill2.c", "b")]),
            folder(&[("skill.toml", "a")]),
        ] {
            assert_ne!(digest(&one), digest(&other));
        }
    }

    #[test]
    fn links_are_refused() {
        let folder = folder(&[("skill.toml", "a")]);
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("asset")).unwrap();
        assert!(matches!(Sources::read(folder.path()), Err(BuildError::SourceInvalid { .. })));
    }
}
