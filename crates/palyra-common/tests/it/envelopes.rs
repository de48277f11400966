//! Envelopes: their exact form on the wire, and what they refuse.

use palyra_common::{
    A2uiUpdate, AcpCommand, AcpCommandEnvelope, AcpCommandResultEnvelope, ApprovalDecision, ApprovalId, ApprovalScope,
    ApprovalSubject, CallProgress, CrossSurfaceHandoff, Digest, ErrorCategory, HandoffIntent, HandoffSection,
    InvalidHandoff, JournalEvent, Label, LimitsUsed, ModelToken, RequestId, Risk, RunId, RunLifecyclePhase, RunStatus,
    RunStreamBody, RunStreamEvent, SandboxTier, SessionId, StableErrorEnvelope, StatusDetail, SystemEventRecord,
    TelemetrySurface, TerminationReason, Timestamp, ToolApprovalRequest, ToolApprovalResponse, ToolAttestation,
    ToolDecision, ToolProposal, ToolResult, ToolVerdict, UxEventName, UxTelemetryEvent,
};
use serde_json::{Value, json};

fn bodies() -> Vec<(RunStreamBody, Value)> {
    let approval_id = ApprovalId::from_u128(7);
    let digest = Digest::of(b"x");
    let error = StableErrorEnvelope::new("file_missing", ErrorCategory::NotFound, "no `a`");
    vec![
        (
            RunStreamBody::Status(RunStatus {
                phase: RunLifecyclePhase::Failed,
                reason: Some(TerminationReason::MaxTurns),
                detail: Some(StatusDetail { code: "c".into(), message: "m".into() }),
                progress: None,
            }),
            json!({"status": {"phase": "failed", "reason": "max_turns", "detail": {"code": "c", "message": "m"}}}),
        ),
        (
            RunStreamBody::Status(RunStatus {
                progress: Some(CallProgress {
                    call_id: "t1c1".into(),
                    percent: Some(40),
                    message: "reading pages".into(),
                    output: String::new(),
                }),
                ..RunStatus::entered(RunLifecyclePhase::Running)
            }),
            json!({"status": {"phase": "running", "progress": {"call_id": "t1c1", "percent": 40, "message": "reading pages"}}}),
        ),
        (
            RunStreamBody::Status(RunStatus::entered(RunLifecyclePhase::Running)),
            json!({"status": {"phase": "running"}}),
        ),
        (
            RunStreamBody::ModelToken(ModelToken { turn: 1, text: "hi".into() }),
            json!({"model_token": {"turn": 1, "text": "hi"}}),
        ),
        (
            RunStreamBody::ToolProposal(ToolProposal {
                call_id: "c1".into(),
                tool: "palyra.fs.read".into(),
                arguments: json!({"path": "a", "n": 18_446_744_073_709_551_615_u64}),
            }),
            json!({"tool_proposal": {"call_id": "c1", "tool": "palyra.fs.read",
                "arguments": {"path": "a", "n": 18_446_744_073_709_551_615_u64}}}),
        ),
        (
            RunStreamBody::ToolDecision(ToolDecision {
                call_id: "c1".into(),
                verdict: ToolVerdict::NeedsApproval,
                reasons: vec!["because".into()],
                policies: vec!["p0".into()],
            }),
            json!({"tool_decision": {"call_id": "c1", "verdict": "needs_approval", "reasons": ["because"],
                "policies": ["p0"]}}),
        ),
        (
            RunStreamBody::ToolApprovalRequest(ToolApprovalRequest {
                approval_id,
                call_id: None,
                subject: ApprovalSubject::Tool,
                risk: Risk::High,
                summary: "s".into(),
                tool: None,
                arguments: None,
                reason: "r".into(),
                evidence: Vec::new(),
                offer: None,
            }),
            json!({"tool_approval_request": {"approval_id": approval_id.to_string(), "subject": "tool",
                "risk": "high", "summary": "s", "reason": "r"}}),
        ),
        (
            RunStreamBody::ToolApprovalResponse(ToolApprovalResponse {
                approval_id,
                decision: ApprovalDecision::Allow,
                scope: ApprovalScope::Once,
                by: "uid:0".into(),
            }),
            json!({"tool_approval_response": {"approval_id": approval_id.to_string(), "decision": "allow",
                "scope": "once", "by": "uid:0"}}),
        ),
        (
            RunStreamBody::ToolResult(ToolResult {
                call_id: "c1".into(),
                tool: "t".into(),
                ok: false,
                content: "text".into(),
                truncated: true,
                artifact: Some(digest),
                error: Some(error),
                label: Label::user(),
            }),
            json!({"tool_result": {"call_id": "c1", "tool": "t", "ok": false, "content": "text", "truncated": true,
                "artifact": digest.to_string(),
                "error": {"code": "file_missing", "message": "no `a`", "category": "not_found", "retryable": false},
                "label": {"integrity": "user", "confidentiality": "private"}}}),
        ),
        (
            RunStreamBody::ToolAttestation(ToolAttestation {
                call_id: "c1".into(),
                execution_sha256: digest,
                executor: "builtin".into(),
                tier: Some(SandboxTier::C),
                fallback_reasons: Vec::new(),
                limits_used: LimitsUsed { wall_ms: 3, ..LimitsUsed::default() },
                timed_out: false,
            }),
            json!({"tool_attestation": {"call_id": "c1", "execution_sha256": digest.to_string(),
                "executor": "builtin", "tier": "C", "limits_used": {"wall_ms": 3}, "timed_out": false}}),
        ),
        (RunStreamBody::A2uiUpdate(A2uiUpdate { payload: json!([1]) }), json!({"a2ui_update": {"payload": [1]}})),
        (
            RunStreamBody::JournalEvent(JournalEvent { kind: "k".into(), payload: json!(null) }),
            json!({"journal_event": {"kind": "k", "payload": null}}),
        ),
    ]
}

#[test]
fn an_event_is_flat_with_exactly_one_body_key() {
    for (body, wire) in bodies() {
        let event = RunStreamEvent { run_id: RunId::from_u128(5), seq: 3, at: Timestamp(17), body };
        let mut expected = json!({"run_id": event.run_id.to_string(), "seq": 3, "at": 17});
        expected.as_object_mut().unwrap().extend(wire.as_object().unwrap().clone());
        assert_eq!(serde_json::to_value(&event).unwrap(), expected);
        assert!(expected.get(event.body.kind()).is_some());
        let text = serde_json::to_string(&event).unwrap();
        assert_eq!(serde_json::from_str::<RunStreamEvent>(&text).unwrap(), event);
        assert_eq!(event.is_terminal(), wire["status"]["phase"] == "failed");
    }
}

#[test]
fn an_event_without_a_known_body_is_refused() {
    let id = RunId::from_u128(5);
    for body in [json!({}), json!({"surprise": {}}), json!({"model_token": {"text": 3}})] {
        let mut event = json!({"run_id": id.to_string(), "seq": 1, "at": 0});
        event.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        assert!(serde_json::from_value::<RunStreamEvent>(event).is_err(), "{body}");
    }
}

#[test]
fn a_result_is_a_value_or_an_error() {
    let command: AcpCommandEnvelope = serde_json::from_value(json!({
        "request_id": RequestId::from_u128(1).to_string(), "command": "RunCreate", "params": {"a": 1}, "idempotency_key": "k",
    }))
    .unwrap();
    assert_eq!(command.command, AcpCommand::RunCreate);
    let good = AcpCommandResultEnvelope::answer(&command, Ok(Value::Null));
    let wire = serde_json::to_value(&good).unwrap();
    assert_eq!(
        wire,
        json!({"request_id": command.request_id.to_string(), "command": "run.create", "ok": true, "result": null,
            "idempotency_key": "k", "replayed": false})
    );
    assert_eq!(serde_json::from_value::<AcpCommandResultEnvelope>(wire).unwrap(), good);

    let again = good.replayed_for(RequestId::from_u128(2));
    assert!(again.is_replayed() && again.request_id() == RequestId::from_u128(2));
    assert_eq!(again.outcome(), Ok(&Value::Null));

    let error = StableErrorEnvelope::new("conflict", ErrorCategory::Conflict, "no");
    let bad = AcpCommandResultEnvelope::answer(&command, Err(error.clone()));
    let wire = serde_json::to_value(&bad).unwrap();
    assert!(wire["ok"] == false && wire.get("result").is_none() && wire["error"]["code"] == "conflict");
    assert_eq!(serde_json::from_value::<AcpCommandResultEnvelope>(wire).unwrap(), bad);

    for (ok, result, error) in [
        (true, None, None),
        (false, None, None),
        (false, Some(json!(1)), None),
        (true, None, Some(&error)),
        (true, Some(json!(1)), Some(&error)),
        (false, Some(json!(1)), Some(&error)),
    ] {
        let mut wire = json!({"request_id": RequestId::from_u128(1).to_string(), "command": "reconnect", "ok": ok,
            "replayed": false});
        if let Some(result) = result {
            wire["result"] = result;
        }
        if let Some(error) = error {
            wire["error"] = serde_json::to_value(error).unwrap();
        }
        assert!(serde_json::from_value::<AcpCommandResultEnvelope>(wire.clone()).is_err(), "{wire}");
    }
    let unknown = json!({"request_id": RequestId::from_u128(1).to_string(), "command": "reconnect", "more": 1});
    assert!(serde_json::from_value::<AcpCommandEnvelope>(unknown).is_err());
}

#[test]
fn a_handoff_survives_query_and_json() {
    let handoff = CrossSurfaceHandoff {
        session_id: Some(SessionId::from_u128(1)),
        run_id: Some(RunId::from_u128(2)),
        intent: Some(HandoffIntent::InspectRun),
        ..CrossSurfaceHandoff::to_section(HandoffSection::Runs, TelemetrySurface::Cli)
    };
    let query = handoff.to_query();
    assert_eq!(
        query,
        format!(
            "section=runs&sessionId={}&runId={}&intent=inspect-run&source=cli",
            SessionId::from_u128(1),
            RunId::from_u128(2)
        )
    );
    assert_eq!(CrossSurfaceHandoff::from_query(&query), Ok(handoff.clone()));
    assert_eq!(CrossSurfaceHandoff::from_query(&format!("?{query}&")), Ok(handoff.clone()));
    let spelt = query.replace("inspect-run", "Inspect%52un").replace("section=runs", "section=RUNS");
    assert_eq!(CrossSurfaceHandoff::from_query(&spelt), Ok(handoff.clone()));

    let token = serde_json::to_value(&handoff).unwrap();
    assert_eq!(token["sessionId"], SessionId::from_u128(1).to_string());
    assert_eq!(serde_json::from_value::<CrossSurfaceHandoff>(token.clone()).unwrap(), handoff);
    let mut more = token;
    more["admin"] = json!(true);
    assert!(serde_json::from_value::<CrossSurfaceHandoff>(more).is_err());
}

#[test]
fn a_wrong_handoff_is_refused_by_name() {
    use InvalidHandoff::{Encoding, InvalidValue, MissingParameter, RepeatedParameter, UnknownParameter};
    let read = |query: &str| CrossSurfaceHandoff::from_query(query).unwrap_err();
    assert_eq!(read("section=runs&source=cli&admin=1"), UnknownParameter("admin".into()));
    assert_eq!(read("section=runs&source=cli&session_id=1"), UnknownParameter("session_id".into()));
    assert_eq!(read("section=runs&section=runs&source=cli"), RepeatedParameter("section".into()));
    assert_eq!(read("section=runs"), MissingParameter("source"));
    assert_eq!(read(""), MissingParameter("section"));
    assert!(matches!(read("section=runs&source=cli&runId=x"), InvalidValue { parameter: "runId", .. }));
    assert!(matches!(read("section=runs&source=cli&intent="), InvalidValue { parameter: "intent", .. }));
    assert_eq!(read("section=%zz&source=cli"), Encoding("%zz".into()));
    assert_eq!(read("section=%f&source=cli"), Encoding("%f".into()));
    assert_eq!(read("section=%ff&source=cli"), Encoding("%ff".into()));
}

#[test]
fn telemetry_becomes_a_flat_record() {
    let event: UxTelemetryEvent = serde_json::from_value(json!({
        "name": "ux.approval.resolved", "surface": "tui", "section": "approvals", "outcome": "blocked",
        "runId": RunId::from_u128(2).to_string(), "latencyMs": 12, "summary": "x".repeat(240), "step": "2",
    }))
    .unwrap();
    let record = SystemEventRecord::from(event);
    let wire = serde_json::to_value(&record).unwrap();
    assert_eq!(wire["event"], "ux.approval.resolved");
    assert_eq!(wire["run_id"], RunId::from_u128(2).to_string());
    assert_eq!(wire["latency_ms"], 12);
    assert!(wire.as_object().unwrap().values().all(|value| !value.is_object() && !value.is_array()), "{wire}");
    assert_eq!(serde_json::from_value::<SystemEventRecord>(wire).unwrap(), record);
}

#[test]
fn telemetry_outside_its_contract_is_refused() {
    let base = json!({"name": "ux.surface.opened", "surface": "cli", "section": "chat", "outcome": "ok"});
    assert!(serde_json::from_value::<UxTelemetryEvent>(base.clone()).is_ok());
    for (field, value) in [
        ("summary", json!("é".repeat(241))),
        ("name", json!("surface.opened")),
        ("name", json!("ux.")),
        ("name", json!("ux.Surface")),
        ("name", json!("ux.a..b")),
        ("name", json!(format!("ux.{}", "a".repeat(62)))),
        ("outcome", json!("great")),
        ("tracker", json!("x")),
    ] {
        let mut event = base.clone();
        event[field] = value;
        assert!(serde_json::from_value::<UxTelemetryEvent>(event.clone()).is_err(), "{event}");
    }
    for name in UxEventName::KNOWN {
        assert!(UxEventName::try_from((*name).to_owned()).is_ok(), "{name}");
    }
}
