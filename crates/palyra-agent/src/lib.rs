//! The durable engine of Palyra.
//!
//! - [`machine`]: the pure run machine. State and input in, state and actions out.
//! - [`Engine`]: all runs of a daemon; each has a driver that journals first and acts afterwards.
//! - [`tape`]: a run's records, one to one with the events that surfaces follow.
//! - [`replay`](mod@replay): feeding a tape again, for recovery and for proof.
//! - [`Decide`]: the one port every effect passes.
//! - [`context`]: what the model gets to see.
//! - [`HookRunner`]: the port behind which hooks look at runs, and the bindings that name them.
//! - [`AuxiliaryInput`]: small jobs for a model without tools, each with a fixed contract.

pub mod context;
pub mod machine;
pub mod replay;
pub mod tape;

mod agents;
mod auxiliary;
mod canonical;
mod canvas;
mod decide;
mod engine;
mod error;
mod hooks;
mod own_tools;
mod projections;
mod prompt;
mod session;
mod spec;
mod started_with;

pub use agents::{AgentProfile, AgentRow, RunAgent};
pub use auxiliary::{
    AuxiliaryError, AuxiliaryInput, AuxiliaryOutput, ClassificationInput, ExtractionInput, Judgement, MAX_IMAGE_BYTES,
    ObjectiveJudgeInput, RankedRecall, RecallCandidate, RecallEvidence, RecallSearchInput, SingleLabel, Summary,
    SummaryInput, Verdict as ObjectiveVerdict, VisionInput, VisualObservation, image_media_type,
};
pub use canonical::canonical_json;
pub use canvas::{CanvasDrawn, CanvasUpdate};
pub use decide::{AnswerProposal, Decide, PolicyDecider, Proposal, Verdict};
pub use engine::{
    Answer, ApprovalExport, Attention, AuxiliaryDone, CLOCK_STEPPED, CallExport, CallNotRun, CallOutcomeExport,
    CanvasFollower, CanvasNews, CanvasSubmission, ClientCall, ClientResult, ClockStepped, CompactionPlan,
    CompactionReverted, ContextSegment, ContextView, Endorsement, Engine, EngineOptions, ExchangeExport,
    ExchangeOutline, Followed, GivenExchange, GivenFile, HookDispatch, InputWhereabouts, ModelTests, NewAuxiliaryTask,
    NewRun, NewSession, News, NoDiscovery, OfferedTool, PatternFilter, ProjectFile, RankedBy, RecallQuery, Recalled,
    RecalledPiece, ReducedIsolation, Resolved, Resumption, RunCost, RunDetails, RunEnded, RunExport, Safety,
    SegmentKind, SessionAccount, SessionEvent, SessionEventKind, SessionExport, SessionInput, Spending, Submitted,
    TapeFollower, Timings, ToolDiscovery, UnavailableSource, UndoOptions, UndoneRun, WireCost, WithheldInstructions,
    WorkspaceRoots, core_prompt_tokens,
};
#[cfg(feature = "testing")]
pub use engine::{JudgedProposal, UnrecordedEngine, UnrecordedRun};
pub use error::AgentError;
pub use hooks::{
    HookAnswer, HookBindingRecord, HookFailure, HookFailureMode, HookOccurrence, HookResult, HookRunner, HookSaid,
    HookSwitch, HooksAnswered, NoHooks, allows as hook_event_allows,
};
pub use own_tools::{Plan, PlanStep, StepStatus, engine_tools};
pub use palyra_flow::{Bound, Mandate, Standing};
pub use projections::{
    ApprovalFilter, ApprovalPage, ApprovalRow, Archived, AuxiliaryFilter, AuxiliaryRow, CanvasFilter, CanvasRow,
    EndorsedFile, HookBindingRow, LabelledFile, PatternRow, QuarantinedUsage, QueuedInput, RunFilter, RunRow, Said,
    SessionFilter, SessionRow, projections,
};
pub use session::{ArchiveState, Compaction, ForkPoint, ForkedFrom, SessionSettings, Taken};
pub use spec::{
    ClientTool, ContextItem, Exchange, Idempotency, ImageRef, MACHINE_VERSION, MAIN_AGENT, ModelChoice, Objective,
    OutsideSender, RunLimits, RunSpec, ToolSelection,
};
pub use started_with::{Actor, StartedWith, WorkspaceAuthority};
