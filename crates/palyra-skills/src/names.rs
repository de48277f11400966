//! The names of this crate: skills, publishers and versions.
//!
//! A skill's id is the first part of its tools' names, so it is written in the alphabet of those names and never in a namespace that Palyra itself
//! answers for.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::SkillError;

/// Longest id of a skill and longest name of a publisher: together with a tool's id it stays below the 128 letters of a tool's name.
const MAX_NAME: usize = 64;

/// First parts that would pass for tools of Palyra or of an outside server.
const RESERVED: [&str; 2] = ["palyra", "mcp"];

/// Whether a text is lower-case words of letters, digits and hyphens, joined by dots.
fn is_dotted_name(text: &str) -> bool {
    let word = |word: &str| {
        !word.is_empty()
            && !word.starts_with('-')
            && !word.ends_with('-')
            && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    text.len() <= MAX_NAME && text.starts_with(|first: char| first.is_ascii_lowercase()) && text.split('.').all(word)
}

macro_rules! name_type {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = SkillError;
            fn from_str(text: &str) -> Result<Self, SkillError> {
                Self::try_from(text.to_owned())
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

name_type! {
    /// The id of a skill, such as `acme.echo-http`; its tools are called `<skill_id>.<tool>`.
    SkillId
}

name_type! {
    /// The name a publisher signs under, such as `acme`.
    PublisherName
}

name_type! {
    /// What an operator calls a registry.
    RegistryName
}

impl TryFrom<String> for SkillId {
    type Error = SkillError;
    fn try_from(text: String) -> Result<Self, SkillError> {
        let first = text.split('.').next().unwrap_or_default();
        if RESERVED.contains(&first) {
            return Err(SkillError::name("a skill's id", &text, "this namespace is reserved for Palyra"));
        }
        if !is_dotted_name(&text) {
            return Err(SkillError::name("a skill's id", &text, NAME_RULE));
        }
        Ok(Self(text))
    }
}

impl TryFrom<String> for PublisherName {
    type Error = SkillError;
    fn try_from(text: String) -> Result<Self, SkillError> {
        if !is_dotted_name(&text) {
            return Err(SkillError::name("a publisher's name", &text, NAME_RULE));
        }
        Ok(Self(text))
    }
}

impl TryFrom<String> for RegistryName {
    type Error = SkillError;
    fn try_from(text: String) -> Result<Self, SkillError> {
        if !is_dotted_name(&text) {
            return Err(SkillError::name("a registry's name", &text, NAME_RULE));
        }
        Ok(Self(text))
    }
}

const NAME_RULE: &str = "use up to 64 characters: words of a-z, 0-9 and `-`, joined by dots, starting with a letter";

/// The version of a skill: semantic versioning, compared by its rules.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SkillVersion(pub semver::Version);

/// Longest text of a version; it becomes part of file names.
const MAX_VERSION: usize = 64;

impl FromStr for SkillVersion {
    type Err = SkillError;
    fn from_str(text: &str) -> Result<Self, SkillError> {
        let invalid = |reason: &str| SkillError::name("a version", text, reason);
        if text.len() > MAX_VERSION {
            return Err(invalid("it is longer than 64 characters"));
        }
        let version = semver::Version::parse(text).map_err(|error| invalid(&error.to_string()))?;
        if !version.build.is_empty() {
            // Build metadata does not take part in precedence, so two artifacts could claim to be neither older nor newer.
            return Err(invalid("build metadata (`+…`) is not supported"));
        }
        Ok(Self(version))
    }
}

impl fmt::Display for SkillVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_fit_the_names_of_tools() {
        for good in ["echo", "acme.echo-http", "a1.b2.c3"] {
            assert_eq!(good.parse::<SkillId>().unwrap().as_str(), good);
        }
        let long = "a".repeat(65);
        for bad in [
            "",
            "Echo",
            "1st",
            "a..b",
            ".a",
            "a.",
            "a_b",
            "a-",
            "-a",
            "a/b",
            "é",
            "palyra.fs",
            "mcp.x",
            "palyra",
            &long,
        ] {
            assert!(bad.parse::<SkillId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn versions_are_semantic_and_without_build_metadata() {
        let older: SkillVersion = "1.0.0-rc.1".parse().unwrap();
        let newer: SkillVersion = "1.0.0".parse().unwrap();
        assert!(older < newer);
        for bad in ["1", "1.0", "v1.0.0", "1.0.0+build", "1.0.0 "] {
            assert!(bad.parse::<SkillVersion>().is_err(), "{bad}");
        }
    }
}
