//! Messages from outside: arbitrary bytes, damaged messages, and messages that decode but mean nothing. Nothing panics, and
//! nothing that was not said is made up.

use palyra_common::{
    AcpCommandEnvelope, AcpCommandResultEnvelope, Label, RunStreamEvent, StableErrorEnvelope, ToStableError,
};
use palyra_proto::common::v1 as wire;
use palyra_proto::{ProtoError, auth, browser, cron, error_from_status, gateway, memory, node, routines};
use proptest::collection::vec;
use proptest::prelude::{any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use prost::Message;
use tonic::{Code, Status};

use crate::strategies;

/// Decodes and, where there is a meaning, reads.
fn read_everything(bytes: &[u8]) {
    fn read<W: Message + Default, T: TryFrom<W, Error = ProtoError>>(bytes: &[u8]) {
        if let Ok(message) = W::decode(bytes)
            && let Err(error) = T::try_from(message)
        {
            assert!(!error.field().is_empty());
            assert_eq!(error.to_stable().validation_errors.len(), 1);
        }
    }
    read::<wire::RunStreamEvent, RunStreamEvent>(bytes);
    read::<wire::Label, Label>(bytes);
    read::<wire::StableErrorEnvelope, StableErrorEnvelope>(bytes);
    read::<wire::AcpCommandEnvelope, AcpCommandEnvelope>(bytes);
    read::<wire::AcpCommandResultEnvelope, AcpCommandResultEnvelope>(bytes);

    drop(gateway::v1::RunStreamRequest::decode(bytes));
    drop(gateway::v1::ExecuteRequest::decode(bytes));
    drop(gateway::v1::RouteMessageRequest::decode(bytes));
    drop(gateway::v1::PutSecretRequest::decode(bytes));
    drop(memory::v1::SearchRequest::decode(bytes));
    drop(auth::v1::CompletePairingRequest::decode(bytes));
    drop(browser::v1::WaitForRequest::decode(bytes));
    drop(cron::v1::SetScheduleRequest::decode(bytes));
    drop(routines::v1::SetRoutineRequest::decode(bytes));
    drop(node::v1::WorkStreamRequest::decode(bytes));

    drop(error_from_status(&Status::with_details(Code::Unknown, "", bytes.to_vec().into())));
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_survived(bytes in vec(any::<u8>(), 0..512)) {
        read_everything(&bytes);
    }

    #[test]
    fn damaged_messages_are_survived(
        event in strategies::event(),
        cut in any::<proptest::sample::Index>(),
        damage in vec((any::<proptest::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mut bytes = wire::RunStreamEvent::from(event).encode_to_vec();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] ^= byte;
        }
        read_everything(&bytes);
        read_everything(&bytes[..cut.index(bytes.len())]);
    }

    #[test]
    fn numbers_that_are_no_value_are_refused(number in any::<i32>()) {
        let read = palyra_proto::contract_from_wire::<palyra_common::ApprovalDecision>(number, "decision");
        prop_assert!(read.is_ok() == (1..=4).contains(&number), "{number}: {read:?}");
    }

    #[test]
    fn any_timestamp_is_read_or_refused(
        seconds in prop_oneof![any::<i64>(), -10_000_000_000..10_000_000_000_i64],
        nanos in prop_oneof![any::<i32>(), 0..1_000_000_000],
    ) {
        let read = palyra_proto::timestamp_from_wire(&prost_types::Timestamp { seconds, nanos }, "at");
        let in_range = i64::try_from(i128::from(seconds) * 1000 + i128::from(nanos) / 1_000_000);
        match in_range {
            Ok(millis) if (0..1_000_000_000).contains(&nanos) => prop_assert_eq!(read.unwrap().0, millis),
            _ => prop_assert!(read.is_err()),
        }
    }
}

/// A message of every kind with nothing in it, and with one thing wrong.
#[test]
fn what_is_missing_or_wrong_is_named() {
    fn error<W, T: TryFrom<W, Error = ProtoError> + std::fmt::Debug>(message: W) -> String {
        T::try_from(message).unwrap_err().to_string()
    }
    use wire::run_stream_event::Body;
    let id = "01JC0Q6F7Z8G9H0J1K2M3N4P5Q".to_owned();
    let event = |body| wire::RunStreamEvent {
        run_id: id.clone(),
        seq: 1,
        at: Some(prost_types::Timestamp::default()),
        body: Some(body),
    };
    let read = |message| error::<_, RunStreamEvent>(message);
    assert_eq!(read(wire::RunStreamEvent::default()), "the field `at` is missing");
    assert_eq!(read(event(Body::Status(wire::RunStatus::default()))), "the field `body.phase` is missing");
    let nameless =
        wire::RunStreamEvent { run_id: "nope".into(), ..event(Body::ModelToken(wire::ModelToken::default())) };
    assert!(read(nameless).starts_with("the field `run_id` is invalid: `nope` is not a run id"));
    let unlabelled = Body::ToolResult(wire::ToolResult::default());
    assert_eq!(read(event(unlabelled)), "the field `body.label` is missing");
    let evidence = wire::ApprovalEvidence { sink: 77, ..Default::default() };
    let request = wire::ToolApprovalRequest {
        approval_id: id.clone(),
        subject: 1,
        risk: 1,
        evidence: vec![wire::ApprovalEvidence { sink: 1, provenance: 1, ..Default::default() }, evidence],
        ..Default::default()
    };
    assert_eq!(
        read(event(Body::ToolApprovalRequest(request))),
        "the field `body.evidence[1].sink` is invalid: `77` is not a valid sink_kind"
    );
    let deep = Body::A2uiUpdate(wire::A2uiUpdate { payload_json: "[".repeat(100_000) });
    assert!(read(event(deep)).starts_with("the field `body.payload_json` is invalid: not valid JSON"));

    let result =
        wire::AcpCommandResultEnvelope { request_id: id.clone(), command: "run.create".into(), ..Default::default() };
    assert_eq!(error::<_, AcpCommandResultEnvelope>(result), "the field `outcome` is missing");
    let command = wire::AcpCommandEnvelope { request_id: id, command: "run.explode".into(), ..Default::default() };
    assert!(
        error::<_, AcpCommandEnvelope>(command).starts_with("the field `command` is invalid: `run.explode` is not")
    );
}

/// A label with nobody to read it is not a label for everybody, and the other way round.
#[test]
fn no_readers_and_any_readers_stay_apart() {
    let base = wire::Label { integrity: 3, confidentiality: 3, readers: None, sources: vec![], origins: vec![] };
    assert_eq!(Label::try_from(base.clone()).unwrap().readers, None);
    let nobody = wire::Label { readers: Some(wire::Readers::default()), ..base };
    assert_eq!(Label::try_from(nobody).unwrap().readers, Some(std::collections::BTreeSet::new()));
}
