//! The languages that skills are written in, and how a folder says which one it is.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::BuildError;

/// One guest language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Language {
    /// Rust with `palyra-plugins-sdk`.
    Rust,
    /// JavaScript, inside a component that carries its interpreter.
    JavaScript,
    /// Python, inside a component that carries its interpreter.
    Python,
    /// C with `palyra.h`.
    C,
    /// WebAssembly text, as modules or components.
    Wat,
}

impl Language {
    /// All of them.
    pub const ALL: &'static [Self] = &[Self::Rust, Self::JavaScript, Self::Python, Self::C, Self::Wat];

    /// The name on the command line and in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::JavaScript => "javascript",
            Self::Python => "python",
            Self::C => "c",
            Self::Wat => "wat",
        }
    }

    /// The file that a folder of this language has and no folder of another.
    pub(crate) const fn marker(self) -> &'static str {
        match self {
            Self::Rust => "Cargo.toml",
            Self::JavaScript => "src/skill.js",
            Self::Python => "src/skill.py",
            Self::C => "src/skill.c",
            Self::Wat => "src/skill.wat",
        }
    }

    /// The language of the skill in a folder.
    pub fn of(folder: &Path) -> Result<Self, BuildError> {
        let found: Vec<Self> =
            Self::ALL.iter().copied().filter(|language| folder.join(language.marker()).is_file()).collect();
        match found.as_slice() {
            [one] => Ok(*one),
            [] => Err(BuildError::LanguageUnknown {
                folder: folder.to_owned(),
                found: format!("none of {}", markers(Self::ALL)),
            }),
            several => Err(BuildError::LanguageUnknown {
                folder: folder.to_owned(),
                found: format!("all of {}", markers(several)),
            }),
        }
    }
}

fn markers(languages: &[Language]) -> String {
    let names: Vec<String> = languages.iter().map(|language| format!("`{}`", language.marker())).collect();
    names.join(", ")
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Language {
    type Err = BuildError;

    fn from_str(text: &str) -> Result<Self, BuildError> {
        match text {
            "js" => return Ok(Self::JavaScript),
            "py" => return Ok(Self::Python),
            "rs" => return Ok(Self::Rust),
            _ => {}
        }
        Self::ALL
            .iter()
            .copied()
            .find(|language| language.name() == text)
            .ok_or_else(|| BuildError::LanguageName { name: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for language in Language::ALL {
            assert_eq!(language.name().parse::<Language>().unwrap(), *language);
        }
        assert!("cobol".parse::<Language>().is_err());
    }

    #[test]
    fn a_folder_is_of_one_language() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(Language::of(folder.path()), Err(BuildError::LanguageUnknown { .. })));
        std::fs::create_dir(folder.path().join("src")).unwrap();
        std::fs::write(folder.path().join("src/skill.c"), "").unwrap();
        assert_eq!(Language::of(folder.path()).unwrap(), Language::C);
        std::fs::write(folder.path().join("Cargo.toml"), "").unwrap();
        assert!(matches!(Language::of(folder.path()), Err(BuildError::LanguageUnknown { .. })));
    }
}
