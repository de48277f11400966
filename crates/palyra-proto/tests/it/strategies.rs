//! Arbitrary values of the shared vocabulary.

use palyra_common::{
    A2uiUpdate, AcpCommand, AcpCommandEnvelope, ApprovalEvidence, ApprovalId, CallProgress, ContractEnum, DataOrigin,
    Digest, FieldError, JournalEvent, Label, LimitsUsed, ModelToken, RequestId, RunId, RunStatus, RunStreamBody,
    RunStreamEvent, StableErrorEnvelope, StatusDetail, Timestamp, ToolApprovalRequest, ToolApprovalResponse,
    ToolAttestation, ToolDecision, ToolProposal, ToolResult,
};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use serde_json::{Value, json};

pub(crate) fn contract<T: ContractEnum + std::fmt::Debug>() -> impl Strategy<Value = T> {
    proptest::sample::select(T::ALL)
}

fn text() -> impl Strategy<Value = String> {
    "\\PC{0,12}"
}

/// JSON with integers of every size. Fractions are left to those that text keeps exactly, since it is not the business of this
/// crate how JSON libraries round.
pub(crate) fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i16>().prop_map(|number| json!(f64::from(number) / 4.0)),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(text(), inner, 0..4).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

pub(crate) fn label() -> impl Strategy<Value = Label> {
    (contract(), contract(), option::of(btree_set(text(), 0..3)), btree_set(text(), 0..3)).prop_map(
        |(integrity, confidentiality, readers, sources)| Label {
            integrity,
            confidentiality,
            readers,
            sources,
            origins: [DataOrigin::Server("mail".to_owned())].into(),
        },
    )
}

pub(crate) fn envelope() -> impl Strategy<Value = StableErrorEnvelope> {
    let field = (text(), text(), text()).prop_map(|(field, code, message)| FieldError { field, code, message });
    ("[a-z_]{1,20}", text(), contract(), any::<bool>(), option::of(text()), option::of(json_value()), vec(field, 0..3))
        .prop_map(|(code, message, category, retryable, recovery_hint, details, validation_errors)| {
            StableErrorEnvelope {
                code,
                message,
                category,
                retryable,
                recovery_hint,
                details: details.map(Box::new),
                validation_errors,
            }
        })
}

fn status() -> impl Strategy<Value = RunStatus> {
    let detail = (text(), text()).prop_map(|(code, message)| StatusDetail { code, message });
    let progress = (text(), option::of(any::<u8>()), text(), text())
        .prop_map(|(call_id, percent, message, output)| CallProgress { call_id, percent, message, output });
    (contract(), option::of(contract()), option::of(detail), option::of(progress))
        .prop_map(|(phase, reason, detail, progress)| RunStatus { phase, reason, detail, progress })
}

fn approval_request() -> impl Strategy<Value = ToolApprovalRequest> {
    let evidence = (text(), contract(), text(), contract(), option::of(text()), option::of(text())).prop_map(
        |(argument, sink, value, provenance, source, sentence)| ApprovalEvidence {
            argument,
            sink,
            value,
            provenance,
            source,
            sentence,
        },
    );
    let about = (option::of(text()), option::of(text()), option::of(json_value()), option::of(text()));
    (any::<u128>(), about, contract(), contract(), text(), text(), vec(evidence, 0..3)).prop_map(
        |(id, (call_id, tool, arguments, offer), subject, risk, summary, reason, evidence)| ToolApprovalRequest {
            approval_id: ApprovalId::from_u128(id),
            call_id,
            subject,
            risk,
            summary,
            tool,
            arguments,
            reason,
            evidence,
            offer,
        },
    )
}

fn result() -> impl Strategy<Value = ToolResult> {
    let artifact = option::of(any::<[u8; 32]>().prop_map(Digest));
    (text(), text(), any::<bool>(), text(), any::<bool>(), artifact, option::of(envelope()), label()).prop_map(
        |(call_id, tool, ok, content, truncated, artifact, error, label)| ToolResult {
            call_id,
            tool,
            ok,
            content,
            truncated,
            artifact,
            error,
            label,
        },
    )
}

fn attestation() -> impl Strategy<Value = ToolAttestation> {
    let number = || option::of(any::<u64>());
    let limits = (any::<u64>(), number(), number(), number(), number()).prop_map(
        |(wall_ms, cpu_ms, memory_bytes, fuel, output_bytes)| LimitsUsed {
            wall_ms,
            cpu_ms,
            memory_bytes,
            fuel,
            output_bytes,
        },
    );
    (text(), any::<[u8; 32]>(), text(), option::of(contract()), vec(text(), 0..3), limits, any::<bool>()).prop_map(
        |(call_id, digest, executor, tier, fallback_reasons, limits_used, timed_out)| ToolAttestation {
            call_id,
            execution_sha256: Digest(digest),
            executor,
            tier,
            fallback_reasons,
            limits_used,
            timed_out,
        },
    )
}

fn body() -> impl Strategy<Value = RunStreamBody> {
    let proposal =
        (text(), text(), json_value()).prop_map(|(call_id, tool, arguments)| ToolProposal { call_id, tool, arguments });
    let decision = (text(), contract(), vec(text(), 0..3), vec(text(), 0..3))
        .prop_map(|(call_id, verdict, reasons, policies)| ToolDecision { call_id, verdict, reasons, policies });
    let response = (any::<u128>(), contract(), contract(), text()).prop_map(|(id, decision, scope, by)| {
        ToolApprovalResponse { approval_id: ApprovalId::from_u128(id), decision, scope, by }
    });
    prop_oneof![
        status().prop_map(RunStreamBody::Status),
        (any::<u32>(), text()).prop_map(|(turn, text)| RunStreamBody::ModelToken(ModelToken { turn, text })),
        proposal.prop_map(RunStreamBody::ToolProposal),
        decision.prop_map(RunStreamBody::ToolDecision),
        approval_request().prop_map(RunStreamBody::ToolApprovalRequest),
        response.prop_map(RunStreamBody::ToolApprovalResponse),
        result().prop_map(RunStreamBody::ToolResult),
        attestation().prop_map(RunStreamBody::ToolAttestation),
        json_value().prop_map(|payload| RunStreamBody::A2uiUpdate(A2uiUpdate { payload })),
        (text(), json_value()).prop_map(|(kind, payload)| RunStreamBody::JournalEvent(JournalEvent { kind, payload })),
    ]
}

pub(crate) fn event() -> impl Strategy<Value = RunStreamEvent> {
    (any::<u128>(), any::<u64>(), any::<i64>(), body()).prop_map(|(run, seq, at, body)| RunStreamEvent {
        run_id: RunId::from_u128(run),
        seq,
        at: Timestamp(at),
        body,
    })
}

pub(crate) fn command() -> impl Strategy<Value = AcpCommandEnvelope> {
    (any::<u128>(), contract::<AcpCommand>(), json_value(), option::of(text()), option::of(any::<u64>())).prop_map(
        |(id, command, params, idempotency_key, expected_version)| AcpCommandEnvelope {
            request_id: RequestId::from_u128(id),
            command,
            params,
            idempotency_key,
            expected_version,
        },
    )
}
