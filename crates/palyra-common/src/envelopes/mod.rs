//! Envelopes: the shapes in which commands, events, handoffs and telemetry cross a boundary.
//!
//! They are plain data with their rules enforced at construction and on reading. Who may send what, and what happens
//! then, belongs to the engine and the surfaces.

mod acp;
mod handoff;
mod run_stream;
mod telemetry;

pub use acp::{AcpCommandEnvelope, AcpCommandResultEnvelope, InconsistentResult};
pub use handoff::{CrossSurfaceHandoff, InvalidHandoff};
pub use run_stream::{
    A2uiUpdate, ApprovalEvidence, CallProgress, JournalEvent, LimitsUsed, MODEL_CALL, ModelToken, RunStatus,
    RunStreamBody, RunStreamEvent, StatusDetail, ToolApprovalRequest, ToolApprovalResponse, ToolAttestation,
    ToolDecision, ToolProposal, ToolResult,
};
pub use telemetry::{InvalidTelemetry, SystemEventRecord, TelemetrySummary, UxEventName, UxTelemetryEvent};
