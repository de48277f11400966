//! Methods that bring something in: records of clients, and messages of chat channels.

use std::sync::Arc;

use palyra_client::api::{AppendEventParams, AppendEventResponse, RouteDisposition, RouteMessageParams};
use palyra_client::command::{Command, Outcome};
use palyra_proto::gateway::v1 as wire;
use palyra_proto::{ProtoError, json_from_wire, timestamp_from_wire};
use tonic::Status;

use super::ask::{mismatch, outcome, unreadable};
use super::read::{self, Read};
use crate::app::App;
use crate::dispatch::{self, Answer, Asked, Caller, Refusal};

pub(super) async fn append(
    app: &Arc<App>,
    caller: &Caller,
    request: wire::AppendEventRequest,
) -> Result<wire::AppendEventResponse, Status> {
    let idempotency_key = request.idempotency_key.clone();
    let command = Command::EventAppend(event(request).map_err(unreadable)?);
    let asked = Asked { command: command.clone(), idempotency_key, expected_version: None };
    let appended = match dispatch::dispatch(app, caller, asked).await? {
        Answer::Fresh(Outcome::EventAppend(appended)) => *appended,
        Answer::Fresh(_) => return Err(mismatch(&command)),
        Answer::Stored(value) => serde_json::from_value::<AppendEventResponse>(value)
            .map_err(|error| Refusal::internal(format!("a stored answer does not read: {error}")))?,
    };
    Ok(wire::AppendEventResponse { seq: appended.seq, hash: appended.hash.to_string() })
}

fn event(request: wire::AppendEventRequest) -> Read<AppendEventParams> {
    let serde_json::Value::Object(payload) = json_from_wire(&request.payload_json, "payload_json")? else {
        return Err(ProtoError::invalid("payload_json", "it is not a JSON object"));
    };
    Ok(AppendEventParams {
        kind: request.kind,
        session_id: read::optional(request.session_id.as_deref(), "session_id")?,
        run_id: read::optional(request.run_id.as_deref(), "run_id")?,
        payload,
    })
}

pub(super) async fn route(
    app: &Arc<App>,
    caller: &Caller,
    request: wire::RouteMessageRequest,
) -> Result<wire::RouteMessageResponse, Status> {
    let params = message(request).map_err(unreadable)?;
    let routed = outcome!(app, caller, MessageRoute(params));
    let disposition = match routed.disposition {
        RouteDisposition::Started => wire::RouteDisposition::Started,
        RouteDisposition::Queued => wire::RouteDisposition::Queued,
        RouteDisposition::Duplicate => wire::RouteDisposition::Duplicate,
        RouteDisposition::Ignored => wire::RouteDisposition::Ignored,
    };
    Ok(wire::RouteMessageResponse {
        session_id: routed.session_id.map(|id| id.to_string()).unwrap_or_default(),
        run_id: routed.run_id.map(|id| id.to_string()),
        disposition: disposition.into(),
    })
}

fn message(request: wire::RouteMessageRequest) -> Read<RouteMessageParams> {
    Ok(RouteMessageParams {
        channel: request.channel,
        account: request.account,
        conversation: request.conversation,
        sender: request.sender,
        message_id: request.message_id,
        text: request.text,
        sent_at: request.sent_at.map(|at| timestamp_from_wire(&at, "sent_at")).transpose()?,
        attachments: read::attachments(request.attachments, "attachments.artifact")?,
    })
}
