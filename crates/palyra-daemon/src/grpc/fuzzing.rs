//! Messages as gRPC decodes them, read as parameters of commands, for whoever throws bytes at that.

use palyra_common::{ApprovalId, RunId, StableErrorEnvelope, ToStableError as _};
use palyra_proto::auth::v1::CreateTokenRequest;
use palyra_proto::gateway::v1 as wire;
use palyra_proto::gateway::v1::run_stream_request::Body as Up;
use prost::Message;

use super::read::{self, Read};

/// Why the parameters in these bytes are refused, taken for each kind of message in turn.
pub(crate) fn refusals(bytes: &[u8]) -> Vec<StableErrorEnvelope> {
    fn of<M: Message + Default>(bytes: &[u8], read: impl FnOnce(M) -> Read<()>) -> Option<StableErrorEnvelope> {
        // What is no message at all never gets as far as this; the library answers it.
        read(M::decode(bytes).ok()?).err().map(|error| error.to_stable())
    }
    let found = [
        of(bytes, |request: wire::RunStreamRequest| request.body.map_or(Ok(()), upward)),
        of(bytes, |request| read::list_runs(&request).map(drop)),
        of(bytes, |request| read::list_sessions(&request).map(drop)),
        of(bytes, |request| read::list_approvals(&request).map(drop)),
        of(bytes, |request: CreateTokenRequest| read::new_token(request).map(drop)),
    ];
    found.into_iter().flatten().collect()
}

/// Everything that a client may say on a stream.
fn upward(body: Up) -> Read<()> {
    match body {
        Up::Start(start) => read::run_spec(start.run).map(drop),
        Up::Resume(resume) => read::parsed::<RunId>(&resume.run_id, "resume.run_id").map(drop),
        Up::Approval(answer) => {
            read::parsed::<ApprovalId>(&answer.approval_id, "approval.approval_id")?;
            read::decision(answer.decision, answer.scope, answer.minutes, answer.reason).map(drop)
        }
        Up::Steer(steer) => read::input(steer).map(drop),
        Up::Abort(_) => Ok(()),
        Up::Deliver(deliver) => {
            read::results(deliver);
            Ok(())
        }
    }
}
