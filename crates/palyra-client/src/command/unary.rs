//! Commands that are answered once.

use palyra_common::{
    AcpCommand, ApprovalId, AuxiliaryTaskId, BindingId, CanvasId, CommandEffect, DeviceId, RunId, SessionId,
    StableErrorEnvelope, TokenScope,
};
use serde::Serialize;
use serde_json::Value;

use super::about::{AgentName, HookName, NoParams, PublisherName, RecordSeq, SkillName, TokenName};
use super::catalogue::{catalogue, params_type, parse_body, parse_query, parse_value, target_field, target_of};
use super::{CommandSpec, HttpMethod};
use crate::api::{
    AbortRunParams, AgentView, AppendEventParams, AppendEventResponse, ApprovalView, ArchiveSessionParams,
    AuxiliaryTaskView, BackupJournalParams, BackupJournalResponse, BindingView, CallSkillParams, CallSkillResponse,
    CanvasDetail, CanvasLinkResponse, CanvasView, ChangeSkillParams, CompactionView, ConfigResponse,
    ConfigureSkillParams, CreateRunParams, CreateTokenParams, DecideApprovalParams, DecideApprovalResponse,
    DeliverResultsParams, DeviceView, EditEnvelopeParams, ExplainModelsParams, ExplainModelsResponse,
    ExplainSessionResponse, ExportSessionParams, ExportSessionResponse, ForkSessionParams, GetApprovalParams, HookView,
    InstallSkillParams, LinkCanvasParams, ListAgentsParams, ListAgentsResponse, ListApprovalsParams,
    ListApprovalsResponse, ListAuxiliaryParams, ListAuxiliaryResponse, ListBindingsParams, ListBindingsResponse,
    ListCanvasesParams, ListCanvasesResponse, ListDevicesResponse, ListHooksResponse, ListPatternsParams,
    ListPatternsResponse, ListPoliciesResponse, ListPublishersResponse, ListRunsParams, ListRunsResponse,
    ListSessionsParams, ListSessionsResponse, ListSkillsResponse, ListTokensResponse, ListToolsResponse,
    LoadSessionParams, ModelsStatusResponse, NewSessionParams, OfferedModelsParams, OfferedModelsResponse,
    PrincipalView, PublisherView, RecallParams, RecallResponse, ReconnectResponse, RemoveAgentResponse,
    RenameSessionParams, ReplayReport, RequestApprovalParams, ResolveSessionParams, ResolveSessionResponse,
    ResumeRunParams, ResumeSessionResponse, RevertCompactionResponse, RotateTokenParams, RouteMessageParams,
    RouteMessageResponse, RunAuxiliaryParams, RunContextParams, RunContextResponse, RunDetail, RunInputParams, RunView,
    SessionDetail, SessionInputParams, SessionInputResponse, SessionQueueResponse, SessionSettingsView, SessionView,
    SetAgentParams, SetBindingParams, SetHookParams, SetSessionModeParams, SkillDetail, SkillView, StopDaemonResponse,
    SubmitCanvasParams, SubmitCanvasResponse, TestModelsParams, TestModelsResponse, TokenSecretResponse, TokenView,
    TrustPublisherParams, UndoResponse, UndoRunParams, UploadSkillParams, UploadSkillResponse, UsageParams,
    UsageResponse, WithdrawInputParams, paths,
};
use crate::api::{AddAttachmentParams, AttachmentParams};
use crate::api::{EndorseFileParams, EndorsedFileView, ListFileLabelsParams, ListFileLabelsResponse};
use crate::api::{ImportStatementParams, ImportStatementResponse, RevokeKeyParams, RevokeKeyResponse};
use crate::api::{ListWorkspacesResponse, WorkspaceGrantParams, WorkspaceGrantView};

catalogue! {
    /// A command that is answered once.
    commands Command;
    /// What a [`Command`] came to.
    outcomes Outcome;
    table COMMANDS;

    SessionNew [] NewSessionParams => SessionView, Change, SessionsWrite, Post paths::SESSIONS;
    SessionResolve [] ResolveSessionParams => ResolveSessionResponse, Change, SessionsWrite, Post paths::SESSION_RESOLVE;
    SessionList [] ListSessionsParams => ListSessionsResponse, Read, SessionsRead, Get paths::SESSIONS;
    SessionLoad [SessionId] LoadSessionParams => SessionDetail, Read, SessionsRead, Get paths::SESSION;
    SessionResume [SessionId] NoParams => ResumeSessionResponse, Read, SessionsRead, Get paths::SESSION_RESUME;
    SessionRename [SessionId] RenameSessionParams => SessionView, Change, SessionsWrite, Post paths::SESSION_RENAME;
    SessionArchive [SessionId] ArchiveSessionParams => SessionView, Change, SessionsWrite, Post paths::SESSION_ARCHIVE;
    SessionFork [SessionId] ForkSessionParams => SessionView, Change, SessionsWrite, Post paths::SESSION_FORK;
    SessionExport [SessionId] ExportSessionParams => ExportSessionResponse, Read, SessionsRead, Get paths::SESSION_EXPORT;
    SessionExplain [SessionId] NoParams => ExplainSessionResponse, Read, SessionsRead, Get paths::SESSION_EXPLAIN;
    SessionModeSet [SessionId] SetSessionModeParams => SessionView, Change, SessionsWrite, Post paths::SESSION_MODE;
    SessionConfigSet [SessionId] SessionSettingsView => SessionView, Change, SessionsWrite, Post paths::SESSION_CONFIG;
    SessionCompactPreview [SessionId] NoParams => CompactionView, Read, SessionsRead, Get paths::SESSION_COMPACTION;
    SessionCompactApply [SessionId] NoParams => CompactionView, Change, SessionsWrite, Post paths::SESSION_COMPACTION;
    SessionCompactRevert [SessionId] NoParams => RevertCompactionResponse, Change, SessionsWrite, Post paths::SESSION_COMPACTION_REVERT;
    SessionRecall [] RecallParams => RecallResponse, Change, ModelsUse, Post paths::SESSION_RECALL;
    SessionInput [SessionId] SessionInputParams => SessionInputResponse, Change, RunsWrite, Post paths::SESSION_INPUT;
    SessionQueue [SessionId] NoParams => SessionQueueResponse, Read, SessionsRead, Get paths::SESSION_INPUT;
    SessionInputWithdraw [SessionId] WithdrawInputParams => SessionQueueResponse, Change, RunsWrite, Post paths::SESSION_WITHDRAW;

    RunCreate [] CreateRunParams => RunView, Change, RunsWrite, Post paths::RUNS;
    RunList [] ListRunsParams => ListRunsResponse, Read, RunsRead, Get paths::RUNS;
    RunGet [RunId] NoParams => RunDetail, Read, RunsRead, Get paths::RUN;
    RunAbort [RunId] AbortRunParams => RunView, Change, RunsWrite, Post paths::RUN_ABORT;
    RunPause [RunId] NoParams => RunView, Change, RunsWrite, Post paths::RUN_PAUSE;
    RunResume [RunId] ResumeRunParams => RunView, Change, RunsWrite, Post paths::RUN_RESUME;
    RunInput [RunId] RunInputParams => RunView, Change, RunsWrite, Post paths::RUN_INPUT;
    RunDeliver [RunId] DeliverResultsParams => RunView, Change, RunsWrite, Post paths::RUN_DELIVER;
    RunEnvelopeEdit [RunId] EditEnvelopeParams => RunDetail, Change, RunsWrite, Post paths::RUN_ENVELOPE;
    RunUndo [RunId] UndoRunParams => UndoResponse, Change, RunsWrite, Post paths::RUN_UNDO;
    RunContext [RunId] RunContextParams => RunContextResponse, Read, RunsRead, Get paths::RUN_CONTEXT;
    RunCompactRevert [RunId] NoParams => RunView, Change, RunsWrite, Post paths::RUN_COMPACTION_REVERT;
    RunReplay [RunId] NoParams => ReplayReport, Read, RunsRead, Post paths::RUN_REPLAY;

    AuxiliaryRun [] RunAuxiliaryParams => AuxiliaryTaskView, Change, ModelsUse, Post paths::AUXILIARY;
    AuxiliaryList [] ListAuxiliaryParams => ListAuxiliaryResponse, Read, RunsRead, Get paths::AUXILIARY;
    AuxiliaryGet [AuxiliaryTaskId] NoParams => AuxiliaryTaskView, Read, RunsRead, Get paths::AUXILIARY_TASK;
    ModelsStatus [] NoParams => ModelsStatusResponse, Read, ConfigRead, Get paths::MODELS;
    ModelsExplain [] ExplainModelsParams => ExplainModelsResponse, Read, ConfigRead, Post paths::MODELS_EXPLAIN;
    ModelsOffered [] OfferedModelsParams => OfferedModelsResponse, Administer, DaemonControl, Post paths::MODELS_OFFERED;
    ModelsTest [] TestModelsParams => TestModelsResponse, Administer, DaemonControl, Post paths::MODELS_TEST;
    UsageReport [] UsageParams => UsageResponse, Read, RunsRead, Get paths::USAGE;

    ApprovalList [] ListApprovalsParams => ListApprovalsResponse, Read, ApprovalsRead, Get paths::APPROVALS;
    ApprovalGet [ApprovalId] GetApprovalParams => ApprovalView, Read, ApprovalsRead, Get paths::APPROVAL;
    ApprovalRequest [] RequestApprovalParams => ApprovalView, Change, ApprovalsRequest, Post paths::APPROVALS;
    ApprovalDecide [ApprovalId] DecideApprovalParams => DecideApprovalResponse, Change, ApprovalsDecide, Post paths::APPROVAL_DECIDE;
    PatternList [] ListPatternsParams => ListPatternsResponse, Read, ApprovalsRead, Get paths::PATTERNS;
    PatternRevoke [ApprovalId] NoParams => ListPatternsResponse, Change, ApprovalsDecide, Post paths::PATTERN_REVOKE;

    ToolList [] NoParams => ListToolsResponse, Read, ToolsRead, Get paths::TOOLS;
    PolicyList [] NoParams => ListPoliciesResponse, Read, PolicyRead, Get paths::POLICIES;
    ConfigGet [] NoParams => ConfigResponse, Read, ConfigRead, Get paths::CONFIG;

    JournalProve [RecordSeq] NoParams => Value, Administer, JournalRead, Get paths::JOURNAL_PROVE;
    JournalBackup [] BackupJournalParams => BackupJournalResponse, Administer, JournalAdmin, Post paths::JOURNAL_BACKUP;

    TokenCreate [] CreateTokenParams => TokenSecretResponse, Administer, TokensManage, Post paths::TOKENS;
    TokenList [] NoParams => ListTokensResponse, Administer, TokensManage, Get paths::TOKENS;
    TokenRotate [TokenName] RotateTokenParams => TokenSecretResponse, Administer, TokensManage, Post paths::TOKEN_ROTATE;
    TokenRevoke [TokenName] NoParams => TokenView, Administer, TokensManage, Post paths::TOKEN_REVOKE;

    DeviceList [] NoParams => ListDevicesResponse, Administer, TokensManage, Get paths::DEVICES;
    DeviceRevoke [DeviceId] NoParams => DeviceView, Administer, TokensManage, Post paths::DEVICE_REVOKE;

    WorkspaceGrant [] WorkspaceGrantParams => WorkspaceGrantView, Administer, TokensManage, Post paths::WORKSPACES;
    WorkspaceRevoke [] WorkspaceGrantParams => WorkspaceGrantView, Administer, TokensManage, Post paths::WORKSPACE_REVOKE;
    WorkspaceList [] NoParams => ListWorkspacesResponse, Administer, TokensManage, Get paths::WORKSPACES;

    FileLabels [] ListFileLabelsParams => ListFileLabelsResponse, Administer, ApprovalsRead, Get paths::FILE_LABELS;
    FileEndorse [] EndorseFileParams => EndorsedFileView, Administer, ApprovalsDecide, Post paths::FILE_ENDORSE;

    BindingList [] ListBindingsParams => ListBindingsResponse, Read, SessionsRead, Get paths::BINDINGS;
    BindingGet [BindingId] NoParams => BindingView, Read, SessionsRead, Get paths::BINDING;
    BindingSet [] SetBindingParams => BindingView, Change, SessionsWrite, Post paths::BINDINGS;
    BindingRemove [BindingId] NoParams => BindingView, Change, SessionsWrite, Post paths::BINDING_REMOVE;

    CanvasList [] ListCanvasesParams => ListCanvasesResponse, Read, SessionsRead, Get paths::CANVASES;
    CanvasGet [CanvasId] NoParams => CanvasDetail, Read, SessionsRead, Get paths::CANVAS;
    CanvasLink [CanvasId] LinkCanvasParams => CanvasLinkResponse, Change, SessionsWrite, Post paths::CANVAS_LINK;
    CanvasSubmit [CanvasId] SubmitCanvasParams => SubmitCanvasResponse, Change, RunsWrite, Post paths::CANVAS_SUBMIT;
    CanvasClose [CanvasId] NoParams => CanvasView, Change, SessionsWrite, Post paths::CANVAS_CLOSE;
    AgentList [] ListAgentsParams => ListAgentsResponse, Read, SessionsRead, Get paths::AGENTS;
    AgentGet [AgentName] NoParams => AgentView, Read, SessionsRead, Get paths::AGENT;
    AgentSet [] SetAgentParams => AgentView, Administer, DaemonControl, Post paths::AGENTS;
    AgentRemove [AgentName] NoParams => RemoveAgentResponse, Administer, DaemonControl, Post paths::AGENT_REMOVE;

    EventAppend [] AppendEventParams => AppendEventResponse, Change, SessionsWrite, Post paths::EVENTS;
    AttachmentAdd [] AddAttachmentParams => AttachmentParams, Change, RunsWrite, Post paths::ATTACHMENTS;
    MessageRoute [] RouteMessageParams => RouteMessageResponse, Change, MessagesRoute, Post paths::MESSAGES;

    SkillList [] NoParams => ListSkillsResponse, Read, SkillsRead, Get paths::SKILLS;
    SkillGet [SkillName] NoParams => SkillDetail, Read, SkillsRead, Get paths::SKILL;
    SkillUpload [] UploadSkillParams => UploadSkillResponse, Administer, SkillsManage, Post paths::SKILL_UPLOAD;
    SkillInstall [] InstallSkillParams => SkillDetail, Administer, SkillsManage, Post paths::SKILLS;
    SkillRemove [SkillName] NoParams => SkillView, Administer, SkillsManage, Post paths::SKILL_REMOVE;
    SkillEnable [SkillName] ChangeSkillParams => SkillView, Administer, SkillsManage, Post paths::SKILL_ENABLE;
    SkillDisable [SkillName] ChangeSkillParams => SkillView, Administer, SkillsManage, Post paths::SKILL_DISABLE;
    SkillQuarantine [SkillName] ChangeSkillParams => SkillView, Administer, SkillsManage, Post paths::SKILL_QUARANTINE;
    SkillAudit [SkillName] NoParams => SkillDetail, Administer, SkillsManage, Post paths::SKILL_AUDIT;
    SkillConfigure [SkillName] ConfigureSkillParams => SkillDetail, Administer, SkillsManage, Post paths::SKILL_CONFIGURE;
    SkillCall [SkillName] CallSkillParams => CallSkillResponse, Administer, SkillsManage, Post paths::SKILL_CALL;
    PublisherList [] NoParams => ListPublishersResponse, Read, SkillsRead, Get paths::PUBLISHERS;
    PublisherTrust [] TrustPublisherParams => PublisherView, Administer, SkillsManage, Post paths::PUBLISHERS;
    PublisherUntrust [PublisherName] ChangeSkillParams => PublisherView, Administer, SkillsManage, Post paths::PUBLISHER_UNTRUST;
    PublisherImport [] ImportStatementParams => ImportStatementResponse, Administer, SkillsManage, Post paths::PUBLISHER_IMPORT;
    PublisherRevokeKey [] RevokeKeyParams => RevokeKeyResponse, Administer, SkillsManage, Post paths::PUBLISHER_REVOKE_KEY;
    HookList [] NoParams => ListHooksResponse, Read, SkillsRead, Get paths::HOOKS;
    HookSet [] SetHookParams => HookView, Administer, SkillsManage, Post paths::HOOKS;
    HookRemove [HookName] NoParams => HookView, Administer, SkillsManage, Post paths::HOOK_REMOVE;

    PrincipalShow [] NoParams => PrincipalView, Read, SessionsRead, Get paths::PRINCIPAL;
    DaemonStop [] NoParams => StopDaemonResponse, Administer, DaemonControl, Post paths::DAEMON_STOP;
    Reconnect [] NoParams => ReconnectResponse, Read, RunsRead, Get paths::RECONNECT;
}
