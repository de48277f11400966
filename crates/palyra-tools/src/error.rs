//! Everything a tool, the registry or the workspace can refuse, with the stable code each refusal carries.
//!
//! A tool's error goes to two readers: the model, which should be able to correct its call from the one line alone, and the
//! person, who finds the code in `docs/errors/`. Messages are lower case, name user input in backticks, and keep the advice in
//! the recovery hint.

use std::io;

use palyra_common::{Digest, ErrorCategory, FieldError, StableErrorEnvelope, ToStableError, is_out_of_files};
use thiserror::Error;

/// The error of this crate.
#[derive(Debug, Error)]
pub enum ToolError {
    /// No tool of that name.
    #[error("there is no tool `{name}`")]
    UnknownTool {
        /// The name asked for.
        name: String,
        /// The nearest name that exists.
        suggestion: Option<String>,
    },
    /// Two tools with one name.
    #[error("two tools are called `{name}`")]
    DuplicateTool {
        /// The name given twice.
        name: String,
    },
    /// A name that cannot be a tool's.
    #[error("`{name}` is not a tool name")]
    InvalidToolName {
        /// The text given.
        name: String,
    },
    /// Arguments that do not fit the tool's schema.
    #[error("{}", describe_fields(tool, errors))]
    InvalidArguments {
        /// The tool called.
        tool: String,
        /// What is wrong, field by field.
        errors: Vec<FieldError>,
    },
    /// The workspace cannot be opened.
    #[error("workspace `{path}` {reason}")]
    WorkspaceNotFound {
        /// The directory asked for.
        path: String,
        /// Why not, such as `does not exist`.
        reason: String,
    },
    /// No file handle is left, which says nothing about the file.
    #[error("cannot open `{path}`: the daemon has no file handle left")]
    OutOfFiles {
        /// The path as given.
        path: String,
        /// What the system says.
        source: io::Error,
    },
    /// The directory is not one that the caller may work in, or there is none: the two are not told apart.
    #[error("workspace `{path}` is not available to this principal")]
    WorkspaceNotGranted {
        /// The directory asked for.
        path: String,
    },
    /// The directory contains more than a task should reach.
    #[error("workspace `{path}` contains your whole home directory")]
    WorkspaceTooBroad {
        /// The directory asked for.
        path: String,
    },
    /// The path leads out of the workspace.
    #[error("`{path}` lies outside the workspace")]
    PathOutsideWorkspace {
        /// The path as given.
        path: String,
    },
    /// The path leads to Palyra's own state or configuration.
    #[error("`{path}` belongs to Palyra itself; tools may not touch it")]
    PathProtected {
        /// The path as given.
        path: String,
    },
    /// Nothing there.
    #[error("`{path}` does not exist")]
    PathNotFound {
        /// The path as given.
        path: String,
        /// A sibling with a similar name.
        suggestion: Option<String>,
    },
    /// A directory where a file was needed.
    #[error("`{path}` is a directory")]
    PathIsDirectory {
        /// The path as given.
        path: String,
    },
    /// A file where a directory was needed.
    #[error("`{path}` is not a directory")]
    PathNotDirectory {
        /// The path as given.
        path: String,
    },
    /// A path that no file can have.
    #[error("`{path}` is not a usable path: {reason}")]
    InvalidPath {
        /// The path as given.
        path: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Something is there already.
    #[error("`{path}` exists already")]
    PathExists {
        /// The path as given.
        path: String,
    },
    /// A device, socket or named pipe.
    #[error("`{path}` is a {kind}, not a regular file")]
    SpecialFile {
        /// The path as given.
        path: String,
        /// What it is.
        kind: &'static str,
    },
    /// Not text at all.
    #[error("`{path}` is a binary file")]
    BinaryFile {
        /// The path as given.
        path: String,
    },
    /// Text in another encoding.
    #[error("`{path}` is not UTF-8 text: invalid byte at offset {position}")]
    NotUtf8 {
        /// The path as given.
        path: String,
        /// Offset of the first bad byte.
        position: u64,
    },
    /// More than a tool takes at once.
    #[error("`{path}` has {bytes} bytes; at most {limit} can be changed at once")]
    FileTooLarge {
        /// The path as given.
        path: String,
        /// Its size.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The file is not the one the caller has read.
    #[error("`{path}` has changed: expected {expected}, found {found}")]
    DigestMismatch {
        /// The path as given.
        path: String,
        /// What the caller expected.
        expected: Digest,
        /// What is there: a digest, or `no file`.
        found: String,
    },
    /// A search pattern or glob that cannot be read.
    #[error("`{pattern}` is not a usable pattern: {reason}")]
    InvalidPattern {
        /// The pattern as given.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A patch that cannot be read.
    #[error("the patch cannot be read at line {line}: {reason}")]
    PatchMalformed {
        /// Line of the patch, from 1.
        line: usize,
        /// What is wrong there.
        reason: String,
    },
    /// A patch beyond the limits.
    #[error("the patch has {actual} {unit}; at most {limit} are taken")]
    PatchTooLarge {
        /// How many it has.
        actual: usize,
        /// Of what: `bytes` or `files`.
        unit: &'static str,
        /// The limit.
        limit: usize,
    },
    /// A hunk whose old lines are not in the file.
    #[error("hunk {hunk} of `{path}` does not apply: {reason}")]
    PatchDoesNotApply {
        /// The file.
        path: String,
        /// Which hunk of that file, from 1.
        hunk: usize,
        /// What was expected and what is there.
        reason: String,
    },
    /// The text that an edit replaces is not in the file.
    #[error("the text to replace is not in `{path}`{}", near(*nearest))]
    EditTextNotFound {
        /// The file.
        path: String,
        /// The number of the line most like it. Its text is not told: an error is trusted, the file may not be.
        nearest: Option<usize>,
    },
    /// The text that an edit replaces is in the file more than once.
    #[error("the text to replace occurs {times} times in `{path}`, at lines {}", numbers(lines, *times))]
    EditTextAmbiguous {
        /// The file.
        path: String,
        /// How often it occurs.
        times: usize,
        /// The first lines where it does.
        lines: Vec<usize>,
    },
    /// Another hand changed a file between the plan and its completion.
    #[error("`{path}` was changed by someone else during the edit; the edit was undone")]
    EffectConflict {
        /// The file.
        path: String,
    },
    /// One effect id was used for two different effects.
    #[error("effect `{effect_id}` was started with different arguments")]
    EffectMismatch {
        /// The id.
        effect_id: String,
    },
    /// The record of an effect cannot be read.
    #[error("the record of effect `{effect_id}` is damaged: {reason}")]
    EffectDamaged {
        /// The id.
        effect_id: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Files are not, or not only, what the run made of them.
    #[error("nothing was undone: {}", conflicts(since, during))]
    UndoConflict {
        /// The files that no longer are as the run left them.
        since: Vec<String>,
        /// The files that somebody else changed while a call of the run was at work.
        during: Vec<String>,
        /// How many files could be undone.
        others: usize,
    },
    /// No artifact with that digest.
    #[error("there is no artifact {digest}")]
    ArtifactNotFound {
        /// The digest.
        digest: Digest,
    },
    /// The artifact store failed.
    #[error("the artifact store failed: {0}")]
    Artifacts(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The call was cancelled.
    #[error("the call was cancelled")]
    Cancelled,
    /// The file system refused.
    #[error("permission denied for `{path}`")]
    PermissionDenied {
        /// The path as given.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// No room.
    #[error("there is no room left to write `{path}`")]
    DiskFull {
        /// The path as given.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// Any other failure of the file system.
    #[error("`{path}`: {source}")]
    Io {
        /// The path as given.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// The tool itself failed in a way that is a defect.
    #[error("the tool failed: {0}")]
    Internal(String),
    /// The error of a tool that lives outside this crate, in its own words.
    #[error("{}", .0.message)]
    Custom(Box<StableErrorEnvelope>),
}

impl ToolError {
    /// One wrong argument.
    #[must_use]
    pub fn argument(tool: &str, field: &str, code: &str, message: impl Into<String>) -> Self {
        let error = FieldError { field: field.to_owned(), code: code.to_owned(), message: message.into() };
        Self::InvalidArguments { tool: tool.to_owned(), errors: vec![error] }
    }

    /// What the system said about a path, as one of our refusals.
    #[must_use]
    pub fn io(path: &str, source: io::Error) -> Self {
        use rustix::io::Errno;
        let path = path.to_owned();
        let Some(errno) = Errno::from_io_error(&source) else {
            // The confinement layer reports an escape without an errno of its own.
            return match source.kind() {
                io::ErrorKind::PermissionDenied => Self::PathOutsideWorkspace { path },
                io::ErrorKind::InvalidInput => Self::InvalidPath { path, reason: "it holds a NUL character" },
                _ => Self::Io { path, source },
            };
        };
        match errno {
            Errno::NOENT => Self::PathNotFound { path, suggestion: None },
            Errno::NOTDIR => Self::PathNotDirectory { path },
            Errno::ISDIR => Self::PathIsDirectory { path },
            Errno::LOOP => Self::InvalidPath { path, reason: "its symbolic links go round in circles" },
            Errno::NAMETOOLONG => Self::InvalidPath { path, reason: "it is too long" },
            Errno::XDEV => Self::PathOutsideWorkspace { path },
            Errno::ACCESS | Errno::PERM | Errno::ROFS => Self::PermissionDenied { path, source },
            _ if is_out_of_files(&source) => Self::OutOfFiles { path, source },
            Errno::NOSPC | Errno::DQUOT | Errno::FBIG => Self::DiskFull { path, source },
            _ => Self::Io { path, source },
        }
    }

    /// The stable snake_case code.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::UnknownTool { .. } => "unknown_tool",
            Self::DuplicateTool { .. } => "duplicate_tool",
            Self::InvalidToolName { .. } => "invalid_tool_name",
            Self::InvalidArguments { .. } => "invalid_arguments",
            Self::WorkspaceNotFound { .. } => "workspace_not_found",
            Self::OutOfFiles { .. } => "file_handles_exhausted",
            Self::WorkspaceNotGranted { .. } => "workspace_not_granted",
            Self::WorkspaceTooBroad { .. } => "workspace_too_broad",
            Self::PathOutsideWorkspace { .. } => "path_outside_workspace",
            Self::PathProtected { .. } => "path_protected",
            Self::PathNotFound { .. } => "path_not_found",
            Self::PathIsDirectory { .. } => "path_is_directory",
            Self::PathNotDirectory { .. } => "path_not_directory",
            Self::InvalidPath { .. } => "invalid_path",
            Self::PathExists { .. } => "path_exists",
            Self::SpecialFile { .. } => "special_file",
            Self::BinaryFile { .. } => "binary_file",
            Self::NotUtf8 { .. } => "not_utf8",
            Self::FileTooLarge { .. } => "file_too_large",
            Self::DigestMismatch { .. } => "digest_mismatch",
            Self::InvalidPattern { .. } => "invalid_pattern",
            Self::PatchMalformed { .. } => "patch_malformed",
            Self::PatchTooLarge { .. } => "patch_too_large",
            Self::PatchDoesNotApply { .. } => "patch_does_not_apply",
            Self::EditTextNotFound { .. } => "edit_text_not_found",
            Self::EditTextAmbiguous { .. } => "edit_text_ambiguous",
            Self::EffectConflict { .. } => "effect_conflict",
            Self::EffectMismatch { .. } => "effect_mismatch",
            Self::EffectDamaged { .. } => "effect_damaged",
            Self::UndoConflict { .. } => "undo_conflict",
            Self::ArtifactNotFound { .. } => "artifact_not_found",
            Self::Artifacts(_) => "artifact_store_failed",
            Self::Cancelled => "tool_cancelled",
            Self::PermissionDenied { .. } => "permission_denied",
            Self::DiskFull { .. } => "disk_full",
            Self::Io { .. } => "tool_io_error",
            Self::Internal(_) => "tool_internal_error",
            Self::Custom(envelope) => &envelope.code,
        }
    }

    /// Whether it says that what is at a path can be none of the files that tools write.
    pub(crate) fn is_somebody_elses(&self) -> bool {
        self.is_not_a_file() || matches!(self, Self::FileTooLarge { .. })
    }

    /// Whether it says that a directory, a link or a device stands where a file or one of its directories should be.
    pub(crate) fn is_not_a_file(&self) -> bool {
        matches!(
            self,
            Self::PathIsDirectory { .. }
                | Self::PathNotDirectory { .. }
                | Self::SpecialFile { .. }
                | Self::InvalidPath { .. }
                | Self::PathOutsideWorkspace { .. }
                | Self::PathProtected { .. }
        )
    }

    fn category(&self) -> ErrorCategory {
        match self {
            Self::UnknownTool { .. }
            | Self::WorkspaceNotFound { .. }
            | Self::PathNotFound { .. }
            | Self::ArtifactNotFound { .. } => ErrorCategory::NotFound,
            Self::InvalidToolName { .. }
            | Self::InvalidArguments { .. }
            | Self::PathIsDirectory { .. }
            | Self::PathNotDirectory { .. }
            | Self::InvalidPath { .. }
            | Self::SpecialFile { .. }
            | Self::BinaryFile { .. }
            | Self::NotUtf8 { .. }
            | Self::FileTooLarge { .. }
            | Self::InvalidPattern { .. }
            | Self::PatchMalformed { .. }
            | Self::PatchTooLarge { .. } => ErrorCategory::Validation,
            Self::WorkspaceNotGranted { .. }
            | Self::WorkspaceTooBroad { .. }
            | Self::PathOutsideWorkspace { .. }
            | Self::PathProtected { .. } => ErrorCategory::Policy,
            Self::PathExists { .. }
            | Self::DigestMismatch { .. }
            | Self::PatchDoesNotApply { .. }
            | Self::EditTextNotFound { .. }
            | Self::EditTextAmbiguous { .. }
            | Self::EffectConflict { .. }
            | Self::EffectMismatch { .. }
            | Self::UndoConflict { .. }
            | Self::Cancelled => ErrorCategory::Conflict,
            Self::PermissionDenied { .. } | Self::Io { .. } | Self::Artifacts(_) => ErrorCategory::Dependency,
            Self::DiskFull { .. } | Self::OutOfFiles { .. } => ErrorCategory::Availability,
            Self::DuplicateTool { .. } | Self::EffectDamaged { .. } | Self::Internal(_) => ErrorCategory::Internal,
            Self::Custom(envelope) => envelope.category,
        }
    }

    fn recovery_hint(&self) -> Option<String> {
        let hint = match self {
            Self::UnknownTool { suggestion: Some(name), .. } | Self::PathNotFound { suggestion: Some(name), .. } => {
                return Some(format!("did you mean `{name}`?"));
            }
            Self::UnknownTool { .. } => "use one of the tools that were offered",
            Self::DuplicateTool { .. } => "give every tool its own name",
            Self::InvalidToolName { .. } => "use 1 to 128 characters of a-z, 0-9, `_`, `.` and `-`",
            Self::InvalidArguments { .. } => "correct the named arguments and call again",
            Self::WorkspaceNotFound { .. } => {
                "name a directory that exists, may be entered and is not one of Palyra's own"
            }
            Self::OutOfFiles { .. } => {
                "try again when less is going on, or raise the limit of open files (`ulimit -n`, `LimitNOFILE=`)"
            }
            Self::WorkspaceNotGranted { .. } => {
                "name an existing directory below a root granted to this principal; an owner grants one with `palyra workspaces grant PRINCIPAL DIRECTORY`"
            }
            Self::WorkspaceTooBroad { .. } => {
                "work in a directory below it, or allow it with `palyra workspaces grant PRINCIPAL DIRECTORY` if that is what you want"
            }
            Self::PathOutsideWorkspace { .. } => "use a path relative to the workspace root",
            Self::PathProtected { .. } => "leave it to the person: they can look with the `palyra` command",
            Self::PathNotFound { .. } => "list the directory to see what is there",
            Self::PathIsDirectory { .. } => "use `palyra.fs.list` for a directory",
            Self::PathNotDirectory { .. } => "use a path whose parents are directories",
            Self::InvalidPath { .. } => "use a relative path such as `src/main.rs`",
            Self::PathExists { .. } => "choose another name, or allow replacing it",
            Self::SpecialFile { .. } => "only regular files and directories can be used",
            Self::BinaryFile { .. } => "only text files can be used here",
            Self::NotUtf8 { .. } => "convert the file to UTF-8 first",
            Self::FileTooLarge { .. } => "split the file, or change it with another program",
            Self::DigestMismatch { .. } => "read the file again and base the change on what is there",
            Self::InvalidPattern { .. } => "correct the pattern, or search for literal text",
            Self::PatchMalformed { .. } => "send a unified diff or a `*** Begin Patch` envelope",
            Self::PatchTooLarge { .. } => "split the patch",
            Self::PatchDoesNotApply { .. } => "read the file again and copy its lines exactly",
            Self::EditTextNotFound { .. } => "read the file again and copy the text exactly, whitespace included",
            Self::EditTextAmbiguous { .. } => "add lines around it until it is unique, or set `all` to true",
            Self::EffectConflict { .. } => "read the file again and repeat the edit as a new call",
            Self::EffectMismatch { .. } => "give every effect its own id",
            Self::EffectDamaged { .. } => "compare the files with their last known state before going on",
            Self::UndoConflict { .. } => {
                "undo with `conflicts` set to `skip` to leave these files as they are, or to `overwrite` to undo them, too"
            }
            Self::ArtifactNotFound { .. } => "use a digest that an earlier result named",
            Self::PermissionDenied { .. } => "check the owner and the mode of the file",
            Self::DiskFull { .. } => "free some space and try again",
            Self::Artifacts(_) | Self::Cancelled | Self::Io { .. } | Self::Internal(_) => return None,
            Self::Custom(envelope) => return envelope.recovery_hint.clone(),
        };
        Some(hint.to_owned())
    }
}

impl ToStableError for ToolError {
    fn to_stable(&self) -> StableErrorEnvelope {
        if let Self::Custom(envelope) = self {
            return (**envelope).clone();
        }
        let mut envelope = StableErrorEnvelope::new(self.code(), self.category(), one_line(&self.to_string()));
        envelope.recovery_hint = self.recovery_hint();
        if let Self::UndoConflict { since, during, others } = self {
            let details = serde_json::json!({ "changed_since": since, "changed_by_others": during, "others": others });
            envelope = envelope.details(details);
        }
        if let Self::InvalidArguments { errors, .. } = self {
            envelope.validation_errors.clone_from(errors);
        }
        envelope
    }
}

impl From<StableErrorEnvelope> for ToolError {
    fn from(envelope: StableErrorEnvelope) -> Self {
        Self::Custom(Box::new(envelope))
    }
}

fn describe_fields(tool: &str, errors: &[FieldError]) -> String {
    let errors = errors.iter().map(|error| error.message.as_str()).collect::<Vec<_>>().join("; ");
    format!("arguments of `{tool}`: {errors}")
}

/// A message is one line, whatever a path or a pattern in it holds.
fn one_line(message: &str) -> String {
    let mut line = String::with_capacity(message.len());
    for c in message.chars() {
        if c.is_control() { line.extend(c.escape_default()) } else { line.push(c) }
    }
    line
}

fn near(nearest: Option<usize>) -> String {
    nearest.map(|number| format!("; line {number} is the most similar")).unwrap_or_default()
}

fn numbers(lines: &[usize], times: usize) -> String {
    let named = lines.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if times > lines.len() { format!("{named}, …") } else { named }
}

fn list(paths: &[String]) -> String {
    paths.iter().map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", ")
}

/// Which files stand in the way of an undo, and why.
fn conflicts(since: &[String], during: &[String]) -> String {
    let reasons = [("changed since the run", since), ("changed by someone else during a call", during)];
    let told = reasons.iter().filter(|(_, paths)| !paths.is_empty());
    told.map(|(why, paths)| format!("{why}: {}", list(paths))).collect::<Vec<_>>().join("; ")
}
