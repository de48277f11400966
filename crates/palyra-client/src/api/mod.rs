//! The wire types of the daemon's HTTP API, one file per resource.
//!
//! The daemon answers with these types and the client reads them, so there is no second description that could drift. What
//! a caller sends is named `…Params` and rejects unknown fields: a misspelt limit must not silently mean "no limit". What the
//! daemon answers is named `…Response` or `…View` and tolerates fields that a newer daemon adds.
//!
//! Events of a run's tape are not here: they are `RunStreamEvent` of `palyra-common`, which every transport shares.

mod agents;
mod approvals;
mod attachments;
mod auxiliary;
mod bindings;
mod canvases;
mod config;
mod context;
mod daemon;
mod devices;
mod error;
mod events;
mod files;
mod health;
mod hooks;
mod inventory;
mod journal;
mod messages;
mod models;
mod principal;
mod recall;
mod run_control;
mod runs;
mod sessions;
mod skills;
mod tokens;
mod usage;
mod workspaces;

pub mod paths;

pub use agents::{AgentView, ListAgentsParams, ListAgentsResponse, RemoveAgentResponse, SetAgentParams};
pub use approvals::{
    ApprovalAnswer, ApprovalState, ApprovalView, DecideApprovalParams, DecideApprovalResponse, GetApprovalParams,
    ListApprovalsParams, ListApprovalsResponse, ListPatternsParams, ListPatternsResponse, PatternView,
    RequestApprovalParams,
};
pub use attachments::{AddAttachmentParams, AddAttachmentsResponse, AttachmentParams};
pub use auxiliary::{AuxiliaryTaskView, ListAuxiliaryParams, ListAuxiliaryResponse, RunAuxiliaryParams};
pub use bindings::{BindingPlace, BindingView, ListBindingsParams, ListBindingsResponse, SetBindingParams};
pub use canvases::{
    CanvasAccess, CanvasChangeView, CanvasDetail, CanvasLinkResponse, CanvasView, LinkCanvasParams, ListCanvasesParams,
    ListCanvasesResponse, SubmitCanvasParams, SubmitCanvasResponse, WatchCanvasParams,
};
pub use config::{ConfigEntryView, ConfigResponse};
pub use context::{ContextSegmentView, OfferedToolView, RunContextParams, RunContextResponse, WireCostView};
pub use daemon::StopDaemonResponse;
pub use devices::{CertificateView, DeviceView, ListDevicesResponse};
pub use error::ErrorResponse;
pub use events::{AppendEventParams, AppendEventResponse};
pub use files::{
    EndorseFileParams, EndorsedFileView, FileLabelView, InstructionFileView, ListFileLabelsParams,
    ListFileLabelsResponse,
};
pub use health::{BriefHealthResponse, HealthResponse, ProviderView, ReadyResponse};
pub use hooks::{HookView, ListHooksResponse, SetHookParams};
pub use inventory::{ListPoliciesResponse, ListToolsResponse, PolicyView, ToolView};
pub use journal::{
    BackupJournalParams, BackupJournalResponse, ExportJournalParams, JournalRecordView, ProblemView, TailJournalParams,
    VerifyLine, VerifyProgress, VerifyReport,
};
pub use messages::{RouteDisposition, RouteMessageParams, RouteMessageResponse};
pub use models::{
    ExplainModelsParams, ExplainModelsResponse, ModelChoiceView, ModelKeyView, ModelStepView, ModelTargetView,
    ModelTestView, ModelTroubleView, ModelsStatusResponse, OfferedModelView, OfferedModelsParams,
    OfferedModelsResponse, TestModelsParams, TestModelsResponse,
};
pub use principal::{ActiveRunView, ConsoleLoginParams, ConsoleSessionResponse, PrincipalView, ReconnectResponse};
pub use recall::{RecallParams, RecallResponse, RecalledView};
pub use run_control::{
    AbortRunParams, ClientResultParams, DeliverResultsParams, RemainingFileView, ReplayDifference, ReplayReport,
    ResumeRunParams, RunInputParams, UndoAction, UndoResponse, UndoRunParams, UndoneFile,
};
pub use runs::{
    CallNotRunView, ClientToolParams, CreateRunParams, EditEnvelopeParams, ExchangeParams, FileChangeKind,
    FileChangeView, IntentView, ListRunsParams, ListRunsResponse, PlanStepView, ReducedIsolationView, RunAgentView,
    RunDetail, RunLimitsParams, RunTapeParams, RunTimings, RunUsage, RunView, UnavailableToolsView,
};
pub use sessions::{
    ArchiveSessionParams, ArchivedFilter, CompactionView, ExplainSessionResponse, ExportFormat, ExportSessionParams,
    ExportSessionResponse, ForkSessionParams, InputFate, ListSessionsParams, ListSessionsResponse, LoadSessionParams,
    NewSessionParams, QueuedInputView, RenameSessionParams, ResolveSessionParams, ResolveSessionResponse,
    ResumeSessionResponse, RevertCompactionResponse, SessionDetail, SessionInputParams, SessionInputResponse,
    SessionQueueResponse, SessionSettingsView, SessionStepView, SessionView, SetSessionModeParams, WithdrawInputParams,
};
pub use skills::{
    CallSkillParams, CallSkillResponse, ChangeSkillParams, ConfigureSkillParams, ImportStatementParams,
    ImportStatementResponse, InstallSkillParams, ListPublishersResponse, ListSkillsResponse, PublisherView,
    RevokeKeyParams, RevokeKeyResponse, SkillDetail, SkillFindingView, SkillPowersView, SkillSecretView, SkillView,
    TrustPublisherParams, UploadSkillParams, UploadSkillResponse,
};
pub use tokens::{CreateTokenParams, ListTokensResponse, RotateTokenParams, TokenSecretResponse, TokenView};
pub use usage::{BudgetView, UsageParams, UsageResponse};
pub use workspaces::{ListWorkspacesResponse, WorkspaceGrantParams, WorkspaceGrantView};

/// Media type of streams that carry one JSON document per line; an empty line is a heartbeat.
pub const NDJSON: &str = "application/x-ndjson";
