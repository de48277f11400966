//! What can go wrong with policies, and how it looks to the outside.
//!
//! INVARIANT: no variant means "allow". Whoever receives one refuses or denies.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use palyra_common::{ErrorCategory, StableErrorEnvelope, ToStableError};
use thiserror::Error;

use crate::Place;

/// A failure of policies.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// The text is not Cedar.
    #[error("{at}: {reason}")]
    Malformed {
        /// Where.
        at: Place,
        /// What the parser said.
        reason: String,
    },
    /// The policy contradicts the schema.
    #[error("{at}: {reason}")]
    Invalid {
        /// Where.
        at: Place,
        /// What the validator said.
        reason: String,
    },
    /// The policy names an entity type, an enumerated value or an action that the schema does not have.
    #[error("{at}: {reason}")]
    UnknownEntity {
        /// Where.
        at: Place,
        /// What the validator said.
        reason: String,
    },
    /// There are no includes; a directory is loaded whole.
    #[error("{at}: policies cannot include other files")]
    Include {
        /// Where.
        at: Place,
    },
    /// A file is larger than a person would write.
    #[error("`{file}` is larger than {limit} bytes")]
    FileTooLarge {
        /// The file.
        file: String,
        /// The limit.
        limit: u64,
    },
    /// All files together are too much.
    #[error("the policies exceed {limit} {unit}")]
    SetTooLarge {
        /// The limit.
        limit: u64,
        /// What is counted.
        unit: &'static str,
    },
    /// The file is not text.
    #[error("{at}: not valid UTF-8")]
    NotUtf8 {
        /// The line with the first bad byte.
        at: Place,
    },
    /// The file or directory cannot be read.
    #[error("cannot read `{path}`: {source}", path = path.display())]
    Unreadable {
        /// What could not be read.
        path: PathBuf,
        /// Why.
        source: Arc<io::Error>,
    },
    /// There is nothing at the path.
    #[error("`{path}` does not exist", path = path.display())]
    NotFound {
        /// The path.
        path: PathBuf,
    },
    /// A directory where a file is wanted, the other way round, or something that is neither.
    #[error("`{path}` is {found}, not {wanted}", path = path.display())]
    WrongKind {
        /// The path.
        path: PathBuf,
        /// What is there.
        found: &'static str,
        /// What is wanted.
        wanted: &'static str,
    },
    /// A file that is neither policy, grants nor tests.
    #[error("`{path}` is not a policy file", path = path.display())]
    UnknownFile {
        /// The file.
        path: PathBuf,
    },
    /// Two policies have the same id.
    #[error("{at}: the policy id `{id}` is already used at {first}")]
    DuplicateId {
        /// The id.
        id: String,
        /// The second use.
        at: Place,
        /// The first use.
        first: Place,
    },
    /// A policy without a usable id.
    #[error("{at}: {reason}")]
    BadId {
        /// Where.
        at: Place,
        /// What is wrong.
        reason: String,
    },
    /// An annotation that Palyra does not know or cannot use there.
    #[error("{at}: {reason}")]
    BadAnnotation {
        /// Where.
        at: Place,
        /// What is wrong.
        reason: String,
    },
    /// A grant names a policy that has nothing to fill in.
    #[error("grant `{grant}` names `{template}`, a policy without slots")]
    TemplateWithoutSlot {
        /// The grant.
        grant: String,
        /// What it names.
        template: String,
    },
    /// A grant names a template that does not exist.
    #[error("grant `{grant}` names the template `{template}`, which does not exist")]
    UnknownTemplate {
        /// The grant.
        grant: String,
        /// What it names.
        template: String,
    },
    /// A grant that does not fit its template.
    #[error("grant `{grant}`: {reason}")]
    BadGrant {
        /// The grant.
        grant: String,
        /// What is wrong.
        reason: String,
    },
    /// The file of grants cannot be understood.
    #[error("{at}: {reason}")]
    BadGrantsFile {
        /// Where.
        at: Place,
        /// What is wrong.
        reason: String,
    },
    /// A request that does not fit the schema.
    #[error("the request cannot be decided: {reason}")]
    BadRequest {
        /// What is wrong.
        reason: String,
    },
    /// A pattern that nobody may agree to.
    #[error("the pattern cannot be allowed: {reason}")]
    BadPattern {
        /// What is wrong.
        reason: String,
    },
    /// A file of test cases that cannot be understood.
    #[error("{at}: {reason}")]
    BadTestFile {
        /// Where.
        at: Place,
        /// What is wrong.
        reason: String,
    },
    /// The embedded schema or index is broken: a defect of Palyra.
    #[error("internal error in the policy engine: {reason}")]
    Broken {
        /// What is wrong.
        reason: String,
    },
}

impl PolicyError {
    #[expect(clippy::needless_pass_by_value, reason = "handed to `map_err` as it is")]
    pub(crate) fn broken(reason: impl ToString) -> Self {
        Self::Broken { reason: one_line(&reason.to_string()) }
    }

    #[expect(clippy::needless_pass_by_value, reason = "handed to `map_err` as it is")]
    pub(crate) fn bad_request(reason: impl ToString) -> Self {
        Self::BadRequest { reason: one_line(&reason.to_string()) }
    }

    #[expect(clippy::needless_pass_by_value, reason = "handed to `map_err` as it is")]
    pub(crate) fn bad_pattern(reason: impl ToString) -> Self {
        Self::BadPattern { reason: one_line(&reason.to_string()) }
    }

    /// Why a path cannot be read. A link to nowhere is there and cannot be read.
    pub(crate) fn unreadable(path: impl Into<PathBuf>, source: io::Error) -> Self {
        let path = path.into();
        let is_missing = matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
        if is_missing && path.symlink_metadata().is_err() {
            return Self::NotFound { path };
        }
        Self::Unreadable { path, source: Arc::new(source) }
    }

    /// Where in a file the fault is, if it is in a file.
    #[must_use]
    pub fn place(&self) -> Option<&Place> {
        match self {
            Self::Malformed { at, .. }
            | Self::Invalid { at, .. }
            | Self::UnknownEntity { at, .. }
            | Self::Include { at }
            | Self::NotUtf8 { at }
            | Self::DuplicateId { at, .. }
            | Self::BadId { at, .. }
            | Self::BadAnnotation { at, .. }
            | Self::BadGrantsFile { at, .. }
            | Self::BadTestFile { at, .. } => Some(at),
            _ => None,
        }
    }
}

/// Libraries explain themselves over several lines; a message here is one.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl ToStableError for PolicyError {
    fn to_stable(&self) -> StableErrorEnvelope {
        use ErrorCategory::{Internal, NotFound, Policy, Validation};
        let (code, category, hint) = match self {
            Self::Malformed { .. } => {
                ("policy_malformed", Validation, "fix the line; the policies in force are unchanged")
            }
            Self::Invalid { .. } => ("policy_invalid", Validation, "compare the policy with the published schema"),
            Self::UnknownEntity { .. } => {
                ("policy_unknown_entity", Validation, "use a type, value or action from the published schema")
            }
            Self::Include { .. } => {
                ("policy_include", Validation, "put the other file into the same directory; every file in it is loaded")
            }
            Self::FileTooLarge { .. } => ("policy_file_too_large", Validation, "split the file"),
            Self::SetTooLarge { .. } => {
                ("policy_set_too_large", Validation, "use templates with grants instead of copies")
            }
            Self::NotUtf8 { .. } => ("policy_not_utf8", Validation, "save the file as UTF-8"),
            Self::Unreadable { .. } => (
                "policy_unreadable",
                Validation,
                "check its permissions, those of its parent directories, and symbolic links",
            ),
            Self::NotFound { .. } => (
                "policy_not_found",
                NotFound,
                "check the spelling; `palyra config get policy.directory` prints the configured directory",
            ),
            Self::WrongKind { .. } => (
                "policy_wrong_kind",
                Validation,
                "policies are a directory or one `*.cedar` file; tests are `*.policy-test.toml` files",
            ),
            Self::UnknownFile { .. } => (
                "policy_file_unknown",
                Validation,
                "the directory may contain only `*.cedar`, `*.policy-test.toml`, `grants.toml` and `*.md`",
            ),
            Self::DuplicateId { .. } => ("policy_duplicate_id", Validation, "give one of them another `@id`"),
            Self::BadId { .. } => ("policy_id_invalid", Validation, "give the policy an `@id(\"lower_case_name\")`"),
            Self::BadAnnotation { .. } => (
                "policy_annotation_invalid",
                Validation,
                "the annotations are @id, @approval, @guard, @reason_person, @reason_model and @note",
            ),
            Self::TemplateWithoutSlot { .. } => {
                ("policy_template_without_slot", Validation, "name a policy with `?principal` or `?resource`")
            }
            Self::UnknownTemplate { .. } => ("policy_template_unknown", Validation, "use the template's full id"),
            Self::BadGrant { .. } | Self::BadGrantsFile { .. } => {
                ("policy_grant_invalid", Validation, "give exactly the slots of the template, as `Type::\"id\"`")
            }
            Self::BadRequest { .. } => {
                ("policy_request_invalid", Policy, "a request that does not match the schema is denied")
            }
            Self::BadPattern { .. } => {
                ("policy_pattern_invalid", Validation, "approve the call once, or allow a narrower pattern")
            }
            Self::BadTestFile { .. } => {
                ("policy_test_malformed", Validation, "compare the file with the shipped tests")
            }
            Self::Broken { .. } => {
                ("policy_engine_broken", Internal, "please report this; nothing is permitted until it is resolved")
            }
        };
        StableErrorEnvelope::new(code, category, self.to_string()).hint(hint)
    }
}
