//! Where registries are, and the port through which their files come.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use async_trait::async_trait;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::shown;
use crate::{SkillError, files};

/// What came of asking for a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetched {
    /// The whole file.
    Bytes(Vec<u8>),
    /// There is no such file.
    Missing,
    /// It is longer than the limit; reading stopped there.
    TooLarge,
}

/// Brings files of one registry. Whoever implements it stops reading at the limit; whether the bytes are the right ones is never its concern.
#[async_trait]
pub trait RegistryFetch: Send + Sync {
    /// The file at a path below the registry's place, of at most `limit` bytes; the error says why it could not be had.
    async fn fetch(&self, path: &str, limit: u64) -> Result<Fetched, String>;
}

/// A registry in a directory of this machine.
#[derive(Debug, Clone)]
pub struct DirectoryRegistry(PathBuf);

impl DirectoryRegistry {
    /// The registry in this directory.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self(directory.into())
    }
}

#[async_trait]
impl RegistryFetch for DirectoryRegistry {
    async fn fetch(&self, path: &str, limit: u64) -> Result<Fetched, String> {
        let file = self.0.join(path);
        let read = move || match std::fs::metadata(&file) {
            Ok(metadata) if metadata.len() > limit => Ok(Fetched::TooLarge),
            _ => files::read(&file, limit)
                .map(|bytes| bytes.map_or(Fetched::Missing, Fetched::Bytes))
                .map_err(|error| error.to_string()),
        };
        tokio::task::spawn_blocking(read).await.map_err(|error| format!("reading failed: {error}"))?
    }
}

/// Where a registry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RegistryLocation {
    /// A directory of this machine, also written `file:///…`.
    Directory(PathBuf),
    /// An address, `https://…/`, with a slash at its end.
    Https(String),
}

impl FromStr for RegistryLocation {
    type Err = SkillError;
    fn from_str(text: &str) -> Result<Self, SkillError> {
        let invalid = |reason| Err(SkillError::RegistryLocation { location: shown(text), reason });
        if text.is_empty() || text.chars().any(char::is_control) {
            return invalid("it is empty or contains a control character");
        }
        if let Some(rest) = text.strip_prefix("https://") {
            let host = rest.split('/').next().unwrap_or_default();
            if host.is_empty()
                || rest.contains(['?', '#', '@', '\\', ' ', '%'])
                || rest.split('/').any(|part| part == "..")
            {
                return invalid("a URL must have a host and a path, and no user, query, fragment or escapes");
            }
            return Ok(Self::Https(format!("https://{}/", rest.trim_end_matches('/'))));
        }
        let path = match text.split_once(':') {
            Some(("file", rest)) => match rest.strip_prefix("//") {
                Some(path) if path.starts_with('/') => path,
                _ => return invalid("a `file:` URL must look like `file:///path`"),
            },
            Some(("http", _)) => {
                return invalid("plain `http` is not supported");
            }
            Some((scheme, _)) if !scheme.contains('/') => return invalid("its scheme is not supported"),
            _ => text,
        };
        Ok(Self::Directory(Path::new(path).to_owned()))
    }
}

impl fmt::Display for RegistryLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(path) => path.display().fmt(f),
            Self::Https(url) => f.write_str(url),
        }
    }
}

impl Serialize for RegistryLocation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RegistryLocation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_and_others_refused() {
        let place = |text: &str| text.parse::<RegistryLocation>();
        assert_eq!(place("https://a.b/x").unwrap(), RegistryLocation::Https("https://a.b/x/".to_owned()));
        assert_eq!(place("file:///srv/skills").unwrap(), RegistryLocation::Directory("/srv/skills".into()));
        assert_eq!(place("./skills").unwrap(), RegistryLocation::Directory("./skills".into()));
        for bad in [
            "",
            "http://a.b",
            "ftp://a.b",
            "https://",
            "https://u@a.b",
            "https://a.b/?x",
            "https://a.b/../c",
            "file:x",
            "file://host/x",
            "a\0b",
        ] {
            assert!(place(bad).is_err(), "{bad}");
        }
    }
}
