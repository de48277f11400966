//! The tools of Palyra: the trait every tool implements, the registry that finds them, and the built-in ones.
//!
//! A tool declares what it may do ([`ToolDeclaration`]) and gets everything it may touch in an [`Invocation`]. Files are reached
//! through a [`Workspace`] that cannot be left; writes go through an [`EffectStore`], so that they happen exactly once across
//! crashes, and can be taken back. This crate executes; it does not decide, journal or talk to models.

mod artifact_read;
mod artifacts;
mod attributes;
mod begin;
mod builtin;
mod cancel;
mod checkpoint;
mod containment;
mod declaration;
mod drafts;
mod effect_steps;
mod effects;
mod entry;
mod error;
mod file_bytes;
mod file_labels;
mod foreign;
mod fs_apply_patch;
mod fs_edit;
mod fs_list;
mod fs_read;
mod fs_search;
mod fs_write;
mod ignore_rules;
mod input;
mod later;
mod name;
mod offered_schema;
mod patch;
mod patch_apply;
mod patch_envelope;
mod patch_unified;
mod place;
mod plan_file;
mod progress;
mod protected;
mod reference;
mod registry;
mod resource;
mod roots;
mod schema;
mod search_hits;
mod text_prefix;
mod third_party;
mod time_now;
mod tool;
mod undo;
mod undo_git;
mod walk;
mod workspace;
mod workspace_path;

pub use artifacts::{Artifacts, MemoryArtifacts};
pub use begin::{BeginReport, Begun};
pub use builtin::builtin;
pub use checkpoint::{
    Changed, Checkpoint, CheckpointCost, CheckpointLimits, CheckpointStore, IdlePeriods, WorkspaceActivity,
    WriterVisibility,
};
pub use containment::{Containment, DecidedAs, Reach};
pub use declaration::{Concurrency, DEFAULT_TIMEOUT, Offering, Repeatability, Sink, ToolDeclaration};
pub use effects::EffectStore;
pub use entry::{EntryFacts, EntryKind};
pub use error::ToolError;
pub use file_bytes::FileBytes;
pub use file_labels::FileLabels;
pub use later::{LaterChange, LaterExecuted, LaterSurvey, Standing, WrittenBy, belongs, later_executed};
pub use name::{EffectId, ToolName};
pub use palyra_common::{EffectScope, SinkKind};
pub use progress::{ReportTaker, ToolProgress, ToolReport};
pub use reference::tool_reference;
pub use registry::{Registry, RegistryBuilder, SharedRegistry};
pub use resource::{CallResource, FileSet, RequestTarget};
pub use roots::Roots;
pub use schema::check as check_schema;
pub use text_prefix::TextPrefix;
pub use third_party::{Remote, ThirdParty, TreeBook, TrustedTrees, TrustedTreesError};
pub use tool::{ArtifactRef, ExecutionFacts, FileChange, Invocation, Tool, ToolLimits, ToolOutput};
pub use undo::{RemainingFile, UndoReport, UndoRequest, UndoSelection, undo};
pub use workspace::Workspace;
pub use workspace_path::WorkspacePath;
