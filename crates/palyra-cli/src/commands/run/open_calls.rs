//! Tool calls that were proposed and have no result yet: what they are about, and since when they have been at work.
//!
//! Time that a call spent waiting for a person is not its own.

use std::collections::BTreeMap;
use std::time::Duration;

use palyra_client::api::IntentView;
use palyra_common::{ApprovalId, CallProgress, RunStreamBody, RunStreamEvent, Timestamp};

use crate::console::one_line;
use crate::render::text::shortened;
use crate::render::{calls, intents};

/// The calls of one run that are under way, by id.
#[derive(Debug, Default)]
pub(super) struct OpenCalls {
    calls: BTreeMap<String, Call>,
    asked: BTreeMap<ApprovalId, String>,
}

#[derive(Debug)]
struct Call {
    tool: String,
    subject: String,
    intents: Option<Vec<IntentView>>,
    since: Timestamp,
    measured: Option<Duration>,
}

/// A call that is over.
#[derive(Debug, Default)]
pub(super) struct FinishedCall {
    /// What it was about.
    pub(super) subject: String,
    /// The effects that it stated, if it was a statement of any.
    pub(super) intents: Option<Vec<IntentView>>,
    /// How long it took, as its executor measured it or else by the tape.
    pub(super) took: Option<Duration>,
}

impl OpenCalls {
    /// Takes note of whatever an event says about calls.
    pub(super) fn observe(&mut self, event: &RunStreamEvent) {
        match &event.body {
            RunStreamBody::ToolProposal(proposal) => {
                let call = Call {
                    tool: shortened(&proposal.tool, 60),
                    subject: calls::subject(&proposal.arguments),
                    intents: intents::stated(&proposal.tool, &proposal.arguments),
                    since: event.at,
                    measured: None,
                };
                self.calls.insert(proposal.call_id.clone(), call);
            }
            RunStreamBody::ToolApprovalRequest(request) => {
                if let Some(call_id) = &request.call_id {
                    self.asked.insert(request.approval_id, call_id.clone());
                }
            }
            RunStreamBody::ToolApprovalResponse(response) => {
                let call = self.asked.remove(&response.approval_id).and_then(|id| self.calls.get_mut(&id));
                if let Some(call) = call {
                    call.since = event.at;
                }
            }
            RunStreamBody::ToolAttestation(attestation) => {
                if let Some(call) = self.calls.get_mut(&attestation.call_id) {
                    call.measured = Some(Duration::from_millis(attestation.limits_used.wall_ms));
                }
            }
            _ => {}
        }
    }

    /// Ends a call.
    pub(super) fn finish(&mut self, call_id: &str, at: Timestamp) -> FinishedCall {
        let Some(call) = self.calls.remove(call_id) else { return FinishedCall::default() };
        let took = call.measured.unwrap_or_else(|| at.since(call.since));
        FinishedCall { subject: call.subject, intents: call.intents, took: Some(took) }
    }

    /// What is under way, if anything is.
    pub(super) fn activity(&self) -> Option<String> {
        let call = self.calls.values().next_back()?;
        Some(format!("{} {}", call.tool, call.subject).trim_end().to_owned())
    }
}

/// What a call says of itself, in one line: `40 % reading pages`, or the last line it printed. It comes from outside.
pub(super) fn latest(progress: &CallProgress) -> String {
    let percent = progress.percent.map(|percent| format!("{percent} %"));
    let printed = progress.output.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
    let said = if progress.message.is_empty() { printed } else { &progress.message };
    let said = Some(shortened(&one_line(said), 100)).filter(|said| !said.is_empty());
    percent.into_iter().chain(said).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use palyra_common::{
        ApprovalDecision, ApprovalScope, ApprovalSubject, Digest, LimitsUsed, Risk, RunId, ToolApprovalRequest,
        ToolApprovalResponse, ToolAttestation, ToolProposal,
    };
    use serde_json::json;

    use super::*;

    fn event(at: i64, body: RunStreamBody) -> RunStreamEvent {
        RunStreamEvent { run_id: RunId::from_u128(1), seq: 1, at: Timestamp(at), body }
    }

    fn proposal() -> RunStreamBody {
        RunStreamBody::ToolProposal(ToolProposal {
            call_id: "c".to_owned(),
            tool: "palyra.fs.write".to_owned(),
            arguments: json!({ "path": "a.md" }),
        })
    }

    #[test]
    fn waiting_for_a_person_is_not_the_calls_own_time() {
        let mut calls = OpenCalls::default();
        calls.observe(&event(1_000, proposal()));
        calls.observe(&event(
            1_001,
            RunStreamBody::ToolApprovalRequest(ToolApprovalRequest {
                approval_id: ApprovalId::from_u128(1),
                call_id: Some("c".to_owned()),
                subject: ApprovalSubject::Tool,
                risk: Risk::Medium,
                summary: String::new(),
                tool: None,
                arguments: None,
                reason: String::new(),
                evidence: Vec::new(),
                offer: None,
            }),
        ));
        let (decision, scope) = (ApprovalDecision::Allow, ApprovalScope::Once);
        let response =
            ToolApprovalResponse { approval_id: ApprovalId::from_u128(1), decision, scope, by: "me".to_owned() };
        calls.observe(&event(61_000, RunStreamBody::ToolApprovalResponse(response)));
        assert_eq!(calls.activity().as_deref(), Some("palyra.fs.write a.md"));
        let FinishedCall { subject, took, .. } = calls.finish("c", Timestamp(61_005));
        assert_eq!((subject.as_str(), took), ("a.md", Some(Duration::from_millis(5))));
        assert_eq!(calls.activity(), None);
    }

    #[test]
    fn how_a_call_gets_on_is_one_plain_line() {
        let told = |percent, message: &str, output: &str| CallProgress {
            call_id: "c".to_owned(),
            percent,
            message: message.to_owned(),
            output: output.to_owned(),
        };
        assert_eq!(latest(&told(Some(40), "reading pages", "")), "40 % reading pages");
        assert_eq!(latest(&told(None, "", "first\n  Compiling b\n\n")), "Compiling b");
        assert_eq!(latest(&told(None, "a\u{1b}[2Jb\nc", "")), "a\u{fffd}[2Jb c");
        assert_eq!(latest(&told(None, "", "")), "");
    }

    #[test]
    fn what_the_executor_measured_counts_and_unknown_calls_do_not_matter() {
        let mut calls = OpenCalls::default();
        calls.observe(&event(1_000, proposal()));
        calls.observe(&event(
            1_500,
            RunStreamBody::ToolAttestation(ToolAttestation {
                call_id: "c".to_owned(),
                execution_sha256: Digest::of(b""),
                executor: "builtin".to_owned(),
                tier: None,
                fallback_reasons: Vec::new(),
                limits_used: LimitsUsed { wall_ms: 7, ..LimitsUsed::default() },
                timed_out: false,
            }),
        ));
        assert_eq!(calls.finish("c", Timestamp(9_000)).took, Some(Duration::from_millis(7)));
        let unknown = calls.finish("c", Timestamp(9_000));
        assert_eq!((unknown.subject.as_str(), unknown.took), ("", None));
    }
}
