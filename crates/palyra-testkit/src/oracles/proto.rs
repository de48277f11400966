//! Messages of gRPC, as the library decodes them and as the vocabulary reads them.

use palyra_common::{
    AcpCommandEnvelope, AcpCommandResultEnvelope, Label, RunStreamEvent, StableErrorEnvelope, ToStableError as _,
};
use palyra_daemon::fuzzing::grpc_refusals;
use palyra_proto::ProtoError;
use palyra_proto::common::v1 as wire;
use palyra_proto::gateway::v1 as gateway;
use prost::Message;

use super::refused;
use crate::generators::Entropy;

/// What the daemon refuses a message with.
const CODES: [&str; 1] = ["proto_message_invalid"];

/// What was read is the same once it is written and read again.
fn same_again<W, T>(bytes: &[u8])
where
    W: Message + Default + From<T>,
    T: TryFrom<W, Error = ProtoError> + Clone + PartialEq + std::fmt::Debug,
{
    let Ok(message) = W::decode(bytes) else { return };
    match T::try_from(message) {
        Ok(read) => {
            let written = W::from(read.clone()).encode_to_vec();
            let again = T::try_from(W::decode(&*written).unwrap()).unwrap();
            assert_eq!(again, read);
        }
        Err(error) => {
            assert!(!error.field().is_empty());
            assert_eq!(error.to_stable().validation_errors.len(), 1);
        }
    }
}

/// The message itself, whatever it means.
fn same_message<W: Message + Default + PartialEq + std::fmt::Debug>(bytes: &[u8]) {
    if let Ok(message) = W::decode(bytes) {
        assert_eq!(W::decode(&*message.encode_to_vec()).as_ref(), Ok(&message));
    }
}

/// Commands, their results and errors.
pub fn proto_acp(bytes: &[u8]) {
    same_again::<wire::AcpCommandEnvelope, AcpCommandEnvelope>(bytes);
    same_again::<wire::AcpCommandResultEnvelope, AcpCommandResultEnvelope>(bytes);
    same_again::<wire::StableErrorEnvelope, StableErrorEnvelope>(bytes);
    let envelope = Entropy::new(bytes).envelope();
    let written = wire::AcpCommandEnvelope::from(envelope.clone());
    assert_eq!(AcpCommandEnvelope::try_from(written).as_ref(), Ok(&envelope));
}

/// Events of a run.
pub fn proto_run_stream(bytes: &[u8]) {
    same_again::<wire::RunStreamEvent, RunStreamEvent>(bytes);
    same_again::<wire::Label, Label>(bytes);
}

/// What a client sends: the messages whose fields the daemon reads by hand.
pub fn grpc_request(bytes: &[u8]) {
    same_message::<gateway::RunStreamRequest>(bytes);
    same_message::<gateway::ExecuteRequest>(bytes);
    same_message::<gateway::ListRunsRequest>(bytes);
    for refusal in grpc_refusals(bytes) {
        refused(&refusal, &CODES, bytes.len());
    }
}
