//! The vocabulary of Palyra.
//!
//! Everything here is shared by all other crates and depends on none of them: identifiers, time, labels, the runtime
//! contracts with their wire names, envelopes, the stable error envelope, redaction, configuration and deployment
//! profiles. It does no I/O beyond reading configuration and the one write of `palyra config set`; `file_limit`
//! changes a limit of the process.

mod advice;
mod amount;
mod attribution;
mod build_info;
mod classification;
mod clock;
mod clock_change;
mod command_line;
pub mod config;
mod contract_enum;
mod data_origin;
mod deployment_profiles;
mod digest;
pub mod env_vars;
mod envelopes;
mod environment;
mod error;
pub mod escaped;
mod file_limit;
mod health;
mod ids;
mod labels;

pub mod paths;
mod provenance;
mod redaction;
mod runtime_contracts;
mod secret_ref;
mod suggestion;
mod undo;

pub use advice::model_advice;
pub use amount::micro_dollars;
pub use attribution::ChangeAttribution;
pub use build_info::BuildInfo;
pub use classification::{Consequence, FieldClass, FieldRole, OutputClass, ToolClassification, named_fields};
pub use clock::{Clock, FixedClock, SystemClock, Timestamp};
pub use clock_change::{CLOCK_TOLERANCE, ClockChange, ClockOffsets};
pub use command_line::command_line;
pub use contract_enum::{ContractEnum, UnknownContractValue};
pub use data_origin::{DataOrigin, InvalidDataOrigin};
pub use deployment_profiles::{
    BindingBehaviour, ConnectivityOption, DeploymentProfileSpec, DeploymentRecipe, MissingIsolation,
    SandboxRequirement, SecurityPosture, WorkerSupport,
};
pub use digest::{Digest, InvalidDigest};
pub use envelopes::{
    A2uiUpdate, AcpCommandEnvelope, AcpCommandResultEnvelope, ApprovalEvidence, CallProgress, CrossSurfaceHandoff,
    InconsistentResult, InvalidHandoff, InvalidTelemetry, JournalEvent, LimitsUsed, MODEL_CALL, ModelToken, RunStatus,
    RunStreamBody, RunStreamEvent, StatusDetail, SystemEventRecord, TelemetrySummary, ToolApprovalRequest,
    ToolApprovalResponse, ToolAttestation, ToolDecision, ToolProposal, ToolResult, UxEventName, UxTelemetryEvent,
};
pub use environment::Environment;
pub use error::{ErrorCategory, ExitCode, FieldError, Retry, StableErrorEnvelope, ToStableError};
pub use file_limit::{is_out_of_files, raise_file_limit, restore_file_limit};
pub use health::{ComponentHealth, HealthReport, HealthStatus};
pub use ids::{
    ApprovalId, AuxiliaryTaskId, BindingId, CanvasId, DeviceId, InvalidId, ObjectiveId, RequestId, RunId, SessionId,
};
pub use labels::{Confidentiality, Integrity, Label};
pub use provenance::Provenance;
pub use redaction::{RedactedUrl, Secret, SecretString};
pub use runtime_contracts::{
    AcpCommand, ApprovalDecision, ApprovalScope, ApprovalSubject, AuxiliaryInputContract, AuxiliaryOutputContract,
    AuxiliaryTaskContract, AuxiliaryTaskKind, AuxiliaryTaskState, CommandEffect, DeploymentProfile, EffectScope,
    HandoffIntent, HandoffSection, HookDecision, HookEvent, InputMode, ModelPreference, PrincipalRole, Risk,
    RunLifecycleHookPhase, RunLifecyclePhase, RunMode, SafetyAction, SandboxTier, SinkKind, SkillStatus, SkillTrust,
    TelemetrySurface, TerminationReason, TokenScope, ToolVerdict, UxOutcome,
};
pub use secret_ref::{InvalidSecretRef, SecretError, SecretRef, SecretResolver};
pub use suggestion::{did_you_mean, suggest};
pub use undo::{UndoConflictMode, UndoObstacle};
