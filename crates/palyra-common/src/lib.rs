//! The vocabulary of Palyra.
//!
//! Everything here is shared by all other crates and depends on none of them: identifiers, time, labels, the runtime
//! contracts with their wire names, the stable error envelope, redaction, configuration and deployment profiles. It does no
//! I/O beyond reading configuration.

mod clock;
mod contract_enum;
mod digest;
mod error;
mod ids;
mod labels;
mod runtime_contracts;

pub use clock::{Clock, FixedClock, SystemClock, Timestamp};
pub use contract_enum::{ContractEnum, UnknownContractValue};
pub use digest::{Digest, InvalidDigest};
pub use error::{ErrorCategory, ExitCode, FieldError, Retry, StableErrorEnvelope, ToStableError};
pub use ids::{
    ApprovalId, AuxiliaryTaskId, CanvasId, DeviceId, InvalidId, ObjectiveId, RequestId, RunId, SessionId,
};
pub use labels::{Confidentiality, Integrity, Label};
pub use runtime_contracts::{
    ApprovalDecision, ApprovalScope, ApprovalSubject, Risk, RunLifecyclePhase, TerminationReason,
};
