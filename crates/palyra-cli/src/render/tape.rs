//! One line about one event of a tape, for people, and one more for each effect that a call states. Programs ask for `--output ndjson` and get the events themselves.

use palyra_common::{RunStreamBody, RunStreamEvent};

use super::text::{instant, millis, shortened};
use super::{calls, compaction, intents, model_call, plan, unavailable_tools, verdict, withheld_instructions};

const WIDTH: usize = 120;
/// Where the rest of an event's line begins.
const INDENT: usize = 44;

/// An event, and below it what a run is meant to do where the event states it. That is never cut off.
pub(crate) fn lines(event: &RunStreamEvent) -> Vec<String> {
    let stated = match &event.body {
        RunStreamBody::ToolProposal(proposal) => intents::stated(&proposal.tool, &proposal.arguments),
        _ => None,
    };
    let stated = stated.map(|intents| intents::lines(&intents)).unwrap_or_default();
    std::iter::once(line(event)).chain(stated.into_iter().map(|line| format!("{:INDENT$}{line}", ""))).collect()
}

/// `   7  2026-11-15 07:11:48  decided         t1c1 permit: it reads inside the workspace`.
fn line(event: &RunStreamEvent) -> String {
    let Told { what, about } = told(&event.body);
    format!("{:>4}  {}  {:<16} {}", event.seq, instant(event.at), shortened(what, 24), shortened(&about, WIDTH))
        .trim_end()
        .to_owned()
}

/// Joins consecutive pieces of one turn's text into one event, so that an answer is one line however it was streamed.
#[derive(Debug, Default)]
pub(crate) struct Folded {
    text: Option<RunStreamEvent>,
}

impl Folded {
    /// Takes the next event; gives back those that are complete with it.
    pub(crate) fn push(&mut self, event: RunStreamEvent) -> Vec<RunStreamEvent> {
        if let RunStreamBody::ModelToken(piece) = &event.body {
            if let Some(RunStreamEvent { body: RunStreamBody::ModelToken(text), .. }) = &mut self.text
                && text.turn == piece.turn
            {
                text.text.push_str(&piece.text);
                return Vec::new();
            }
            return self.text.replace(event).into_iter().collect();
        }
        self.text.take().into_iter().chain([event]).collect()
    }

    /// What is left at the end.
    pub(crate) fn finish(self) -> Option<RunStreamEvent> {
        self.text
    }
}

/// What happened, and the rest of the line.
struct Told<'a> {
    what: &'a str,
    about: String,
}

impl<'a> Told<'a> {
    fn new(what: &'a str, about: String) -> Self {
        Self { what, about }
    }
}

fn told(body: &RunStreamBody) -> Told<'_> {
    match body {
        RunStreamBody::Status(status) => {
            let mut about = status.phase.to_string();
            if let Some(reason) = status.reason {
                about.push_str(&format!(": {reason}"));
            }
            if let Some(detail) = &status.detail {
                about.push_str(&format!(", {} [{}]", detail.message, detail.code));
            }
            Told::new("status", about)
        }
        RunStreamBody::ModelToken(token) => Told::new("model", token.text.clone()),
        RunStreamBody::ToolProposal(proposal) => Told::new(
            "proposed",
            format!("{} {} {}", proposal.call_id, proposal.tool, calls::subject(&proposal.arguments)),
        ),
        RunStreamBody::ToolDecision(decision) => {
            Told::new("decided", format!("{} {}: {}", decision.call_id, decision.verdict, decision.reasons.join("; ")))
        }
        RunStreamBody::ToolApprovalRequest(request) => {
            Told::new("asked", format!("{} ({} risk, approval {})", request.summary, request.risk, request.approval_id))
        }
        RunStreamBody::ToolApprovalResponse(response) => {
            Told::new("answered", format!("{} by {}", response.decision, response.by))
        }
        RunStreamBody::ToolResult(result) => {
            Told::new("result", format!("{} {}", result.call_id, calls::outcome(result)))
        }
        RunStreamBody::ToolAttestation(attestation) => {
            let used = millis(attestation.limits_used.wall_ms);
            let fallback = match attestation.tier {
                Some(tier) if !attestation.fallback_reasons.is_empty() => {
                    format!(", {}", calls::in_tier(tier, &attestation.fallback_reasons))
                }
                _ => String::new(),
            };
            // The digest last: it is cut off first, and programs read it from the event.
            Told::new("attested", format!("{} {used}{fallback}, {}", attestation.call_id, attestation.execution_sha256))
        }
        RunStreamBody::A2uiUpdate(update) => {
            let field = |name: &str| update.payload.get(name).map(ToString::to_string).unwrap_or_default();
            let canvas = field("canvas_id").replace('"', "");
            Told::new("canvas", format!("{canvas} version {}", field("version")))
        }
        // What it holds is for machines, mostly; its kind says what happened.
        RunStreamBody::JournalEvent(event) => {
            let about = compaction::about(event).or_else(|| verdict::about(event)).or_else(|| model_call::about(event));
            let about = about.or_else(|| plan::about(event)).or_else(|| unavailable_tools::about(event));
            let about = about.or_else(|| withheld_instructions::about(event));
            Told::new(&event.kind, about.unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests {
    use palyra_common::{RunId, Timestamp};
    use serde_json::json;

    use super::*;

    fn shown(body: &serde_json::Value) -> String {
        let mut event = json!({ "run_id": RunId::from_u128(1), "seq": 7, "at": Timestamp(1_794_700_000_123) });
        event.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        line(&serde_json::from_value(event).unwrap())
    }

    #[test]
    fn streamed_text_is_one_line_per_turn() {
        let event = |seq: u64, body: serde_json::Value| -> RunStreamEvent {
            let mut event = json!({ "run_id": RunId::from_u128(1), "seq": seq, "at": Timestamp(0) });
            event.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
            serde_json::from_value(event).unwrap()
        };
        let token = |turn: u32, text: &str| json!({ "model_token": { "turn": turn, "text": text } });
        let mut folded = Folded::default();
        let mut shown: Vec<RunStreamEvent> = Vec::new();
        for (seq, body) in [
            token(1, "one "),
            token(1, "two"),
            token(2, "three"),
            json!({ "status": { "phase": "completed" } }),
            token(3, "four"),
        ]
        .into_iter()
        .enumerate()
        {
            shown.extend(folded.push(event(seq as u64 + 1, body)));
        }
        shown.extend(folded.finish());
        let lines: Vec<String> = shown.iter().map(line).collect();
        assert_eq!(lines.len(), 4, "{lines:?}");
        assert!(lines[0].starts_with("   1") && lines[0].ends_with("one two"), "{lines:?}");
        assert!(lines[1].starts_with("   3") && lines[1].ends_with("three"), "{lines:?}");
    }

    #[test]
    fn an_attestation_says_when_there_was_less_isolation_than_asked_for() {
        let attested = |reasons: &[&str]| {
            let digest = palyra_common::Digest::of(b"x");
            shown(&json!({ "tool_attestation": {
                "call_id": "t1c1", "execution_sha256": digest, "executor": "sandbox", "tier": "B", "fallback_reasons": reasons,
                "limits_used": { "wall_ms": 7 }, "timed_out": false,
            } }))
        };
        let line = attested(&["no user namespaces"]);
        assert!(
            line.contains("t1c1 7 ms, in tier B because tier C is not available: no user namespaces, sha256:"),
            "{line}"
        );
        assert!(!attested(&[]).contains("tier"), "{}", attested(&[]));
    }

    #[test]
    fn a_statement_of_intent_is_shown_effect_by_effect() {
        let effects = json!([{ "tool": "mcp.mail.send", "destinations": ["ada@example.org"] }, { "tool": "mcp.x.y" }]);
        let call = json!({ "call_id": "t1c1", "tool": "palyra.intent.declare", "arguments": { "effects": effects } });
        let mut event = json!({ "run_id": RunId::from_u128(1), "seq": 7, "at": Timestamp(1_794_700_000_123) });
        event["tool_proposal"] = call;
        assert_eq!(
            lines(&serde_json::from_value(event).unwrap()),
            [
                "   7  2026-11-14 23:46:40  proposed         t1c1 palyra.intent.declare",
                "                                            intends: mcp.mail.send to ada@example.org, once",
                "                                            intends: mcp.x.y with any values, once",
            ]
        );
    }

    #[test]
    fn an_event_is_one_harmless_line() {
        assert_eq!(
            shown(&json!({ "status": { "phase": "completed", "reason": "final_answer" } })),
            "   7  2026-11-14 23:46:40  status           completed: final_answer"
        );
        assert_eq!(
            shown(&json!({ "model_token": { "turn": 1, "text": "one\ntwo\u{1b}[2J" } })),
            "   7  2026-11-14 23:46:40  model            one two\u{fffd}[2J"
        );
        assert_eq!(
            shown(&json!({ "journal_event": { "kind": "model.call", "payload": { "a": 1 } } })),
            "   7  2026-11-14 23:46:40  model.call"
        );
        let proposal = json!({ "call_id": "t1c1", "tool": "palyra.fs.read", "arguments": { "path": "a.md" } });
        assert!(shown(&json!({ "tool_proposal": proposal })).ends_with("proposed         t1c1 palyra.fs.read a.md"));
    }
}
