//! Why a skill could not be made or built.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use palyra_common::{ErrorCategory, Retry, StableErrorEnvelope, ToStableError};
use thiserror::Error;

use crate::{Language, MissingToolchain};

/// How much of a compiler's words is kept.
const KEPT_OUTPUT: usize = 8 * 1024;

/// A skill that could not be made or built.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The folder for a new skill is in use.
    #[error("`{}` exists and is not empty", folder.display())]
    FolderInUse {
        /// The folder.
        folder: PathBuf,
    },
    /// No skill can be called so.
    #[error("`{name}` is not a valid skill name: {reason}")]
    NameInvalid {
        /// The name.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// No such guest language.
    #[error("`{name}` is not a guest language; use rust, javascript, python, c or wat")]
    LanguageName {
        /// What was asked for.
        name: String,
    },
    /// The language has no template of this kind.
    #[error("hooks cannot be written in `{language}`")]
    KindUnsupported {
        /// The language.
        language: Language,
    },
    /// The folder does not say which language it is in.
    #[error("cannot tell the language of `{}`: it has {found}", folder.display())]
    LanguageUnknown {
        /// The folder.
        folder: PathBuf,
        /// Which marking files are there.
        found: String,
    },
    /// A file of the skill's folder cannot be worked with.
    #[error("`{}` cannot be used: {reason}", path.display())]
    SourceInvalid {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A compiler is not installed.
    #[error(transparent)]
    ToolchainMissing(#[from] MissingToolchain),
    /// A compiler refused the sources.
    #[error("the {language} compiler failed: {output}")]
    CompileFailed {
        /// The language.
        language: Language,
        /// The last of what it said.
        output: String,
    },
    /// A compiler did not come to an end.
    #[error("the {language} compiler did not finish within {} s", limit.as_secs())]
    CompileTimedOut {
        /// The language.
        language: Language,
        /// How long it had.
        limit: Duration,
    },
    /// What came out of the compiler is not a plugin.
    #[error("the build output is not a valid plugin: {reason}")]
    NotAPlugin {
        /// What is wrong with it.
        reason: String,
    },
    /// What was built imports what Palyra does not offer.
    #[error("the build output imports `{import}`, which Palyra does not provide")]
    ImportRefused {
        /// The import.
        import: String,
    },
    /// A file of test cases cannot be understood.
    #[error("invalid test cases in `{}`: {reason}", path.display())]
    CasesInvalid {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A file could not be read or written.
    #[error("`{}` could not be read or written", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is no place for compilers and what they leave.
    #[error("there is no cache directory: neither XDG_CACHE_HOME nor HOME is set")]
    NoCache,
}

impl BuildError {
    /// Turns an I/O error into one that names the file.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }

    #[expect(clippy::needless_pass_by_value, reason = "handed to `map_err` as it is")]
    pub(crate) fn source(path: impl Into<PathBuf>, reason: impl ToString) -> Self {
        Self::SourceInvalid { path: path.into(), reason: reason.to_string() }
    }

    pub(crate) fn compiler(language: Language, output: &str) -> Self {
        Self::CompileFailed { language, output: last_words(output) }
    }

    #[expect(clippy::needless_pass_by_value, reason = "handed to `map_err` as it is")]
    pub(crate) fn not_a_plugin(reason: impl ToString) -> Self {
        Self::NotAPlugin { reason: reason.to_string() }
    }
}

/// The end of a long output: what matters comes last in all these compilers.
fn last_words(output: &str) -> String {
    let output = output.trim();
    let mut start = output.len().saturating_sub(KEPT_OUTPUT);
    while !output.is_char_boundary(start) {
        start = start.saturating_add(1);
    }
    output.get(start..).unwrap_or_default().to_owned()
}

impl ToStableError for BuildError {
    fn to_stable(&self) -> StableErrorEnvelope {
        use ErrorCategory::{Conflict, Dependency, Internal, NotFound, Policy, Validation};
        let message = self.to_string();
        match self {
            Self::FolderInUse { .. } => StableErrorEnvelope::new("skill_folder_in_use", Conflict, message)
                .hint("choose a folder that does not exist yet or is empty"),
            Self::NameInvalid { .. } => StableErrorEnvelope::new("new_skill_name_invalid", Validation, message)
                .hint("use up to 64 characters: words of a-z, 0-9 and `-`, joined by dots, starting with a letter"),
            Self::LanguageName { .. } => StableErrorEnvelope::new("guest_language_unknown", Validation, message)
                .hint("use rust, javascript, python, c or wat"),
            Self::KindUnsupported { .. } => StableErrorEnvelope::new("guest_kind_unsupported", Validation, message)
                .hint("write hooks in rust, javascript, python or c"),
            Self::LanguageUnknown { .. } => StableErrorEnvelope::new("skill_language_unclear", Validation, message)
                .hint("a skill's folder must contain exactly one of `Cargo.toml` and `src/skill.{js,py,c,wat}`"),
            Self::SourceInvalid { .. } => StableErrorEnvelope::new("skill_source_invalid", Validation, message)
                .hint("compare the folder with one created by `palyra skills new`"),
            Self::ToolchainMissing(missing) => StableErrorEnvelope::new("guest_toolchain_missing", Dependency, message)
                .hint(format!("install it with: {}", missing.install)),
            Self::CompileFailed { .. } => StableErrorEnvelope::new("guest_compile_failed", Validation, message)
                .hint("fix the source code and build again"),
            Self::CompileTimedOut { .. } => StableErrorEnvelope::new("guest_compile_timeout", Dependency, message)
                .hint("build again; the first build on a machine is the slowest")
                .retryable(Retry::MayHelp),
            Self::NotAPlugin { .. } => StableErrorEnvelope::new("guest_component_invalid", Validation, message)
                .hint("export what `wit/world.wit` names, and import only `palyra:host`"),
            Self::ImportRefused { .. } => StableErrorEnvelope::new("guest_import_refused", Policy, message)
                .hint("plugins have no files, sockets or environment: use the interfaces of `palyra:host`"),
            Self::CasesInvalid { .. } => StableErrorEnvelope::new("skill_cases_invalid", Validation, message)
                .hint("see docs/writing-skills.md for an example"),
            Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                StableErrorEnvelope::new("guest_file_missing", NotFound, message).hint("check the path")
            }
            Self::Io { source, .. } => {
                StableErrorEnvelope::new("guest_file_unusable", Dependency, format!("{message}: {source}"))
                    .hint("check the permissions and free disk space")
            }
            Self::NoCache => {
                StableErrorEnvelope::new("guest_cache_unknown", Internal, message).hint("set XDG_CACHE_HOME or HOME")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_a_long_output_is_kept() {
        let output = format!("{}é end", "x".repeat(KEPT_OUTPUT * 2));
        let kept = last_words(&output);
        assert!(kept.ends_with("é end") && kept.len() <= KEPT_OUTPUT, "{}", kept.len());
        assert_eq!(last_words("  short \n"), "short");
    }
}
