//! Runtime vocabulary: the values that users, clients and stored data rely on, one file per topic.
//!
//! Each enum is declared once through [`runtime_contract_enum!`](crate::runtime_contract_enum), which owns reading,
//! writing and the names in SQL, protobuf and JSON Schema. The round-trip test in `tests/it` covers all of them.

mod acp;
mod approval;
mod auxiliary;
mod deployment;
mod effects;
mod hooks;
mod identity;
mod run;
mod safety;
mod sandbox;
mod skills;
mod surfaces;

pub use acp::{AcpCommand, CommandEffect};
pub use approval::{ApprovalDecision, ApprovalScope, ApprovalSubject, Risk};
pub use auxiliary::{
    AuxiliaryInputContract, AuxiliaryOutputContract, AuxiliaryTaskContract, AuxiliaryTaskKind, AuxiliaryTaskState,
    ModelPreference,
};
pub use deployment::DeploymentProfile;
pub use effects::{EffectScope, SinkKind};
pub use hooks::{HookDecision, HookEvent};
pub use identity::{PrincipalRole, TokenScope};
pub use run::{InputMode, RunLifecycleHookPhase, RunLifecyclePhase, RunMode, TerminationReason, ToolVerdict};
pub use safety::SafetyAction;
pub use sandbox::SandboxTier;
pub use skills::{SkillStatus, SkillTrust};
pub use surfaces::{HandoffIntent, HandoffSection, TelemetrySurface, UxOutcome};
