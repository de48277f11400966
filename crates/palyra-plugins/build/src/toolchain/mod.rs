//! Which guest compilers are there, and how the missing ones are installed.
//!
//! Rust's compiler is the user's own. The others are kept in Palyra's cache, in the exact version that skills are tested with; nothing is installed without being asked
//! for: what is missing is explained with the command to type.

mod c;
mod javascript;
mod python;
mod rust;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::{BuildError, Language};

pub(crate) use c::Compiler as CCompiler;
pub(crate) use javascript::Componentizer as JavaScriptComponentizer;
pub(crate) use python::Componentizer as PythonComponentizer;
pub(crate) use rust::{Cargo, Library as RustLibrary, TARGET as RUST_TARGET};

/// The versions that skills are tested with; `scripts/guests.sh` installs the same.
pub(crate) const ZIG: &str = "0.17.0";
/// See [`ZIG`].
pub(crate) const COMPONENTIZE_JS: &str = "0.23.0";
/// See [`ZIG`].
pub(crate) const COMPONENTIZE_PY: &str = "0.25.1";

/// A compiler that is not there.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{what} is not installed{}; it is needed to build skills in {language}", found.as_deref().map(|found| format!(" ({found})")).unwrap_or_default())]
pub struct MissingToolchain {
    /// The language that needs it.
    pub language: Language,
    /// What is missing.
    pub what: String,
    /// What is there in its place, if something is.
    pub found: Option<String>,
    /// The command that installs it.
    pub install: String,
}

/// Where guest compilers are kept.
#[derive(Debug, Clone)]
pub struct GuestTools {
    root: PathBuf,
}

/// A compiler that is there.
#[derive(Debug, Clone)]
pub struct Toolchain {
    language: Language,
    versions: BTreeMap<String, String>,
    pub(crate) program: Program,
}

/// How it is started.
#[derive(Debug, Clone)]
pub(crate) enum Program {
    Rust(Cargo),
    JavaScript(JavaScriptComponentizer),
    Python(PythonComponentizer),
    C(CCompiler),
    /// Text is turned into modules by a library of ours.
    Wat,
}

impl Toolchain {
    /// What it compiles.
    #[must_use]
    pub fn language(&self) -> Language {
        self.language
    }

    /// The names and versions of its parts.
    #[must_use]
    pub fn versions(&self) -> &BTreeMap<String, String> {
        &self.versions
    }
}

impl GuestTools {
    /// Compilers in this folder.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Compilers in the user's cache directory.
    pub fn of_user() -> Result<Self, BuildError> {
        let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let cache = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
        Ok(Self::at(cache.ok_or(BuildError::NoCache)?.join("palyra").join("guests")))
    }

    /// The folder they are kept in.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The compiler of a language, or how it is installed.
    pub fn find(&self, language: Language) -> Result<Toolchain, MissingToolchain> {
        let (program, versions) = match language {
            Language::Rust => {
                let (cargo, versions) = Cargo::find()?;
                (Program::Rust(cargo), versions)
            }
            Language::JavaScript => {
                let (componentizer, versions) = JavaScriptComponentizer::find(&self.root)?;
                (Program::JavaScript(componentizer), versions)
            }
            Language::Python => {
                let (componentizer, versions) = PythonComponentizer::find(&self.root)?;
                (Program::Python(componentizer), versions)
            }
            Language::C => {
                let (compiler, versions) = CCompiler::find(&self.root)?;
                (Program::C(compiler), versions)
            }
            Language::Wat => (Program::Wat, BTreeMap::new()),
        };
        Ok(Toolchain { language, versions, program })
    }
}

/// Versions by name, as they stand in provenance files.
type Versions = BTreeMap<String, String>;

fn versions<const N: usize>(pairs: [(&str, String); N]) -> Versions {
    pairs.into_iter().map(|(name, version)| (name.to_owned(), version)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_comes_with_the_command_that_installs_it() {
        let nowhere = GuestTools::at("/nonexistent/guests");
        for (language, word) in [(Language::JavaScript, "npm install"), (Language::Python, "componentize-py==")] {
            let missing = nowhere.find(language).unwrap_err();
            assert_eq!(missing.language, language);
            assert!(missing.install.contains(word) && missing.install.contains("/nonexistent/guests"), "{missing:?}");
        }
        assert!(nowhere.find(Language::Wat).is_ok(), "text needs nothing");
    }

    #[test]
    fn the_script_installs_the_versions_that_are_looked_for() {
        let script = include_str!("../../../../../scripts/guests.sh");
        for line in [
            format!("zig={ZIG}"),
            format!("componentize_js={COMPONENTIZE_JS}"),
            format!("componentize_py={COMPONENTIZE_PY}"),
        ] {
            assert!(script.lines().any(|given| given == line), "scripts/guests.sh lacks the line `{line}`");
        }
    }
}
