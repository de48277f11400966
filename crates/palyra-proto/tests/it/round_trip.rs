//! Whatever is written is read as the same thing, through bytes.

use palyra_common::{
    AcpCommandEnvelope, AcpCommandResultEnvelope, Label, RequestId, RunStreamEvent, StableErrorEnvelope,
};
use palyra_proto::common::v1 as wire;
use palyra_proto::{ProtoError, error_from_status, status_from_error};
use proptest::prelude::{Strategy, any, prop_assert_eq, proptest};
use prost::Message;

use crate::strategies;

/// Writes a value, encodes it, decodes it and reads it again.
fn through_bytes<W, T>(value: T) -> T
where
    W: Message + Default + From<T>,
    T: TryFrom<W, Error = ProtoError>,
{
    let bytes = W::from(value).encode_to_vec();
    T::try_from(W::decode(bytes.as_slice()).unwrap()).unwrap()
}

proptest! {
    #[test]
    fn events_survive(event in strategies::event()) {
        prop_assert_eq!(through_bytes::<wire::RunStreamEvent, RunStreamEvent>(event.clone()), event);
    }

    #[test]
    fn labels_survive(label in strategies::label()) {
        prop_assert_eq!(through_bytes::<wire::Label, Label>(label.clone()), label);
    }

    #[test]
    fn errors_survive(error in strategies::envelope()) {
        prop_assert_eq!(through_bytes::<wire::StableErrorEnvelope, StableErrorEnvelope>(error.clone()), error.clone());
        prop_assert_eq!(error_from_status(&status_from_error(&error)), error);
    }

    #[test]
    fn commands_survive(command in strategies::command()) {
        prop_assert_eq!(through_bytes::<wire::AcpCommandEnvelope, AcpCommandEnvelope>(command.clone()), command);
    }

    #[test]
    fn results_survive(
        command in strategies::command(),
        value in strategies::json_value(),
        error in strategies::envelope(),
        again in proptest::option::of(any::<u128>().prop_map(RequestId::from_u128)),
    ) {
        for outcome in [Ok(value), Err(error)] {
            let mut result = AcpCommandResultEnvelope::answer(&command, outcome);
            if let Some(again) = again {
                result = result.replayed_for(again);
            }
            let read = through_bytes::<wire::AcpCommandResultEnvelope, AcpCommandResultEnvelope>(result.clone());
            prop_assert_eq!(read, result);
        }
    }
}

#[test]
fn large_integers_keep_every_digit() {
    let value = serde_json::json!({ "id": 9_007_199_254_740_993_u64, "max": u64::MAX, "min": i64::MIN });
    let event = RunStreamEvent {
        run_id: palyra_common::RunId::from_u128(1),
        seq: u64::MAX,
        at: palyra_common::Timestamp(i64::MIN),
        body: palyra_common::RunStreamBody::ToolProposal(palyra_common::ToolProposal {
            call_id: "c1".into(),
            tool: "palyra.fs.read".into(),
            arguments: value,
        }),
    };
    assert_eq!(through_bytes::<wire::RunStreamEvent, RunStreamEvent>(event.clone()), event);
}
